#include "cli/stack_async.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/awaited_name.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/stack_threads.h"
#include "clr/library_path.h"
#include "clr/method_name.h"
#include "clr/type_name.h"
#include "collect/process_pause.h"
#include "symbolize/pdb_file.h"
#include "symbolize/source_lines.h"

enum {
    PAUSE_MS = 2000, /* so long a process stands still at most */
    WALK_MS = 1800,  /* of which we walk */
    CORE_WALK_MS = 60000,
    COLLECTION_MS = 1000, /* to wait for the end of one */
    COLLECTION_LOOK_MS = 1,
    NAME_BYTES_MAX = 64 << 10,
};

struct reading {
    struct process_stacks *stacks;
    struct loaded_types *types;
    struct managed_threads threads;
    struct stack_async *async;
};

/* What the heap holds now: nobody may change it meanwhile. */
static bool read_still(struct reading *r, unsigned walk_ms, struct error *err)
{
    struct memory_pages *pages = r->types->pages;
    memory_pages_drop(pages);
    if (!managed_threads_read(&r->threads, pages))
        return error_set(err, ERROR_INPUT, "the runtime's list of threads makes no sense just now");
    if (!heap_map_read(&r->async->map, pages, &r->threads, err))
        return false;
    async_graph_read(r->types, &r->async->map, clock_monotonic_ns() + walk_ms * UINT64_C(1000000),
                     &r->async->graph);
    return true;
}

static bool in_collection(struct error *err)
{
    return error_set(err, ERROR_UNSUPPORTED,
                     "a garbage collection is moving objects, and the heap cannot be walked meanwhile");
}

/* Waits for a collection to end, if there is one. */
static bool wait_walkable(const struct reading *r, uint64_t deadline_ns)
{
    const struct memory *memory = r->stacks->target.memory;
    while (!heap_map_is_walkable(&r->async->map, memory)) {
        if (clock_monotonic_ns() >= deadline_ns)
            return false;
        poll(NULL, 0, COLLECTION_LOOK_MS);
    }
    return true;
}

static bool read_live(struct reading *r, struct live_memory *live, struct error *err)
{
    const struct memory *memory = r->stacks->target.memory;
    uint64_t deadline_ns = clock_monotonic_ns() + COLLECTION_MS * UINT64_C(1000000);
    while (wait_walkable(r, deadline_ns)) {
        struct process_pause *pause;
        if (!process_pause_begin(r->stacks->target.pid, PAUSE_MS, &pause, err))
            return false;
        bool walkable = heap_map_is_walkable(&r->async->map, memory);
        bool ok = !walkable || (live_memory_refresh(live, err) && read_still(r, WALK_MS, err));
        if (!process_pause_end(pause, &r->async->stopped_ns) && ok && walkable)
            return error_set(err, ERROR_LIMIT,
                             "the process went on before its heap was read: more than %d ms", PAUSE_MS);
        if (!ok || walkable)
            return ok;
    }
    return in_collection(err);
}

static void hint_whole_dump(struct error *err)
{
    error_hint(err, "createdump --withheap, --full and gcore make dumps that do");
}

static bool read_core(struct reading *r, struct error *err)
{
    const struct heap_walk_result *walk = &r->async->graph.walk;
    if (!heap_map_is_walkable(&r->async->map, r->stacks->target.memory))
        return in_collection(err);
    if (!read_still(r, CORE_WALK_MS, err))
        return false;
    if (walk->objects == 0 && walk->unreadable_bytes) {
        error_set(err, ERROR_UNSUPPORTED, "this dump does not hold the heap");
        hint_whole_dump(err);
        return false;
    }
    return true;
}

/* Names. */

static char *name_type(const struct async_type *type, bool raw_names)
{
    struct buffer text;
    buffer_init(&text, NAME_BYTES_MAX);
    struct span name = span_of(type->name, strlen(type->name));
    const char *words = type->kind == ASYNC_METHOD || raw_names ? NULL : awaited_name(type->name);
    if (words) {
        buffer_string(&text, words);
    } else if (type->kind == ASYNC_METHOD) {
        char *raw = mem_format("%s::MoveNext()", type->name);
        if (raw_names)
            buffer_string(&text, raw);
        else
            method_name_show(span_of(raw, strlen(raw)), ";;async", &text);
        free(raw);
    } else if (raw_names) {
        buffer_append(&text, name.data, name.size);
    } else {
        type_name_show(name, &text);
    }
    char *shown = mem_format("%.*s", (int)text.size, text.size ? (const char *)text.data : "");
    buffer_done(&text);
    return shown;
}

/* A single-file program has its assemblies inside, which the runtime says lie beside it. */
struct program_files {
    const struct module_files *files;
    const char *program; /* "" when they do lie beside it */
};

static bool open_assembly(void *user, const char *path, struct source *out)
{
    const struct program_files *own = user;
    const struct module_files *files = own->files;
    if (files->open(files->user, path, out))
        return true;
    AUTO_FREE char *inside = mem_format("%s/%s", own->program, pdb_file_name(path));
    return own->program[0] && span_ends(span_of(path, strlen(path)), ".dll") &&
           files->open(files->user, inside, out);
}

static void close_assembly(void *user, struct source *file)
{
    const struct program_files *own = user;
    own->files->close(own->files->user, file);
}

static const char *program_of(const struct process_stacks *stacks)
{
    const struct memory_mapping *m =
        memory_mapping_at(stacks->target.memory, code_walk_root(stacks->walk)->base);
    return m && !library_path(m->path) ? m->path : "";
}

