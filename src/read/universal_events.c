#include "read/universal_events.h"

#include <jansson.h>
#include <string.h>

static struct span read_text(struct cursor *c)
{
    return cursor_bytes(c, cursor_u16le(c));
}

/* Later versions may add fields. */
static bool is_whole(const struct cursor *c, const char *what, struct error *err)
{
    return cursor_ok(c) ||
           error_set(err, ERROR_INPUT, "%s ends at byte %zu, before its last field", what, c->bytes.size);
}

enum universal_event universal_event_named(const char *provider, const char *name)
{
    static const struct {
        const char *provider, *name;
        enum universal_event event;
    } events[] = {
        { UNIVERSAL_SYSTEM_PROVIDER, "ExistingProcess", UNIVERSAL_PROCESS },
        { UNIVERSAL_SYSTEM_PROVIDER, "ProcessCreate", UNIVERSAL_PROCESS },
        { UNIVERSAL_SYSTEM_PROVIDER, "ProcessExit", UNIVERSAL_EXIT },
        { UNIVERSAL_SYSTEM_PROVIDER, "ProcessMapping", UNIVERSAL_MAPPING },
        { UNIVERSAL_SYSTEM_PROVIDER, "ProcessMappingMetadata", UNIVERSAL_METADATA },
        { UNIVERSAL_SYSTEM_PROVIDER, "ProcessSymbol", UNIVERSAL_SYMBOL },
        { UNIVERSAL_EVENTS_PROVIDER, "cpu", UNIVERSAL_CPU },
        { UNIVERSAL_EVENTS_PROVIDER, "cswitch", UNIVERSAL_SWITCH },
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strcmp(events[i].provider, provider) == 0 && strcmp(events[i].name, name) == 0)
            return events[i].event;
    return UNIVERSAL_NONE;
}

bool universal_process_read(struct span payload, struct universal_process *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    out->ns_pid = cursor_varuint64(&c);
    out->name = read_text(&c);
    return is_whole(&c, "an event about a process", err);
}

bool universal_mapping_read(struct span payload, struct universal_mapping *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    out->id = cursor_varuint64(&c);
    out->start = cursor_varuint64(&c);
    out->end = cursor_varuint64(&c);
    out->file_off = cursor_varuint64(&c);
    out->path = read_text(&c);
    out->metadata_id = cursor_varuint64(&c);
    return is_whole(&c, "an event about a mapping", err);
}

bool universal_metadata_read(struct span payload, struct universal_metadata *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    out->id = cursor_varuint64(&c);
    out->symbols = read_text(&c);
    return is_whole(&c, "an event about a mapped file", err);
}

bool universal_build_id(struct span symbols, char out[UNIVERSAL_BUILD_ID_MAX + 1])
{
    json_t *json = json_loadb((const char *)symbols.data, symbols.size, 0, NULL);
    const char *hex = json_string_value(json_object_get(json, "build_id"));
    size_t digits = hex ? strspn(hex, "0123456789abcdef") : 0;
    bool good = digits > 0 && digits <= UNIVERSAL_BUILD_ID_MAX && !hex[digits];
    if (good)
        memcpy(out, hex, digits + 1);
    json_decref(json);
    return good;
}

bool universal_symbol_read(struct span payload, struct universal_symbol *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    cursor_varuint64(&c); /* its own id */
    out->mapping_id = cursor_varuint64(&c);
    out->start = cursor_varuint64(&c);
    out->end = cursor_varuint64(&c);
    out->name = read_text(&c);
    return is_whole(&c, "an event about a symbol", err);
}

bool universal_value_read(struct span payload, uint64_t *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    *out = cursor_varuint64(&c);
    return is_whole(&c, "a sample", err);
}
