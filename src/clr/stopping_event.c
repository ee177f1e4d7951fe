#include "clr/stopping_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf16.h"
#include "clr/stream_schemas.h"

enum { TEXT_MAX = 1 << 16, FIELDS_MAX = 32 };

struct wanted_field {
    const char *name, *value;
};

struct stopping_event {
    char *provider, *event, *text;
    struct wanted_field fields[FIELDS_MAX];
    size_t field_count;
    struct stream_schemas schemas;
    uint64_t of_provider, of_name; /* events that came */
};

static bool read_fields(struct stopping_event *s, const char *fields, struct error *err)
{
    s->text = mem_copy_string(fields);
    char *rest = s->text;
    for (char *pair; (pair = strsep(&rest, ","));) {
        char *colon = strchr(pair, ':');
        if (!colon || colon == pair)
            return error_set(err, ERROR_USAGE, "'%s' is no field:value of a stopping event", pair);
        if (s->field_count == FIELDS_MAX)
            return error_set(err, ERROR_USAGE, "more than %d fields of a stopping event", FIELDS_MAX);
        *colon = '\0';
        s->fields[s->field_count++] = (struct wanted_field){ pair, colon + 1 };
    }
    return true;
}

bool stopping_event_new(const char *provider, const char *event, const char *fields,
                        struct stopping_event **out, struct error *err)
{
    if (!provider || !*provider || (fields && !event)) {
        error_set(err, ERROR_USAGE, "a stopping event needs %s",
                  provider && *provider ? "a name before its fields can be compared" : "its provider");
        return error_hint(err, "--stopping-event-provider-name P --stopping-event-event-name E "
                               "--stopping-event-payload-filter field:value,...");
    }
    struct stopping_event *s = mem_alloc(1, sizeof *s);
    s->provider = mem_copy_string(provider);
    s->event = event ? mem_copy_string(event) : NULL;
    if (fields && !read_fields(s, fields, err)) {
        stopping_event_free(s);
        return false;
    }
    *out = s;
    return true;
}

void stopping_event_free(struct stopping_event *s)
{
    if (!s)
        return;
    stream_schemas_done(&s->schemas);
    free(s->provider);
    free(s->event);
    free(s->text);
    free(s);
}

static bool is_named(const struct stopping_event *s, const struct stream_schema *of)
{
    return !s->event || strcmp(s->event, of->name) == 0 ||
           strcmp(s->event, event_schema_name(of->schema)) == 0;
}

/* As reports print it, or, of a number, in decimal. */
static bool has_value(const struct event_value *value, const char *wanted)
{
    struct buffer text;
    char number[32];
    buffer_init(&text, TEXT_MAX);
    event_value_append(&text, value);
    buffer_u8(&text, 0);
    bool same = !text.failed && strcmp((const char *)text.data, wanted) == 0;
    buffer_done(&text);
    if (value->kind == EVENT_VALUE_INT)
        snprintf(number, sizeof number, "%" PRId64, value->i);
    else
        snprintf(number, sizeof number, "%" PRIu64, value->u);
    return same ||
           (event_value_is_number(value) && value->kind != EVENT_VALUE_FLOAT && strcmp(number, wanted) == 0);
}

bool stopping_event_is(struct stopping_event *s, const struct nettrace_type *type, uint32_t pointer_size,
                       struct span payload)
{
    if (!utf16_equals_ascii(type->provider, s->provider))
        return false;
    const struct stream_schema *of = stream_schemas_get(&s->schemas, type, pointer_size);
    s->of_provider++;
    if (!is_named(s, of))
        return false;
    s->of_name++;
    for (size_t i = 0; i < s->field_count; i++) {
        struct event_value value;
        int field = event_schema_field(of->schema, s->fields[i].name);
        if (!event_schema_read(of->schema, payload, field, &value) || !has_value(&value, s->fields[i].value))
            return false;
    }
    return true;
}

void stopping_event_append_missed(const struct stopping_event *s, struct buffer *out)
{
    if (!s->of_provider)
        buffer_format(out, "%s told of no events", s->provider);
    else if (!s->of_name)
        buffer_format(out, "%s told of %" PRIu64 " events, none of them '%s'", s->provider, s->of_provider,
                      s->event);
    else
        buffer_format(out, "'%s' came %" PRIu64 " times, never with these fields", s->event, s->of_name);
}