/* What the trace says of a location that is code of a method. */
static void name_code(struct stack_async *async, size_t row, const struct trace *t, uint32_t location,
                      bool raw_names)
{
    const struct trace_location *l = &t->locations.rows[location];
    const struct trace_function *f = &t->functions.rows[l->function];
    struct async_type *type = &async->graph.types[row];
    const char *name = trace_string(t, f->name);
    if (!l->function) {
        async->names[row] = mem_format("0x%" PRIx64, l->addr);
        return;
    }
    struct buffer text;
    buffer_init(&text, NAME_BYTES_MAX);
    method_name_show(span_of(name, strlen(name)), trace_string(t, f->type_params), &text);
    async->names[row] = raw_names ? mem_copy_string(name)
                                  : mem_format("%.*s", (int)text.size, text.size ? (char *)text.data : "");
    buffer_done(&text);
    free(type->name);
    free(type->module);
    type->name = mem_copy_string(name);
    type->module = mem_copy_string(trace_string(t, f->module));
    if (l->line && !l->line_of_method)
        async->own[row] =
            (struct async_place){ mem_copy_string(trace_string(t, l->file)), l->line, l->il_off };
}

/* Methods that the runtime suspends itself are known by their code. */
static void name_all_code(struct process_stacks *stacks, struct stack_async *async,
                          const struct stack_async_naming *naming)
{
    const struct async_graph *graph = &async->graph;
    AUTO_FREE uint64_t *addrs = mem_alloc(graph->type_count + 1, sizeof *addrs);
    size_t count = 0;
    for (size_t i = 0; i < graph->type_count; i++)
        if (graph->types[i].addr)
            addrs[count++] = graph->types[i].addr;
    if (count == 0)
        return;
    struct symbolizer_result result = { 0 };
    uint32_t location = process_stacks_add_code(stacks, naming->b, naming->process, addrs, count);
    symbolizer_run(&naming->b->trace, &naming->b->functions, naming->options, &result);
    for (size_t i = 0; i < graph->type_count; i++)
        if (graph->types[i].addr)
            name_code(async, i, &naming->b->trace, location++, naming->raw_names);
}

static void copy_place(const struct async_place *place, struct async_place *out)
{
    *out = *place;
    out->file = place->file ? mem_copy_string(place->file) : NULL;
}

static void find_place(struct source_lines *lines, const struct async_type *type, int32_t state,
                       struct async_place *out)
{
    struct source_place place;
    *out = (struct async_place){ 0 };
    if (type->kind != ASYNC_METHOD || state < 0 ||
        !source_lines_find_await(lines, type->path, type->token, (uint32_t)state, &place, &out->il_off))
        return;
    out->file = mem_copy_string(place.file);
    out->line = place.line;
}

static void name_all(struct process_stacks *stacks, struct stack_async *async,
                     const struct stack_async_naming *naming)
{
    struct program_files own = { &stacks->target.files, program_of(stacks) };
    struct pdb_finder own_find = { { open_assembly, close_assembly, &own }, naming->options->cache };
    struct source_lines *lines = source_lines_new(&own_find);
    async->names = mem_alloc(async->graph.type_count + 1, sizeof *async->names);
    async->own = mem_alloc(async->graph.type_count + 1, sizeof *async->own);
    name_all_code(stacks, async, naming);
    for (size_t i = 0; i < async->graph.type_count; i++)
        if (!async->graph.types[i].addr)
            async->names[i] = name_type(&async->graph.types[i], naming->raw_names);
    async->places = mem_alloc(async->chains.frame_count + 1, sizeof *async->places);
    for (size_t i = 0; i < async->chains.frame_count; i++) {
        const struct async_frame *frame = &async->chains.frames[i];
        const struct async_type *type = &async->graph.types[frame->type];
        if (type->addr)
            copy_place(&async->own[frame->type], &async->places[i]);
        else
            find_place(lines, type, frame->state, &async->places[i]);
    }
    source_lines_free(lines);
}

void stack_async_read(struct process_stacks *stacks, struct live_memory *live,
                      const struct stack_async_naming *naming, struct stack_async *out)
{
    *out = (struct stack_async){ 0 };
    struct reading r = { .stacks = stacks, .async = out };
    if (!stacks->walk) {
        out->problem = stacks->walk_error;
        if (stacks->target.memory->partial) {
            error_context(&out->problem, "of a dump that may not hold the heap");
            hint_whole_dump(&out->problem);
        }
        return;
    }
    r.types = code_walk_types(stacks->walk);
    if (!stack_threads_open(stacks, r.types->pages, &r.threads, &out->problem))
        return;
    if (heap_map_open(r.types->pages, &r.threads, &out->map, &out->problem) &&
        (live ? read_live(&r, live, &out->problem) : read_core(&r, &out->problem))) {
        async_chains_find(&out->graph, &out->chains);
        name_all(stacks, out, naming);
    }
    managed_threads_done(&r.threads);
}

void stack_async_done(struct stack_async *async)
{
    for (size_t i = 0; async->names && i < async->graph.type_count; i++) {
        free(async->names[i]);
        free(async->own[i].file);
    }
    for (size_t i = 0; async->places && i < async->chains.frame_count; i++)
        free(async->places[i].file);
    free(async->names);
    free(async->own);
    free(async->places);
    async_chains_done(&async->chains);
    async_graph_done(&async->graph);
    heap_map_done(&async->map);
}
