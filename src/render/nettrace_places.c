#include "render/nettrace_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/kept_rows.h"
#include "clr/runtime_events.h"

enum { PAYLOAD_BYTES_MAX = 1 << 20, MODULE_BYTES = 16, EVENT_METHOD = 144, EVENT_MODULE = 154, LEVEL = 4 };

/* Above the methods'. */
static const uint64_t MODULES_AT = 0x18000000000;

struct nettrace_place {
    uint32_t location; /* the first one there; all have the same function, tier and resolver */
};

void nettrace_places_init(struct nettrace_places *p, const struct trace *t)
{
    *p = (struct nettrace_places){ .t = t, .count = STACK_ROOTS };
    p->of_location = mem_alloc(t->locations.count, sizeof *p->of_location);
}

void nettrace_places_done(struct nettrace_places *p)
{
    free(p->rows);
    free(p->of_location);
    id_map_done(&p->ids);
}

static bool place_same(const void *table, uint32_t id, const void *key)
{
    const struct nettrace_places *p = table;
    const struct trace_location *row = &p->t->locations.rows[p->rows[id].location], *wanted = key;
    return row->function == wanted->function && row->tier == wanted->tier &&
           row->resolver == wanted->resolver;
}

static uint32_t place_of(struct nettrace_places *p, uint32_t location)
{
    const struct trace_location *row = &p->t->locations.rows[location];
    uint64_t hash = hash_pair(row->function, (uint64_t)row->tier << 8 | row->resolver);
    uint32_t id = id_map_find(&p->ids, hash, place_same, p, row);
    if (!id) {
        p->rows = mem_grow(p->rows, &p->capacity, p->count + 1, sizeof *p->rows);
        id = (uint32_t)p->count++;
        p->rows[id] = (struct nettrace_place){ location };
        id_map_add(&p->ids, hash, id);
    }
    return id;
}

uint64_t nettrace_places_frame(struct nettrace_places *p, uint32_t location)
{
    const struct trace_location *row = &p->t->locations.rows[location];
    if (!row->function)
        return row->addr;
    if (!p->of_location[location])
        p->of_location[location] = place_of(p, location);
    return kept_frame_addr(p->of_location[location]);
}

uint64_t nettrace_places_end(struct nettrace_places *p, enum stack_end end)
{
    p->ends[end] = true;
    return kept_frame_addr(end);
}

/* Telling. */

/* Who tells. */
struct place_teller {
    const struct nettrace_places *p;
    struct nettrace_stream *s;
    uint64_t time_ns;
    uint32_t method, module; /* types of the stream */
    struct buffer payload;
};

static uint32_t add_type(struct place_teller *t, uint32_t event_id, uint64_t keywords)
{
    return nettrace_stream_add_type(
        t->s, &(struct nettrace_stream_type){ .provider = RUNTIME_RUNDOWN_PROVIDER,
                                              .name = "",
                                              .event_id = event_id,
                                              .version = 1,
                                              .level = LEVEL,
                                              .keywords = keywords | KEPT_TOLD_KEYWORD });
}

/* "Ns.Type::Method(int)" in the three parts that the event has; a native name is all method. */
static void put_name(struct buffer *out, const char *name, enum code_kind kind)
{
    const char *arguments = strchr(name, '('), *method = name;
    size_t size = arguments && code_kind_is_managed(kind) ? (size_t)(arguments - name) : strlen(name);
    for (size_t i = 0; code_kind_is_managed(kind) && i + 1 < size; i++)
        if (name[i] == ':' && name[i + 1] == ':')
            method = name + i + 2;
    utf16_append_zstring(out, span_of(name, method > name ? (size_t)(method - name) - 2 : 0));
    utf16_append_zstring(out, span_of(method, size - (size_t)(method - name)));
    utf16_append_zstring(out, span_of(name + size, strlen(name + size)));
}

static enum runtime_tier told_tier(enum code_tier tier)
{
    static const uint8_t tiers[CODE_TIERS] = {
        [TIER_0] = RUNTIME_TIER_QUICK,
        [TIER_0_INSTRUMENTED] = RUNTIME_TIER_QUICK_INSTRUMENTED,
        [TIER_OSR] = RUNTIME_TIER_1_OSR,
        [TIER_1] = RUNTIME_TIER_1,
        [TIER_OPTIMIZED] = RUNTIME_TIER_OPTIMIZED,
    };
    return tier < CODE_TIERS ? (enum runtime_tier)tiers[tier] : RUNTIME_TIER_UNKNOWN; /* of a later version */
}

