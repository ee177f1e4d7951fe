#include "import/universal_import.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/jit_name.h"
#include "trace/facts.h"

enum {
    FRAMES_MAX = 1024,
    ROWS_MAX = 8 << 20, /* of each table */
    PAGE_LAST = 4095,
    IDENTITIES_BACK = 4096, /* that are looked through for a mapping's */
    OVERLAPS_MAX = 64,      /* mappings that lay at one address, one after the other */
};

#define KERNEL_BEGIN (UINT64_C(1) << 63)
#define MARKS_BEGIN  UINT64_C(0xfffffffffffff000) /* PERF_CONTEXT_USER and the like */

struct universal_place {
    uint64_t start, end;
    uint64_t mapping_id;
    uint32_t process;
};

/* Of the kernel all are of one mapping. */
struct universal_name {
    uint64_t mapping_id; /* 0: the kernel's */
    uint64_t start, last;
    uint32_t name; /* string */
};

struct universal_identity {
    uint64_t id;
    uint32_t build_id; /* string */
};

/* A row more of a table, zeroed; NULL when there are too many. */
static void *add_row(struct universal_import *u, void *table, size_t *count, size_t *capacity,
                     size_t row_size)
{
    char **rows = table;
    if (*count == ROWS_MAX) {
        u->refused++;
        return NULL;
    }
    *rows = mem_grow(*rows, capacity, *count + 1, row_size);
    return memset(*rows + (*count)++ * row_size, 0, row_size);
}

/* Processes. */

static void take_process(struct universal_import *u, uint32_t pid, const struct nettrace_event *event)
{
    struct universal_process told;
    if (!universal_process_read(event->payload, &told, NULL)) {
        u->malformed++;
        return;
    }
    uint32_t process = trace_builder_process(u->b, pid);
    uint64_t ended_ns = process ? u->b->trace.processes.rows[process].to_ns : 0;
    process = ended_ns && ended_ns <= event->time_ns
                  ? trace_builder_process_fork(u->b, 0, pid, event->time_ns) /* the number is another's now */
                  : trace_builder_process_start(u->b, pid, event->time_ns);
    struct trace_process *row = &u->b->trace.processes.rows[process];
    row->ns_pid = told.ns_pid <= UINT32_MAX ? (uint32_t)told.ns_pid : 0;
    if (told.name.size)
        row->name = intern_add(&u->b->trace.strings, told.name);
    trace_builder_thread_name(u->b, pid, pid, told.name, event->time_ns);
}

/* Mappings. */

static void take_identity(struct universal_import *u, struct span payload)
{
    struct universal_metadata told;
    char build_id[UNIVERSAL_BUILD_ID_MAX + 1];
    if (!universal_metadata_read(payload, &told, NULL)) {
        u->malformed++;
        return;
    }
    if (!universal_build_id(told.symbols, build_id))
        return;
    struct universal_identity *row = add_row(u, &u->files, &u->file_count, &u->file_capacity, sizeof *row);
    if (row)
        *row = (struct universal_identity){ told.id, trace_add_string(&u->b->trace, build_id) };
}

/* It was told shortly before the first mapping of the file. */
static uint32_t build_id_of(const struct universal_import *u, uint64_t id)
{
    size_t last = u->file_count > IDENTITIES_BACK ? u->file_count - IDENTITIES_BACK : 0;
    for (size_t i = u->file_count; id && i-- > last;)
        if (u->files[i].id == id)
            return u->files[i].build_id;
    return 0;
}

static void take_mapping(struct universal_import *u, uint32_t pid, const struct nettrace_event *event)
{
    struct universal_mapping told;
    struct trace *t = &u->b->trace;
    if (!universal_mapping_read(event->payload, &told, NULL) || told.end <= told.start) {
        u->malformed++;
        return;
    }
    if ((told.end & PAGE_LAST) == PAGE_LAST) /* of those that came later the last byte is told */
        told.end++;
    if (told.start >= KERNEL_BEGIN)
        return;
    size_t images = t->images.count;
    uint32_t process = trace_builder_process_start(u->b, pid, event->time_ns);
    enum image_kind kind = told.path.size ? mapped_file_kind(told.path) : IMAGE_ANON;
    uint32_t image = trace_builder_image(u->b, told.path, kind, 0, 0, 0);
    if (t->images.count > images)
        t->images.rows[image].build_id = build_id_of(u, told.metadata_id);
    trace_builder_mapping(u->b, process, told.start, told.end - told.start, told.file_off, image,
                          event->time_ns);
    struct universal_place *row = add_row(u, &u->places, &u->place_count, &u->place_capacity, sizeof *row);
    if (row)
        *row = (struct universal_place){ told.start, told.end, told.id, process };
}

