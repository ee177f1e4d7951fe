#include "clr/runtime_events.h"

#include <string.h>

#include "base/own.h"
#include "base/utf16.h"

static const struct {
    const char *provider;
    uint16_t id;
    uint8_t kind;
    bool verbose;
} events[] = {
    { RUNTIME_PROVIDER, 1, RUNTIME_EVENT_GC_START, false },
    { RUNTIME_PROVIDER, 2, RUNTIME_EVENT_GC_END, false },
    { RUNTIME_PROVIDER, 3, RUNTIME_EVENT_RESTART_END, false },
    { RUNTIME_PROVIDER, 7, RUNTIME_EVENT_RESTART_BEGIN, false },
    { RUNTIME_PROVIDER, 8, RUNTIME_EVENT_SUSPEND_END, false },
    { RUNTIME_PROVIDER, 9, RUNTIME_EVENT_SUSPEND_BEGIN, false },
    { RUNTIME_PROVIDER, 141, RUNTIME_EVENT_METHOD_LOAD, false },
    { RUNTIME_PROVIDER, 142, RUNTIME_EVENT_METHOD_UNLOAD, false },
    { RUNTIME_PROVIDER, 143, RUNTIME_EVENT_METHOD_LOAD, true },
    { RUNTIME_PROVIDER, 144, RUNTIME_EVENT_METHOD_UNLOAD, true },
    { RUNTIME_PROVIDER, 152, RUNTIME_EVENT_MODULE_LOAD, false },
    { RUNTIME_PROVIDER, 153, RUNTIME_EVENT_MODULE_UNLOAD, false },
    { RUNTIME_RUNDOWN_PROVIDER, 141, RUNTIME_EVENT_METHOD_EXISTS, false },
    { RUNTIME_RUNDOWN_PROVIDER, 142, RUNTIME_EVENT_METHOD_EXISTS, false },
    { RUNTIME_RUNDOWN_PROVIDER, 143, RUNTIME_EVENT_METHOD_EXISTS, true },
    { RUNTIME_RUNDOWN_PROVIDER, 144, RUNTIME_EVENT_METHOD_EXISTS, true },
    { RUNTIME_RUNDOWN_PROVIDER, 146, RUNTIME_EVENT_RUNDOWN_DONE, false },
    { RUNTIME_RUNDOWN_PROVIDER, 148, RUNTIME_EVENT_RUNDOWN_BEGIN, false },
    { RUNTIME_RUNDOWN_PROVIDER, 153, RUNTIME_EVENT_MODULE_EXISTS, false },
    { RUNTIME_RUNDOWN_PROVIDER, 154, RUNTIME_EVENT_MODULE_EXISTS, false },
};

static size_t find_event(struct span provider, uint32_t event_id)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].id == event_id && utf16_equals_ascii(provider, events[i].provider))
            return i;
    return ARRAY_LEN(events);
}

enum runtime_event_kind runtime_event_kind(struct span provider, uint32_t event_id)
{
    size_t i = find_event(provider, event_id);
    return i < ARRAY_LEN(events) ? (enum runtime_event_kind)events[i].kind : RUNTIME_EVENT_OTHER;
}

enum runtime_event_kind runtime_event_kind_named(const char *provider, uint32_t event_id)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].id == event_id && strcmp(provider, events[i].provider) == 0)
            return (enum runtime_event_kind)events[i].kind;
    return RUNTIME_EVENT_OTHER;
}

bool runtime_event_is_verbose(struct span provider, uint32_t event_id)
{
    size_t i = find_event(provider, event_id);
    return i < ARRAY_LEN(events) && events[i].verbose;
}

/* A text that may be missing altogether, then with what follows it. */
static struct span optional_string(struct cursor *c)
{
    struct cursor ahead = *c;
    struct span text = utf16_zstring(&ahead);
    if (cursor_ok(&ahead))
        *c = ahead;
    return text;
}