static uint32_t method_flags(enum code_kind kind, enum code_tier tier)
{
    uint32_t jitted = RUNTIME_METHOD_JITTED | (uint32_t)told_tier(tier) << RUNTIME_METHOD_TIER_SHIFT;
    return kind == CODE_R2R                            ? 0
           : kind == CODE_DYNAMIC                      ? RUNTIME_METHOD_DYNAMIC | jitted
           : kind == CODE_STUB || kind == CODE_RUNTIME ? RUNTIME_METHOD_HELPER
                                                       : jitted;
}

/* What the event says; what is kept behind it the caller adds. */
static void put_method(struct place_teller *t, uint32_t number, const char *name, enum code_kind kind,
                       enum code_tier tier, uint32_t module)
{
    struct buffer *out = &t->payload;
    buffer_u64le(out, kept_method_addr(number)); /* the method's id */
    buffer_u64le(out, MODULES_AT + (uint64_t)module * MODULE_BYTES);
    buffer_u64le(out, kept_method_addr(number));
    buffer_u32le(out, KEPT_METHOD_BYTES);
    buffer_u32le(out, 0); /* token */
    buffer_u32le(out, method_flags(kind, tier));
    put_name(out, name, kind);
    buffer_u16le(out, 0); /* runtime instance */
}

static void tell_methods(struct place_teller *t)
{
    const struct trace *trace = t->p->t;
    for (uint32_t i = STACK_ROOTS; i < t->p->count; i++) {
        const struct trace_location *row = &trace->locations.rows[t->p->rows[i].location];
        const struct trace_function *f = &trace->functions.rows[row->function];
        put_method(t, i, trace_string(trace, f->name), (enum code_kind)f->kind, (enum code_tier)row->tier,
                   f->module);
        kept_method_append(&t->payload, f, row, trace_string(trace, f->type_params));
        nettrace_stream_tell(t->s, t->method, t->time_ns, &t->payload);
    }
    for (enum stack_end end = STACK_TRUNCATED; end <= STACK_BROKEN; end++) {
        if (!t->p->ends[end])
            continue;
        put_method(t, end, end == STACK_BROKEN ? "[broken]" : "[truncated]", CODE_UNKNOWN, TIER_NONE, 0);
        nettrace_stream_tell(t->s, t->method, t->time_ns, &t->payload);
    }
}

static void tell_module(struct place_teller *t, uint32_t module)
{
    AUTO_FREE char *path = mem_format("%s.dll", trace_string(t->p->t, module));
    struct buffer *out = &t->payload;
    buffer_u64le(out, MODULES_AT + (uint64_t)module * MODULE_BYTES);
    buffer_u64le(out, MODULES_AT + (uint64_t)module * MODULE_BYTES); /* assembly */
    buffer_u64le(out, 0);                                            /* flags, reserved */
    utf16_append_zstring(out, span_of(path, strlen(path)));
    utf16_append_zstring(out, span_of("", 0));
    buffer_u16le(out, 0);
    nettrace_stream_tell(t->s, t->module, t->time_ns, out);
}

/* Readers show a module by its file's name without the ending. */
static void tell_modules(struct place_teller *t)
{
    const struct trace *trace = t->p->t;
    AUTO_FREE bool *told = mem_alloc(trace->strings.count, sizeof *told);
    for (uint32_t i = STACK_ROOTS; i < t->p->count; i++) {
        const struct trace_location *row = &trace->locations.rows[t->p->rows[i].location];
        uint32_t module = trace->functions.rows[row->function].module;
        if (module && !told[module])
            tell_module(t, module);
        told[module] = true;
    }
}

void nettrace_places_tell(const struct nettrace_places *p, struct nettrace_stream *s, uint64_t time_ns)
{
    struct place_teller t = { .p = p, .s = s, .time_ns = time_ns };
    buffer_init(&t.payload, PAYLOAD_BYTES_MAX);
    t.method = add_type(&t, EVENT_METHOD, RUNTIME_KEYWORD_JIT | RUNTIME_KEYWORD_NGEN);
    t.module = add_type(&t, EVENT_MODULE, RUNTIME_KEYWORD_LOADER);
    tell_methods(&t);
    tell_modules(&t);
    buffer_done(&t.payload);
}