/* Names. */

static void take_symbol(struct universal_import *u, struct span payload)
{
    struct universal_symbol told;
    if (!universal_symbol_read(payload, &told, NULL) || told.end < told.start) {
        u->malformed++;
        return;
    }
    struct universal_name *row = add_row(u, &u->names, &u->name_count, &u->name_capacity, sizeof *row);
    if (row)
        *row = (struct universal_name){ told.start >= KERNEL_BEGIN ? 0 : told.mapping_id, told.start,
                                        told.end, intern_add(&u->b->trace.strings, told.name) };
}

void universal_import_tell(struct universal_import *u, enum universal_event kind,
                           const struct nettrace_event *event)
{
    if (event->process_id == 0 || event->process_id > UINT32_MAX)
        return;
    uint32_t pid = (uint32_t)event->process_id;
    switch (kind) {
    case UNIVERSAL_PROCESS:
        take_process(u, pid, event);
        break;
    case UNIVERSAL_EXIT:
        trace_builder_process_exit(u->b, pid, event->time_ns);
        break;
    case UNIVERSAL_MAPPING:
        take_mapping(u, pid, event);
        break;
    case UNIVERSAL_METADATA:
        take_identity(u, event->payload);
        break;
    case UNIVERSAL_SYMBOL:
        take_symbol(u, event->payload);
        break;
    case UNIVERSAL_NONE:
    case UNIVERSAL_CPU:
    case UNIVERSAL_SWITCH:
        break;
    }
}

/* Samples. */

/* Leaf first, without the kernel's marks; kernel frames come first. */
static size_t read_frames(struct span stack, uint64_t frames[FRAMES_MAX])
{
    size_t count = 0;
    for (size_t at = 0; at + 8 <= stack.size && count < FRAMES_MAX; at += 8) {
        uint64_t addr = load_u64le(stack.data + at);
        if (addr && addr < MARKS_BEGIN)
            frames[count++] = addr;
    }
    return count;
}

void universal_import_sample(struct universal_import *u, const struct nettrace_event *event,
                             uint32_t period_ns)
{
    uint64_t frames[FRAMES_MAX], value;
    if (!universal_value_read(event->payload, &value, NULL)) {
        u->malformed++;
        return;
    }
    if (event->process_id == 0 || event->process_id > UINT32_MAX || event->thread_id > UINT32_MAX)
        return; /* of no process: an idle CPU */
    size_t count = read_frames(event->stack, frames), kernel = 0;
    while (kernel < count && frames[kernel] >= KERNEL_BEGIN)
        kernel++;
    struct raw_sample raw = {
        .time_ns = event->time_ns,
        .weight = period_ns ? value * period_ns : value,
        .kernel = frames,
        .user = frames + kernel,
        .kernel_count = kernel,
        .user_count = count - kernel,
        .pid = (uint32_t)event->process_id,
        .tid = (uint32_t)event->thread_id,
        .cpu = event->processor <= UINT16_MAX ? (uint16_t)event->processor : 0,
        .kind = SAMPLE_CPU,
    };
    uint32_t process = trace_builder_process_start(u->b, raw.pid, event->time_ns);
    bool whole = raw.user_count ? root_images_have(&u->roots, u->b, process, frames[count - 1]) : count > 0;
    raw.end = count == FRAMES_MAX ? STACK_TRUNCATED : whole ? STACK_WHOLE : STACK_BROKEN;
    trace_builder_sample(u->b, &raw);
    u->samples++;
}

/* What the names are of. */

