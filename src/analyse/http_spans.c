#include "analyse/http_spans.h"

#include <string.h>

#include "analyse/request_ends.h"
#include "analyse/span_account.h"
#include "analyse/told_events.h"
#include "analyse/url_pattern.h"
#include "base/buffer.h"
#include "base/own.h"
#include "clr/provider_names.h"

enum { NAME_BYTES_MAX = 1 << 18, HTTP_LEVEL = 4, IDS = 4, STATUS_FAILED = 500 };

/* A source of requests: the ids of its events (0: none) and the fields of a name. */
static const struct http_source {
    const char *provider, *kind;
    uint16_t start, stop, failed;
    const char *key; /* a field that names the request, or NULL: the activity does */
} sources[] = {
    { HTTP_SERVED_PROVIDER, "server", HTTP_SERVED_EVENT_START, HTTP_SERVED_EVENT_STOP,
      HTTP_SERVED_EVENT_FAILED, NULL },
    { HTTP_KESTREL_PROVIDER, "server", HTTP_KESTREL_EVENT_START, HTTP_KESTREL_EVENT_STOP, 0, "requestId" },
    { HTTP_SENT_PROVIDER, "client", HTTP_SENT_EVENT_START, HTTP_SENT_EVENT_STOP, HTTP_SENT_EVENT_FAILED,
      NULL },
};

static const struct http_source *source_of(const char *provider)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (strcmp(sources[i].provider, provider) == 0)
            return &sources[i];
    return NULL;
}

bool http_spans_wants(const char *provider, uint32_t event_id)
{
    const struct http_source *s = source_of(provider);
    return (s && (event_id == s->start || event_id == s->stop || (s->failed && event_id == s->failed))) ||
           span_accounts_wants(provider, event_id);
}

bool http_spans_asked(const struct trace *t)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (told_was_asked(t, sources[i].provider, 0, HTTP_LEVEL))
            return true;
    return false;
}

struct http_reading {
    struct http_spans *spans;
    struct told_events *told;
    const struct http_source *source;
    const struct request_ends *ends; /* of requests that their activity does not tell apart */
    uint32_t kind;
    bool own_groups;
    struct buffer name, group;
};

/* What tells one request from another while it goes on. */
static void key_of(struct http_reading *r, const struct told_event *e, uint8_t key[16], uint32_t *out_scope)
{
    const struct trace_event *row = told_row(r->told, e);
    const struct trace_event_activity *activity = trace_event_activity(r->told->trace, e->event);
    static const uint8_t none[16];
    struct event_value value;
    memset(key, 0, 16);
    *out_scope = e->process;
    if (r->source->key && told_field(r->told, e, r->source->key, &value)) {
        uint64_t hash = hash_bytes(value.bytes.data, value.bytes.size);
        memcpy(key, &hash, sizeof hash);
    } else if (activity && memcmp(activity->id, none, sizeof none) != 0) {
        memcpy(key, activity->id, sizeof activity->id);
    } else {
        memcpy(key, &row->thread, sizeof row->thread);
    }
}

static void put_field(struct http_reading *r, const struct told_event *e, const char *field)
{
    struct event_value value;
    if (told_field(r->told, e, field, &value))
        event_value_append_text(&r->name, &value);
}

/* What stands in front of the path; its size. */
static size_t put_origin(struct http_reading *r, const struct told_event *e)
{
    buffer_clear(&r->name);
    if (r->source->start == 1) {
        put_field(r, e, "scheme");
        buffer_string(&r->name, "://");
        put_field(r, e, "host");
        uint64_t port = told_number(r->told, e, "port", 0);
        if (port && port != 80 && port != 443)
            buffer_format(&r->name, ":%u", (unsigned)port);
    } else {
        put_field(r, e, "method");
        buffer_u8(&r->name, ' ');
    }
    return r->name.size;
}

static uint32_t text_id(struct http_reading *r, struct span text)
{
    uint32_t id = intern_add(&r->spans->table.texts, text);
    r->spans->table.is_full |= !id && text.size;
    return id;
}

/* The name without the query, which differs each time, and its group. */
static void name_span(struct http_reading *r, const struct told_event *e, struct span_row *row)
{
    size_t origin = put_origin(r, e);
    put_field(r, e, r->source->start == 1 ? "pathAndQuery" : "path");
    struct span name = buffer_span(&r->name);
    const uint8_t *query = name.size > origin ? memchr(name.data + origin, '?', name.size - origin) : NULL;
    if (query)
        name.size = (size_t)(query - name.data);
    row->name = text_id(r, name);
    if (r->own_groups || name.size <= origin)
        return;
    buffer_clear(&r->group);
    buffer_append(&r->group, name.data, origin);
    url_pattern_append(&r->group, (struct span){ name.data + origin, name.size - origin });
    row->group = text_id(r, buffer_span(&r->group));
}

