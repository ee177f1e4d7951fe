#include "import/nettrace_methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/kept_rows.h"
#include "clr/method_code.h"
#include "clr/module_name.h"

enum {
    METHODS_MAX = 4 << 20,
    METHOD_BYTES_MAX = 1 << 30, /* of all payloads */
    MODULES_MAX = 1 << 18,
    METHOD_NAME_MAX = 1 << 20,
};

/* A region of code and what the runtime said of it; its name is made when it is needed. */
struct told_method {
    uint64_t addr, end;
    uint64_t from_ns, to_ns; /* 0: since before / until after */
    uint64_t reach;          /* sorted: the largest `end` of this row and those before it in its process */
    uint32_t process;
    uint32_t payload_off, payload_bytes;
    uint32_t version;
    uint32_t code; /* row of trace.codes, once it was needed */
    bool verbose;
};

struct told_module {
    uint64_t module_id;
    uint32_t process;
    uint32_t path; /* string */
    size_t at;     /* the later one counts */
};

void nettrace_methods_init(struct nettrace_methods *m)
{
    *m = (struct nettrace_methods){ 0 };
    m->rows = mem_grow(NULL, &m->capacity, 1, sizeof *m->rows);
    m->rows[0] = (struct told_method){ 0 };
    m->count = 1;
    buffer_init(&m->payloads, METHOD_BYTES_MAX);
    buffer_init(&m->text, METHOD_NAME_MAX);
}

void nettrace_methods_done(struct nettrace_methods *m)
{
    free(m->rows);
    free(m->modules);
    id_map_done(&m->latest);
    buffer_done(&m->payloads);
    buffer_done(&m->text);
}

struct method_place {
    uint64_t addr;
    uint32_t process;
};

static uint64_t place_hash(const struct method_place *place)
{
    return hash_pair(place->addr, place->process);
}

static bool place_same(const void *table, uint32_t id, const void *key)
{
    const struct nettrace_methods *m = table;
    const struct method_place *place = key;
    return m->rows[id].addr == place->addr && m->rows[id].process == place->process;
}

static bool keep_payload(struct nettrace_methods *m, struct told_method *row, struct span payload)
{
    if (payload.size > m->payloads.ceiling - m->payloads.size) {
        m->refused++;
        return false;
    }
    row->payload_off = (uint32_t)m->payloads.size;
    row->payload_bytes = (uint32_t)payload.size;
    buffer_append(&m->payloads, payload.data, payload.size);
    return true;
}

/* A row of its own, which is the latest at its address. */
static void method_add(struct nettrace_methods *m, const struct method_place *place, uint32_t before,
                       struct told_method row, struct span payload)
{
    if (m->count > METHODS_MAX || !keep_payload(m, &row, payload)) {
        m->refused += m->count > METHODS_MAX;
        return;
    }
    m->rows = mem_grow(m->rows, &m->capacity, m->count + 1, sizeof *m->rows);
    uint32_t id = (uint32_t)m->count++;
    m->rows[id] = row;
    if (before)
        id_map_replace(&m->latest, place_hash(place), before, id);
    else
        id_map_add(&m->latest, place_hash(place), id);
}

void nettrace_methods_tell(struct nettrace_methods *m, uint32_t process, enum runtime_event_kind kind,
                           bool verbose, uint32_t version, uint64_t time_ns, struct span payload)
{
    struct runtime_method_range range;
    if (!runtime_method_range_read(payload, &range)) {
        m->malformed++;
        return;
    }
    struct method_place place = { range.addr, process };
    struct told_method row = {
        .addr = range.addr, .end = range.end, .process = process, .version = version, .verbose = verbose
    };
    uint32_t id = id_map_find(&m->latest, place_hash(&place), place_same, m, &place);
    struct told_method *now = id ? &m->rows[id] : NULL;
    bool lives = now && now->to_ns == 0;
    if (kind == RUNTIME_EVENT_METHOD_UNLOAD && lives) {
        now->to_ns = time_ns;
    } else if (kind == RUNTIME_EVENT_METHOD_EXISTS && lives) {
        if (verbose && !now->verbose && keep_payload(m, now, payload))
            now->verbose = true; /* its load had no name */
        return;
    } else {
        if (kind == RUNTIME_EVENT_METHOD_LOAD && lives)
            now->to_ns = time_ns; /* nobody told of its end */
        row.from_ns = kind == RUNTIME_EVENT_METHOD_LOAD ? time_ns : now ? now->to_ns : 0;
        row.to_ns = kind == RUNTIME_EVENT_METHOD_UNLOAD ? time_ns : 0;
        method_add(m, &place, id, row, payload);
        return;
    }
    if (verbose && !now->verbose && keep_payload(m, now, payload))
        now->verbose = true;
}