static int compare_places(const void *a, const void *b)
{
    const struct universal_place *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static int compare_names(const void *a, const void *b)
{
    const struct universal_name *x = a, *y = b;
    if (x->mapping_id != y->mapping_id)
        return x->mapping_id < y->mapping_id ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* The last of those that begin at or before an address and reach to it. */
static const struct universal_name *find_name(const struct universal_import *u, uint64_t mapping_id,
                                              uint64_t addr)
{
    size_t low = 0, high = u->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct universal_name *row = &u->names[middle];
        if (row->mapping_id < mapping_id || (row->mapping_id == mapping_id && row->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    const struct universal_name *row = low ? &u->names[low - 1] : NULL;
    return row && row->mapping_id == mapping_id && row->last >= addr ? row : NULL;
}

static const struct universal_name *find_in_process(const struct universal_import *u, uint32_t process,
                                                    uint64_t addr)
{
    size_t low = 0, high = u->place_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct universal_place *row = &u->places[middle];
        if (row->process < process || (row->process == process && row->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t tries = 0; low-- > 0 && tries < OVERLAPS_MAX && u->places[low].process == process; tries++) {
        const struct universal_name *name =
            u->places[low].end > addr ? find_name(u, u->places[low].mapping_id, addr) : NULL;
        if (name)
            return name;
    }
    return NULL;
}

/* "libc.so.6" of a path. */
static const char *file_of(const struct trace *t, const struct trace_location *row)
{
    const char *path = trace_string(t, t->images.rows[t->mappings.rows[row->mapping].image].path);
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void name_location(struct universal_import *u, uint32_t id, const char *text, struct jit_name *parsed)
{
    struct trace *t = &u->b->trace;
    const struct trace_location *row = &t->locations.rows[id];
    uint8_t image = t->images.rows[t->mappings.rows[row->mapping].image].kind;
    bool jitted = row->process && (image == IMAGE_JIT || image == IMAGE_ANON);
    struct code_name name = { .name = text,
                              .module = row->process ? file_of(t, row) : "[kernel]",
                              .kind = row->process ? CODE_NATIVE : CODE_KERNEL };
    if (jitted)
        jit_name_parse(parsed, span_of(text, strlen(text)), "", &name);
    const struct trace_function function = {
        .name = trace_add_string(t, name.name),
        .module = trace_add_string(t, name.module ? name.module : ""),
        .kind = (uint8_t)name.kind,
    };
    uint32_t named = trace_builder_function(u->b, &function);
    t->locations.rows[id].function = named;
    t->locations.rows[id].tier = (uint8_t)name.tier;
    t->locations.rows[id].resolver = jitted ? RESOLVER_PERF_MAP : RESOLVER_IMPORTED;
}

static void name_all(struct universal_import *u)
{
    struct trace *t = &u->b->trace;
    struct jit_name parsed;
    if (u->place_count)
        qsort(u->places, u->place_count, sizeof *u->places, compare_places);
    if (u->name_count)
        qsort(u->names, u->name_count, sizeof *u->names, compare_names);
    jit_name_init(&parsed);
    for (uint32_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        uint64_t inside = row->addr - (row->is_return && row->addr);
        const struct universal_name *name = row->function  ? NULL
                                            : row->process ? find_in_process(u, row->process, inside)
                                                           : find_name(u, 0, inside);
        if (name)
            name_location(u, i, trace_string(t, name->name), &parsed);
    }
    jit_name_done(&parsed);
}

void universal_import_finish(struct universal_import *u, uint32_t period_ns)
{
    struct trace *t = &u->b->trace;
    if (!u->samples)
        return;
    name_all(u);
    trace_set_fact(t, FACT_EVENT, "cpu");
    trace_set_fact(t, FACT_UNIT, period_ns ? "ns" : "count");
    trace_set_fact(t, FACT_KERNEL_FRAMES, "yes");
    if (period_ns)
        trace_set_fact_number(t, FACT_RATE_HZ, 1000000000 / period_ns);
}

void universal_import_done(struct universal_import *u)
{
    free(u->places);
    free(u->names);
    free(u->files);
    root_images_done(&u->roots);
}
