#include "trace/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "trace/address_space.h"
#include "trace/builder_stacks.h"
#include "trace/past_mappings.h"

void trace_builder_init(struct trace_builder *b, size_t chains)
{
    *b = (struct trace_builder){ 0 };
    trace_init(&b->trace);
    function_index_init(&b->functions, &b->trace);
    b->chains = chain_cache_new(chains);
    b->memo = location_memo_new(chains, &b->memo_shift);
    place_filter_init(&b->places, chains);
    b->spaces = BUILDER_KERNEL_SPACE;
    b->paths = mem_alloc((size_t)STACK_PATHS_MAX * TRACE_STACK_DEPTH_MAX, sizeof *b->paths);
    stack_table_init(&b->stacks);
}

/* What was known of its code. */
static void state_forget(struct process_state *state)
{
    address_space_done(state->mappings);
    past_mappings_done(state->past);
    address_space_done(state->codes);
}

void trace_builder_done(struct trace_builder *b)
{
    for (size_t i = 0; b->states && i < b->trace.processes.count; i++) {
        if (!b->states[i].mappings)
            continue;
        state_forget(&b->states[i]);
        free(b->states[i].mappings);
        free(b->states[i].past);
        free(b->states[i].codes);
    }
    free(b->states);
    function_index_done(&b->functions);
    stack_table_done(&b->stacks);
    free(b->memo);
    place_filter_done(&b->places);
    free(b->paths);
    id_map_done(&b->images);
    id_map_done(&b->threads);
    id_map_done(&b->pids);
    id_map_done(&b->event_types);
    chain_cache_free(b->chains);
    free(b->changed);
    free(b->ended);
    trace_done(&b->trace);
    *b = (struct trace_builder){ 0 };
}

void trace_builder_changed(struct trace_builder *b, enum trace_changed_table table, uint32_t id)
{
    b->changed = mem_grow(b->changed, &b->changed_capacity, b->changed_count + 1, sizeof *b->changed);
    b->changed[b->changed_count++] = (uint64_t)table << 32 | id;
}

/* Processes. */

static bool process_same(const void *table, uint32_t id, const void *key)
{
    const struct trace *t = table;
    return t->processes.rows[id].pid == *(const uint32_t *)key;
}

static uint64_t pid_hash(uint32_t pid)
{
    return hash_pair(pid, 0x7069640000000000ull);
}

uint32_t trace_builder_process(const struct trace_builder *b, uint32_t pid)
{
    return id_map_find(&b->pids, pid_hash(pid), process_same, &b->trace, &pid);
}

/* A row of whose process nothing new is told: samples of it may still wait. */
static void process_over(struct trace_builder *b, uint32_t id, uint64_t time_ns)
{
    b->trace.processes.rows[id].to_ns = time_ns;
    trace_builder_changed(b, CHANGED_PROCESS, id);
    b->ended = mem_grow(b->ended, &b->ended_capacity, b->ended_count + 1, sizeof *b->ended);
    b->ended[b->ended_count++] = id;
}

/* Makes a row the current process of its pid. */
static void process_enter(struct trace_builder *b, uint32_t id)
{
    uint32_t pid = b->trace.processes.rows[id].pid;
    uint32_t before = trace_builder_process(b, pid);
    if (before)
        id_map_replace(&b->pids, pid_hash(pid), before, id);
    else
        id_map_add(&b->pids, pid_hash(pid), id);
    if (before && !b->trace.processes.rows[before].to_ns)
        process_over(b, before, b->trace.processes.rows[id].from_ns);

    b->states = mem_grow_zeroed(b->states, &b->states_capacity, id + 1, sizeof *b->states);
    b->states[id].mappings = mem_alloc(1, sizeof *b->states[id].mappings);
    b->states[id].past = mem_alloc(1, sizeof *b->states[id].past);
    b->states[id].codes = mem_alloc(1, sizeof *b->states[id].codes);
    b->states[id].space = ++b->spaces;
}

static uint32_t process_begin(struct trace_builder *b, uint32_t pid, uint64_t time_ns)
{
    uint32_t id = trace_push(&b->trace.processes);
    b->trace.processes.rows[id] = (struct trace_process){ .pid = pid, .from_ns = time_ns };
    process_enter(b, id);
    return id;
}

static uint64_t event_type_hash(const struct trace_event_type *type)
{
    return hash_pair(hash_pair(type->event_id, type->version), hash_pair(type->provider, type->name));
}