static void name_activity(struct http_reading *r, const struct told_event *e, struct span_row *row)
{
    const struct trace_event_activity *activity = trace_event_activity(r->told->trace, e->event);
    struct event_value value;
    if (activity)
        memcpy(row->activity, activity->id, sizeof row->activity);
    static const uint8_t none[sizeof row->activity];
    bool has_key = r->source->key && told_field(r->told, e, r->source->key, &value);
    bool by_thread = !has_key && memcmp(row->activity, none, sizeof none) == 0;
    row->on_one_thread = by_thread && row->thread;
    r->spans->by_thread += by_thread;
}

/* A thread serves one request at a time; what has an activity may share it. */
static void begin_span(struct http_reading *r, const struct told_event *e, struct span_row *span,
                       const uint8_t key[16], uint32_t scope)
{
    span->due_ns = request_ends_of(r->ends, r->told->trace, e->event);
    if (memcmp(key, span->activity, sizeof span->activity) == 0)
        span_table_begin_beside(&r->spans->table, key, scope, span);
    else
        span_table_begin(&r->spans->table, key, scope, span);
}

static void read_event(struct http_reading *r, const struct told_event *e)
{
    const struct trace_event *row = told_row(r->told, e);
    uint8_t key[16];
    uint32_t scope;
    key_of(r, e, key, &scope);
    if (e->id == r->source->start) {
        struct span_row span = { .start_ns = e->time_ns,
                                 .process = e->process,
                                 .thread = row->thread,
                                 .stack = row->stack,
                                 .kind = r->kind,
                                 .status = SPAN_STATUS_NONE };
        name_span(r, e, &span);
        name_activity(r, e, &span);
        begin_span(r, e, &span, key, scope);
        return;
    }
    struct span_row *open = e->id == r->source->stop
                                ? span_table_find_due(&r->spans->table, key, scope, e->time_ns)
                                : span_table_find_next(&r->spans->table, key, scope, e->time_ns);
    if (open && e->id == r->source->failed)
        open->failed = true;
    if (e->id != r->source->stop)
        return;
    uint64_t status = told_number(r->told, e, "statusCode", 0);
    if (open && status && status < INT32_MAX) {
        open->status = (int32_t)status;
        open->failed |= status >= STATUS_FAILED;
    }
    span_table_end(&r->spans->table, key, scope, e->time_ns);
}

static bool has_activities(const struct told_events *told)
{
    static const uint8_t none[16];
    for (size_t i = 0; i < told->count; i++) {
        const struct trace_event_activity *a = trace_event_activity(told->trace, told->rows[i].event);
        if (a && memcmp(a->id, none, sizeof none) != 0)
            return true;
    }
    return false;
}

/* False when there are none, or when Kestrel knows better: its numbers tell requests apart, threads do not.
 */
static bool read_source(struct http_spans *spans, const struct trace *t, const struct http_source *source,
                        const struct request_ends *ends, bool own_groups, uint64_t from_ns, uint64_t to_ns)
{
    const uint16_t ids[IDS] = { source->start, source->stop, source->failed, 0 };
    struct told_events told;
    told_events_init(&told, t,
                     &(struct told_choice){
                         .provider = source->provider, .ids = ids, .from_ns = from_ns, .to_ns = to_ns });
    struct http_reading r = {
        .spans = spans, .told = &told, .source = source, .ends = ends, .own_groups = own_groups
    };
    bool any = told.count != 0 &&
               (strcmp(source->provider, HTTP_SERVED_PROVIDER) != 0 || !ends->count || has_activities(&told));
    r.kind = intern_cstr(&spans->table.texts, source->kind);
    buffer_init(&r.name, NAME_BYTES_MAX);
    buffer_init(&r.group, NAME_BYTES_MAX);
    for (size_t i = 0; any && i < told.count; i++)
        read_event(&r, &told.rows[i]);
    buffer_done(&r.name);
    buffer_done(&r.group);
    told_events_done(&told);
    return any;
}

void http_spans_init(struct http_spans *spans, const struct trace *t, bool own_groups, uint64_t from_ns,
                     uint64_t to_ns)
{
    *spans = (struct http_spans){ 0 };
    span_table_init(&spans->table);
    bool has_server = false;
    struct request_ends ends;
    request_ends_init(&ends, t, from_ns, to_ns);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        bool is_server = strcmp(sources[i].kind, "server") == 0;
        if (is_server && has_server)
            continue;
        bool any = read_source(spans, t, &sources[i], &ends, own_groups, from_ns, to_ns);
        has_server |= is_server && any;
        spans->any |= any;
    }
    request_ends_done(&ends);
    span_table_seal(&spans->table, t);
}

void http_spans_done(struct http_spans *spans)
{
    span_table_done(&spans->table);
}