bool runtime_method_event_read(struct span payload, uint32_t version, bool verbose,
                               struct runtime_method_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct runtime_method_event m = { .method_id = cursor_u64le(&c) };
    m.module_id = cursor_u64le(&c);
    m.addr = cursor_u64le(&c);
    m.size_bytes = cursor_u32le(&c);
    m.token = cursor_u32le(&c);
    m.flags = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "a method event"))
        return false;
    if (verbose) {
        m.type = optional_string(&c);
        m.name = optional_string(&c);
        m.signature = optional_string(&c);
    }
    m.rest = span_part(payload, c.pos, cursor_left(&c));
    if (version >= 2 && cursor_left(&c) >= 10) {
        cursor_u16le(&c); /* runtime instance */
        m.rejit_id = cursor_u64le(&c);
    }
    *out = m;
    return true;
}

bool runtime_method_range_read(struct span payload, struct runtime_method_range *out)
{
    struct cursor c = cursor_over(payload);
    cursor_skip(&c, 16); /* the method, its module */
    struct runtime_method_range range = { .addr = cursor_u64le(&c) };
    uint32_t size_bytes = cursor_u32le(&c);
    if (!cursor_ok(&c) || !size_bytes || __builtin_add_overflow(range.addr, size_bytes, &range.end))
        return false;
    *out = range;
    return true;
}

bool runtime_information_read(struct span payload, struct runtime_information_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    cursor_skip(&c, 2 + 2 + 8); /* instance, kind, version of the class library */
    struct runtime_information_event e = { .major = cursor_u16le(&c) };
    e.minor = cursor_u16le(&c);
    e.build = cursor_u16le(&c);
    if (!cursor_finish(&c, err, "an event of what runtime it is"))
        return false;
    *out = e;
    return true;
}

bool runtime_process_info_read(struct span payload, struct runtime_process_info *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct runtime_process_info e = { .command_line = utf16_zstring(&c) };
    if (!cursor_finish(&c, err, "an event of whose stream it is"))
        return false;
    optional_string(&c); /* "Linux" */
    e.arch = optional_string(&c);
    *out = e;
    return true;
}

bool runtime_module_event_read(struct span payload, uint32_t version, struct runtime_module_event *out,
                               struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct runtime_module_event m = { .module_id = cursor_u64le(&c) };
    m.assembly_id = cursor_u64le(&c);
    m.flags = cursor_u32le(&c);
    cursor_u32le(&c); /* reserved */
    if (!cursor_finish(&c, err, "a module event"))
        return false;
    m.il_path = optional_string(&c);
    m.native_path = optional_string(&c);
    cursor_u16le(&c); /* runtime instance */
    struct span guid = cursor_bytes(&c, sizeof m.pdb_guid);
    uint32_t age = cursor_u32le(&c);
    if (version >= 2 && cursor_ok(&c)) {
        memcpy(m.pdb_guid, guid.data, guid.size);
        m.pdb_age = age;
    }
    *out = m;
    return true;
}

bool runtime_gc_start_read(struct span payload, struct runtime_gc_start_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct runtime_gc_start_event start = { .number = cursor_u32le(&c) };
    start.generation = cursor_u32le(&c);
    start.reason = cursor_u32le(&c);
    start.type = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "a GC start event"))
        return false;
    *out = start;
    return true;
}

bool runtime_gc_end_read(struct span payload, struct runtime_gc_end_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct runtime_gc_end_event end = { .number = cursor_u32le(&c) };
    end.generation = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "a GC end event"))
        return false;
    *out = end;
    return true;
}

bool runtime_suspend_begin_read(struct span payload, uint32_t *out_reason, struct error *err)
{
    struct cursor c = cursor_over(payload);
    uint32_t reason = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "an event of threads that are stopped"))
        return false;
    *out_reason = reason;
    return true;
}

size_t runtime_method_append_name(struct buffer *out, const struct runtime_method_event *m)
{
    size_t replaced = 0;
    if (m->type.size) {
        replaced += utf16_append_utf8(out, m->type);
        buffer_string(out, "::");
    }
    replaced += utf16_append_utf8(out, m->name);
    size_t paren = 0;
    while (paren < m->signature.size && load_u16le(m->signature.data + paren) != '(')
        paren += 2;
    replaced += utf16_append_utf8(out, span_part(m->signature, paren, m->signature.size - paren));
    return replaced;
}

bool runtime_text_is_told(struct span text)
{
    static const char none[] = "NULL";
    return !span_equals(text, span_of(none, sizeof none - 1));
}