void trace_builder_adopt(struct trace_builder *b, struct trace *t)
{
    function_index_done(&b->functions);
    trace_done(&b->trace);
    b->trace = *t;
    *t = (struct trace){ 0 };
    function_index_init(&b->functions, &b->trace);
    for (uint32_t id = 1; id < b->trace.event_types.count; id++)
        id_map_add(&b->event_types, event_type_hash(&b->trace.event_types.rows[id]), id);
    for (uint32_t id = 1; id < b->trace.processes.count; id++)
        process_enter(b, id);
    for (uint32_t id = 1; id < b->trace.mappings.count; id++) {
        const struct trace_mapping *row = &b->trace.mappings.rows[id];
        if (row->process && row->start < row->end)
            address_space_put(b->states[row->process].mappings, row->start, row->end, id);
    }
    for (uint32_t id = 1; id < b->trace.codes.count; id++) {
        const struct trace_code *row = &b->trace.codes.rows[id];
        uint64_t end;
        if (row->process && row->size_bytes && !row->to_ns &&
            !__builtin_add_overflow(row->addr, row->size_bytes, &end))
            address_space_put(b->states[row->process].codes, row->addr, end, id);
    }
}

uint32_t trace_builder_process_start(struct trace_builder *b, uint32_t pid, uint64_t time_ns)
{
    uint32_t id = trace_builder_process(b, pid);
    return id ? id : process_begin(b, pid, time_ns);
}

uint32_t trace_builder_process_fork(struct trace_builder *b, uint32_t parent_pid, uint32_t pid,
                                    uint64_t time_ns)
{
    uint32_t parent = trace_builder_process(b, parent_pid);
    uint32_t id = process_begin(b, pid, time_ns);
    if (parent && parent != id) {
        address_space_copy(b->states[id].mappings, b->states[parent].mappings);
        address_space_copy(b->states[id].codes, b->states[parent].codes);
        b->trace.processes.rows[id].name = b->trace.processes.rows[parent].name;
        b->trace.processes.rows[id].container = b->trace.processes.rows[parent].container;
    }
    return id;
}

/* Another program in the same process is a row of its own: its samples are not the former one's. */
void trace_builder_process_exec(struct trace_builder *b, uint32_t pid, struct span name, uint64_t time_ns)
{
    uint32_t before = trace_builder_process_start(b, pid, time_ns);
    const struct address_space *codes = b->states[before].codes;
    for (size_t i = 0; i < codes->count; i++) {
        struct trace_code *code = &b->trace.codes.rows[codes->ranges[i].mapping];
        if (code->process != before || code->to_ns)
            continue;
        code->to_ns = time_ns;
        trace_builder_changed(b, CHANGED_CODE, codes->ranges[i].mapping);
    }
    trace_builder_process_exit(b, pid, time_ns);
    uint32_t id = process_begin(b, pid, time_ns);
    const struct trace_process *former = &b->trace.processes.rows[before];
    struct trace_process *row = &b->trace.processes.rows[id];
    row->ns_pid = former->ns_pid;
    row->container = former->container;
    row->start_ticks = former->start_ticks;
    row->name = intern_add(&b->trace.strings, name);
}

void trace_builder_process_exit(struct trace_builder *b, uint32_t pid, uint64_t time_ns)
{
    uint32_t id = trace_builder_process(b, pid);
    if (id)
        process_over(b, id, time_ns);
}

void trace_builder_forget_ended(struct trace_builder *b, uint64_t before_ns)
{
    for (; b->ended_first < b->ended_count; b->ended_first++) {
        uint32_t id = b->ended[b->ended_first];
        if (b->trace.processes.rows[id].to_ns >= before_ns)
            break;
        state_forget(&b->states[id]);
    }
    if (!b->ended_first || b->ended_first < b->ended_count / 2)
        return;
    b->ended_count -= b->ended_first;
    memmove(b->ended, b->ended + b->ended_first, b->ended_count * sizeof *b->ended);
    b->ended_first = 0;
}

/* Threads. */

struct thread_key {
    uint32_t process, tid;
};

static bool thread_same(const void *table, uint32_t id, const void *key)
{
    const struct trace_thread *row = &((const struct trace *)table)->threads.rows[id];
    const struct thread_key *wanted = key;
    return row->process == wanted->process && row->tid == wanted->tid;
}

static uint32_t thread_get(struct trace_builder *b, uint32_t process, uint32_t tid, uint64_t time_ns)
{
    struct thread_key key = { process, tid };
    uint64_t hash = hash_pair(process, tid);
    uint32_t id = id_map_find(&b->threads, hash, thread_same, &b->trace, &key);
    if (id)
        return id;
    id = trace_push(&b->trace.threads);
    b->trace.threads.rows[id] = (struct trace_thread){ .process = process, .tid = tid, .from_ns = time_ns };
    id_map_add(&b->threads, hash, id);
    return id;
}