static uint32_t add_utf16(struct nettrace_methods *m, struct trace_builder *b, struct span text)
{
    buffer_clear(&m->text);
    utf16_append_utf8(&m->text, text);
    return intern_add(&b->trace.strings, buffer_span(&m->text));
}

void nettrace_methods_tell_module(struct nettrace_methods *m, struct trace_builder *b, uint32_t process,
                                  uint32_t version, struct span payload)
{
    struct runtime_module_event module;
    if (!runtime_module_event_read(payload, version, &module, NULL)) {
        m->malformed++;
        return;
    }
    if (m->module_count == MODULES_MAX) {
        m->refused++;
        return;
    }
    m->modules = mem_grow(m->modules, &m->module_capacity, m->module_count + 1, sizeof *m->modules);
    m->modules[m->module_count] = (struct told_module){
        .module_id = module.module_id,
        .process = process,
        .path = add_utf16(m, b, module.il_path),
        .at = m->module_count,
    };
    m->module_count++;
}

/* Looking up. */

static int row_compare(const void *a, const void *b)
{
    const struct told_method *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int module_compare(const void *a, const void *b)
{
    const struct told_module *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->module_id != y->module_id)
        return x->module_id < y->module_id ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorts what was told; from here on ids are places in the order of addresses. */
static void methods_sort(struct nettrace_methods *m)
{
    if (m->count > 1)
        qsort(&m->rows[1], m->count - 1, sizeof *m->rows, row_compare);
    for (size_t i = 1; i < m->count; i++) {
        m->rows[i].reach = m->rows[i].end;
        if (m->rows[i - 1].process == m->rows[i].process && m->rows[i - 1].reach > m->rows[i].reach)
            m->rows[i].reach = m->rows[i - 1].reach;
    }
    if (!m->module_count)
        return;
    qsort(m->modules, m->module_count, sizeof *m->modules, module_compare);
    size_t kept = 0;
    for (size_t i = 1; i < m->module_count; i++) {
        bool same = m->modules[kept].process == m->modules[i].process &&
                    m->modules[kept].module_id == m->modules[i].module_id;
        kept += !same;
        m->modules[kept] = m->modules[i];
    }
    m->module_count = kept + 1;
}

static uint32_t module_path(const struct nettrace_methods *m, uint32_t process, uint64_t module_id)
{
    size_t low = 0, high = m->module_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct told_module *row = &m->modules[middle];
        if (row->process < process || (row->process == process && row->module_id < module_id))
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < m->module_count && m->modules[low].process == process && m->modules[low].module_id == module_id;
    return found ? m->modules[low].path : 0;
}

/* The number of rows that begin at or before an address of a process. */
static size_t rows_up_to(const struct nettrace_methods *m, uint32_t process, uint64_t addr)
{
    size_t low = 1, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct told_method *row = &m->rows[middle];
        if (row->process < process || (row->process == process && row->addr <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The row that covers an address at a time, or 0. *out_steady: at all times it is that one. */
static size_t row_at(const struct nettrace_methods *m, uint32_t process, uint64_t addr, uint64_t time_ns,
                     bool *out_steady)
{
    size_t best = 0, covering = 0;
    for (size_t i = rows_up_to(m, process, addr) - 1;
         i > 0 && m->rows[i].process == process && m->rows[i].reach > addr; i--) {
        const struct told_method *row = &m->rows[i];
        if (row->end <= addr)
            continue;
        covering += row->to_ns ? 2 : 1;
        if (row->from_ns > time_ns || (row->to_ns && row->to_ns <= time_ns))
            continue;
        /* of two that could be there: the one of which more is known */
        const struct told_method *now = &m->rows[best];
        if (!best || row->from_ns > now->from_ns ||
            (row->from_ns == now->from_ns && row->to_ns && (!now->to_ns || row->to_ns < now->to_ns)))
            best = i;
    }
    *out_steady = covering <= 1;
    return best;
}

/* Naming. */

static enum code_kind kind_of(const struct runtime_method_event *e)
{
    if (e->flags & RUNTIME_METHOD_HELPER)
        return CODE_STUB;
    if (e->flags & RUNTIME_METHOD_DYNAMIC)
        return CODE_DYNAMIC;
    return e->flags & RUNTIME_METHOD_JITTED ? CODE_JIT : CODE_R2R;
}

/* The row of trace.codes of a method, or 0 when it has no name. */
static uint32_t code_of(struct nettrace_methods *m, struct trace_builder *b, size_t at)
{
    struct told_method *row = &m->rows[at];
    struct runtime_method_event e;
    if (row->code || !at)
        return row->code;
    struct span payload = span_part(buffer_span(&m->payloads), row->payload_off, row->payload_bytes);
    if (!runtime_method_event_read(payload, row->version, row->verbose, &e, NULL) || !e.name.size)
        return 0;
    buffer_clear(&m->text);
    runtime_method_append_name(&m->text, &e);
    uint32_t path = module_path(m, row->process, e.module_id);
    struct trace_function function = {
        .name = intern_add(&b->trace.strings, buffer_span(&m->text)),
        .module =
            path ? trace_add_span(&b->trace, module_simple_name(trace_string_span(&b->trace, path))) : 0,
        .kind = (uint8_t)kind_of(&e),
    };
    uint8_t tier = (uint8_t)method_code_tier(&e), resolver = RESOLVER_EVENTPIPE;
    struct kept_method kept;
    if (m->is_ours && kept_is_method_addr(row->addr) && kept_method_read(e.rest, &kept)) {
        function.kind = kept.kind;
        function.type_params = add_utf16(m, b, kept.type_params);
        tier = kept.tier;
        resolver = kept.resolver;
    }
    row->code = trace_push(&b->trace.codes);
    b->trace.codes.rows[row->code] = (struct trace_code){
        .process = row->process,
        .function = trace_builder_function(b, &function),
        .addr = row->addr,
        .size_bytes = row->end - row->addr,
        .from_ns = row->from_ns,
        .to_ns = row->to_ns,
        .module_path = path,
        .token = e.flags & RUNTIME_METHOD_DYNAMIC ? 0 : e.token,
        .tier = tier,
        .resolver = resolver,
    };
    return row->code;
}

static void location_name(struct trace *t, uint32_t location)
{
    struct trace_location *row = &t->locations.rows[location];
    const struct trace_code *code = &t->codes.rows[row->code];
    row->unnamed = row->code ? UNNAMED_NOT : UNNAMED_JIT_UNKNOWN;
    if (!row->code)
        return;
    row->function = code->function;
    row->tier = code->tier;
    row->resolver = code->resolver;
}

struct stack_times {
    struct nettrace_methods *m;
    struct trace_builder *b;
    bool *by_location; /* what lay there depends on the time */
    bool *by_stack;    /* some frame of it does */
    size_t stacks;
};

static uint32_t code_at(void *user, uint32_t location, uint64_t time_ns)
{
    struct stack_times *times = user;
    if (!times->by_location[location])
        return 0;
    const struct trace_location *row = &times->b->trace.locations.rows[location];
    bool steady;
    uint64_t inside = row->addr - (row->is_return && row->addr);
    return code_of(times->m, times->b, row_at(times->m, row->process, inside, time_ns, &steady));
}

/* A sample's or event's stack as of its time. */
static uint32_t stack_then(struct stack_times *times, uint32_t stack, uint64_t time_ns)
{
    if (stack >= times->stacks || !times->by_stack[stack])
        return stack;
    return trace_builder_stack_at(times->b, stack, time_ns, code_at, times);
}

static void stacks_by_time(struct stack_times *times)
{
    struct trace *t = &times->b->trace;
    times->stacks = t->stacks.count;
    AUTO_FREE bool *by_stack = mem_alloc(times->stacks, sizeof *by_stack);
    times->by_stack = by_stack;
    for (size_t i = STACK_ROOTS; i < times->stacks; i++)
        by_stack[i] = by_stack[t->stacks.rows[i].parent] || times->by_location[t->stacks.rows[i].location];
    for (size_t i = 0; i < t->samples.count; i++)
        t->samples.stack[i] = stack_then(times, t->samples.stack[i], t->samples.time_ns[i]);
    for (size_t i = 1; i < t->events.count; i++)
        t->events.rows[i].stack = stack_then(times, t->events.rows[i].stack, t->events.rows[i].time_ns);
}

void nettrace_methods_name(struct nettrace_methods *m, bool is_ours, struct trace_builder *b)
{
    struct trace *t = &b->trace;
    size_t locations = t->locations.count, by_time = 0;
    AUTO_FREE bool *by_location = mem_alloc(locations, sizeof *by_location);
    m->is_ours = is_ours;
    methods_sort(m);
    for (uint32_t i = 1; i < locations; i++) {
        struct trace_location *row = &t->locations.rows[i];
        bool steady;
        if (!row->process || row->function)
            continue;
        uint64_t inside = row->addr - (row->is_return && row->addr);
        size_t at = row_at(m, row->process, inside, row->first_ns, &steady);
        by_location[i] = !steady;
        by_time += !steady;
        if (steady)
            row->code = code_of(m, b, at);
    }
    if (by_time)
        stacks_by_time(&(struct stack_times){ .m = m, .b = b, .by_location = by_location });
    for (uint32_t i = 1; i < t->locations.count; i++)
        if (t->locations.rows[i].process && !t->locations.rows[i].function)
            location_name(t, i);
}