uint32_t trace_builder_find_thread(const struct trace_builder *b, uint32_t process, uint32_t tid)
{
    struct thread_key key = { process, tid };
    return id_map_find(&b->threads, hash_pair(process, tid), thread_same, &b->trace, &key);
}

uint32_t trace_builder_thread(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    return thread_get(b, trace_builder_process_start(b, pid, time_ns), tid, time_ns);
}

void trace_builder_thread_start(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    uint32_t process = trace_builder_process_start(b, pid, time_ns);
    uint32_t before = thread_get(b, process, tid, time_ns);
    if (!b->trace.threads.rows[before].to_ns)
        return;
    uint32_t id = trace_push(&b->trace.threads);
    b->trace.threads.rows[id] = (struct trace_thread){ .process = process, .tid = tid, .from_ns = time_ns };
    id_map_replace(&b->threads, hash_pair(process, tid), before, id);
}

void trace_builder_thread_name(struct trace_builder *b, uint32_t pid, uint32_t tid, struct span name,
                               uint64_t time_ns)
{
    uint32_t id = trace_builder_thread(b, pid, tid, time_ns);
    /* the kernel keeps 15 bytes of it, which may end in the middle of a letter */
    b->trace.threads.rows[id].name = intern_add(&b->trace.strings, utf8_whole(name));
    trace_builder_changed(b, CHANGED_THREAD, id);
}

void trace_builder_thread_exit(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    uint32_t id = trace_builder_thread(b, pid, tid, time_ns);
    b->trace.threads.rows[id].to_ns = time_ns;
    trace_builder_changed(b, CHANGED_THREAD, id);
}

/* Images and mappings. */

static bool image_same(const void *table, uint32_t id, const void *key)
{
    const struct trace_image *a = &((const struct trace *)table)->images.rows[id], *b = key;
    return a->path == b->path && a->kind == b->kind && a->inode == b->inode &&
           a->device_major == b->device_major && a->device_minor == b->device_minor;
}

uint32_t trace_builder_image(struct trace_builder *b, struct span path, enum image_kind kind, uint32_t major,
                             uint32_t minor, uint64_t inode)
{
    struct trace_image wanted = {
        .path = intern_add(&b->trace.strings, path),
        .kind = (uint8_t)kind,
        .device_major = major,
        .device_minor = minor,
        .inode = inode,
    };
    uint64_t hash = hash_pair((uint64_t)wanted.path << 8 | wanted.kind, inode ^ (uint64_t)major << 48);
    uint32_t id = id_map_find(&b->images, hash, image_same, &b->trace, &wanted);
    if (id)
        return id;
    id = trace_push(&b->trace.images);
    b->trace.images.rows[id] = wanted;
    id_map_add(&b->images, hash, id);
    return id;
}

uint32_t trace_builder_mapping_at(const struct trace_builder *b, uint32_t process, uint64_t addr)
{
    const struct address_range *range = address_space_find(b->states[process].mappings, addr);
    return range ? range->mapping : 0;
}

uint32_t trace_builder_mapping_then(const struct trace_builder *b, uint32_t process, uint64_t addr,
                                    uint64_t time_ns)
{
    uint32_t then = past_mappings_at(b->states[process].past, addr, time_ns);
    return then ? then : trace_builder_mapping_at(b, process, addr);
}

/*
 * The kernel reports a code heap that grows as the same mapping again, longer each time: that is the
 * old mapping, not another one.
 */
static bool mapping_grows(struct trace_builder *b, uint32_t process, const struct trace_mapping *next,
                          uint32_t *out)
{
    uint32_t id = trace_builder_mapping_at(b, process, next->start);
    if (!id)
        return false;
    struct trace_mapping *now = &b->trace.mappings.rows[id];
    if (now->process != process || now->image != next->image || now->start != next->start ||
        now->file_off != next->file_off || now->end > next->end)
        return false;
    if (now->end < next->end) {
        address_space_put(b->states[process].mappings, next->start, next->end, id);
        now->end = next->end;
        trace_builder_changed(b, CHANGED_MAPPING, id);
    }
    *out = id;
    return true;
}

uint32_t trace_builder_mapping(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t size_bytes,
                               uint64_t file_off, uint32_t image, uint64_t time_ns)
{
    uint64_t end;
    if (size_bytes == 0 || __builtin_add_overflow(start, size_bytes, &end))
        return 0;
    struct trace_mapping wanted = { process, image, start, end, file_off, time_ns, 0 };
    uint32_t id;
    if (mapping_grows(b, process, &wanted, &id))
        return id;
    id = trace_push(&b->trace.mappings);
    b->trace.mappings.rows[id] = wanted;
    past_mappings_keep(b->states[process].past, b->states[process].mappings, start, end, id, time_ns);
    address_space_put(b->states[process].mappings, start, end, id);
    b->states[process].space = ++b->spaces;
    return id;
}

void trace_builder_mapping_is(struct trace_builder *b, uint32_t mapping, uint32_t image, uint64_t file_off)
{
    b->trace.mappings.rows[mapping].image = image;
    b->trace.mappings.rows[mapping].file_off = file_off;
    trace_builder_changed(b, CHANGED_MAPPING, mapping);
}

/* Methods. */

uint32_t trace_builder_function(struct trace_builder *b, const struct trace_function *function)
{
    return function_index_add(&b->functions, &b->trace, function);
}

static void code_over(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t end,
                      uint64_t time_ns)
{
    const struct address_space *codes = b->states[process].codes;
    for (const struct address_range *range = address_space_next(codes, start); range && range->start < end;
         range = address_space_next(codes, range->end)) {
        struct trace_code *code = &b->trace.codes.rows[range->mapping];
        if (code->process == process && !code->to_ns) {
            code->to_ns = time_ns;
            trace_builder_changed(b, CHANGED_CODE, range->mapping);
        }
    }
}

/* What stacks were made of before does not change by code at places where they never were. */
static void code_changed(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t end)
{
    if (place_filter_may_have(&b->places, process, start, end))
        b->states[process].space = ++b->spaces;
}

uint32_t trace_builder_code(struct trace_builder *b, const struct trace_code *code)
{
    uint64_t end;
    if (code->size_bytes == 0 || __builtin_add_overflow(code->addr, code->size_bytes, &end))
        return 0;
    struct process_state *state = &b->states[code->process];
    const struct address_range *known = address_space_find(state->codes, code->addr);
    if (code->from_ns == 0 && known)
        return known->mapping;
    uint32_t id = trace_push(&b->trace.codes);
    b->trace.codes.rows[id] = *code;
    if (code->from_ns == 0)
        return id; /* the end of the capture: nothing is interned any more */
    code_over(b, code->process, code->addr, end, code->from_ns);
    address_space_put(state->codes, code->addr, end, id);
    /* what is remembered without code from ever will have its name nevertheless */
    if (code->from_ns != CODE_FROM_EVER)
        code_changed(b, code->process, code->addr, end);
    return id;
}

uint32_t trace_builder_code_at(const struct trace_builder *b, uint32_t process, uint64_t addr)
{
    const struct address_range *range = address_space_find(b->states[process].codes, addr);
    return range && !b->trace.codes.rows[range->mapping].to_ns ? range->mapping : 0;
}

uint32_t trace_builder_code_end(struct trace_builder *b, uint32_t process, uint64_t addr, uint64_t time_ns)
{
    const struct address_range *range = address_space_find(b->states[process].codes, addr);
    if (!range)
        return 0;
    uint32_t id = range->mapping;
    struct trace_code *code = &b->trace.codes.rows[id];
    if (code->addr != addr || code->to_ns)
        return 0;
    code->to_ns = time_ns;
    trace_builder_changed(b, CHANGED_CODE, id);
    code_changed(b, process, addr, addr + code->size_bytes);
    return id;
}

/* Events. */

static bool event_type_same(const void *table, uint32_t id, const void *key)
{
    const struct trace *t = table;
    const struct trace_event_type *a = &t->event_types.rows[id], *b = key;
    return a->event_id == b->event_id && a->version == b->version && a->provider == b->provider &&
           a->name == b->name && a->fields == b->fields && a->params == b->params &&
           a->keywords == b->keywords && a->level == b->level && a->opcode == b->opcode &&
           a->pointer_size == b->pointer_size && a->description == b->description;
}

uint32_t trace_builder_event_type(struct trace_builder *b, const struct trace_event_type *type)
{
    uint64_t hash = event_type_hash(type);
    uint32_t id = id_map_find(&b->event_types, hash, event_type_same, &b->trace, type);
    if (id)
        return id;
    id = trace_push(&b->trace.event_types);
    b->trace.event_types.rows[id] = *type;
    id_map_add(&b->event_types, hash, id);
    return id;
}

void trace_builder_loss(struct trace_builder *b, enum loss_reason reason, uint32_t process, uint64_t from_ns,
                        uint64_t to_ns, uint64_t count)
{
    uint32_t id = trace_push(&b->trace.losses);
    b->trace.losses.rows[id] = (struct trace_loss){ (uint8_t)reason, process, from_ns, to_ns, count };
}
