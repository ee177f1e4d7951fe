#include "cli/address_facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/code_listing.h"
#include "cli/symbol_store.h"
#include "clr/method_name.h"
#include "collect/il_offsets.h"
#include "collect/process_mappings.h"
#include "read/il_map.h"

enum { TEXT_BYTES_MAX = 1 << 20 };

/* From here on addresses are the kernel's (x86-64, arm64). */
#define KERNEL_BEGIN (UINT64_C(1) << 63)

/* A question while it is answered. */
struct fact_search {
    struct address_facts *facts;
    struct trace *t;
    struct name_origin *origins; /* by location */
    uint32_t first;              /* location of row 0; the others follow */
    bool raw_names;
    struct buffer text;
};

static int address_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t *sorted_copy(const uint64_t *addrs, size_t count)
{
    uint64_t *sorted = mem_alloc(count, sizeof *sorted);
    memcpy(sorted, addrs, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, address_compare);
    return sorted;
}

static uint32_t keep(struct fact_search *s)
{
    struct span text = buffer_span(&s->text);
    return text.size && !s->text.failed ? intern_add(&s->t->strings, text) : 0;
}

/* What is mapped at some of the addresses. `path` as /proc/PID/maps shows it. */
static void fill_mapping(struct fact_search *s, const struct memory_mapping *m, struct span path)
{
    uint32_t mapping = 0, image = 0;
    for (size_t i = 0; i < s->facts->count; i++) {
        struct address_fact *fact = &s->facts->rows[i];
        if (fact->addr < m->start || fact->addr >= m->end)
            continue;
        if (!mapping) {
            buffer_clear(&s->text);
            buffer_format(&s->text, "%" PRIx64 "-%" PRIx64 " %c%c%c%c %08" PRIx64, m->start, m->end,
                          m->readable ? 'r' : '-', m->writable ? 'w' : '-', m->executable ? 'x' : '-',
                          m->shared ? 's' : 'p', m->file_off);
            mapping = keep(s);
            image = path.size ? intern_add(&s->t->strings, path) : 0;
        }
        fact->mapping = mapping;
        fact->image = image;
    }
}

static bool fill_live_mapping(void *user, const struct proc_mapping *m)
{
    struct memory_mapping mapping = {
        .start = m->start,
        .end = m->end,
        .file_off = m->file_off,
        .readable = m->readable,
        .writable = m->writable,
        .executable = m->executable,
        .shared = m->shared,
    };
    struct buffer path;
    buffer_init(&path, TEXT_BYTES_MAX);
    buffer_append(&path, m->path.data, m->path.size);
    if (m->deleted)
        buffer_string(&path, PROCFS_DELETED);
    fill_mapping(user, &mapping, buffer_span(&path));
    buffer_done(&path);
    return true;
}

static void find_dumped_mappings(struct fact_search *s, const struct core_target *core)
{
    for (size_t i = 0; i < core->memory.mapping_count; i++) {
        const struct memory_mapping *m = &core->memory.mappings[i];
        fill_mapping(s, m, span_of(m->path, strlen(m->path)));
    }
}

static void ask_names(struct fact_search *s)
{
    struct code_census *census = &s->facts->census;
    struct trace *t = s->t;
    uint64_t now_ns = clock_monotonic_ns();
    s->first = (uint32_t)t->locations.count;
    for (size_t i = 0; i < s->facts->count; i++) {
        uint64_t addr = s->facts->rows[i].addr;
        trace_builder_place(&census->b, addr < KERNEL_BEGIN ? census->process : 0, addr, now_ns);
    }
    if (census->memory) {
        struct il_offsets *offsets = il_offsets_new(t);
        struct il_map_reader maps = memory_session_il_maps(census->memory);
        il_offsets_finish(offsets, census->process, &maps);
        il_offsets_free(offsets);
    }
    s->origins = mem_alloc(t->locations.count, sizeof *s->origins);
    struct symbol_cache cache;
    struct kept_folder kept;
    symbol_store_open(&cache);
    symbol_store_open_kept(&kept);
    AUTO_FREE char *kernel_list = symbol_store_kernel_path();
    struct symbolizer_options options = { .files = code_listing_files(census),
                                          .cache = &cache,
                                          .kept = &kept,
                                          .origins = s->origins,
                                          .kernel = !census->core,
                                          .kernel_list = kernel_list };
    struct symbolizer_result result = { 0 };
    symbolizer_run(t, &census->b.functions, &options, &result);
    kept_folder_done(&kept);
    symbol_cache_close(&cache);
}

static bool is_managed(uint8_t kind)
{
    return kind == CODE_R2R || kind == CODE_JIT || kind == CODE_DYNAMIC;
}

static void append_name(struct fact_search *s, const char *name, const char *type_params, bool managed)
{
    if (managed && !s->raw_names)
        method_name_show(span_of(name, strlen(name)), type_params, &s->text);
    else
        buffer_string(&s->text, name);
}

static void fill_name(struct fact_search *s, struct address_fact *fact, uint32_t location)
{
    const struct trace_location *row = &s->t->locations.rows[location];
    const struct name_origin *origin = &s->origins[location];
    fact->build_id = origin->build_id;
    fact->mvid = origin->mvid;
    if (!row->function)
        return;
    const struct trace_function *function = &s->t->functions.rows[row->function];
    buffer_clear(&s->text);
    append_name(s, trace_string(s->t, function->name), trace_string(s->t, function->type_params),
                is_managed(function->kind));
    fact->module = trace_string(s->t, function->module)[0] ? function->module : 0;
    fact->kind = function->kind;
    fact->tier = row->tier;
    fact->resolver = row->resolver;
    fact->has_offset = origin->start && origin->start <= row->addr;
    fact->offset = fact->has_offset ? row->addr - origin->start : 0;
    fact->function = keep(s);
    fact->il_off = row->il_known ? row->il_off : IL_NO_MAPPING;
    fact->file = row->line ? row->file : 0;
    fact->line = row->line;
    fact->line_of_method = row->line_of_method;
    fact->inlined = row->inlined;
    fact->inlined_count = row->inlined_count;
}

/* Of a stub the runtime's memory tells the method that it leads to. */
static void fill_stub(struct fact_search *s, struct address_fact *fact)
{
    struct memory_session *memory = s->facts->census.memory;
    struct found_method found;
    if (!memory || fact->addr >= KERNEL_BEGIN || (fact->function && fact->kind != CODE_STUB) ||
        !code_walk_find(memory_session_walk(memory), fact->addr, &found) || found.kind != FOUND_STUB)
        return;
    buffer_clear(&s->text);
    buffer_string(&s->text, found.name);
    if (found.target[0]) {
        buffer_u8(&s->text, ' ');
        append_name(s, found.target, "", true);
    }
    if (found.import[0])
        buffer_format(&s->text, " (%s)", found.import);
    fact->function = keep(s);
    fact->kind = CODE_STUB;
    fact->resolver = RESOLVER_MEMORY;
    fact->has_offset = found.end > found.begin && found.begin <= fact->addr;
    fact->offset = fact->has_offset ? fact->addr - found.begin : 0;
}

/* Answers into `facts`, whose census has been taken. `target`: NULL for a core dump. */
static void answer(struct address_facts *facts, const struct target *target,
                   const struct address_question *question)
{
    struct fact_search search = { .facts = facts,
                                  .t = &facts->census.b.trace,
                                  .raw_names = question->raw_names };
    size_t count = question->count;
    facts->rows = mem_alloc(count, sizeof *facts->rows);
    facts->count = count;
    buffer_init(&search.text, TEXT_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        facts->rows[i] = (struct address_fact){ .addr = question->addrs[i], .il_off = IL_NO_MAPPING };
    if (target)
        process_mappings_each(target->pid, MAPPINGS_ALL, fill_live_mapping, &search, NULL);
    else
        find_dumped_mappings(&search, facts->census.core);
    ask_names(&search);
    for (size_t i = 0; i < count; i++) {
        fill_name(&search, &facts->rows[i], search.first + (uint32_t)i);
        fill_stub(&search, &facts->rows[i]);
    }
    buffer_done(&search.text);
    free(search.origins);
}

bool address_facts_find(const struct target *target, const struct address_question *question,
                        struct address_facts *out, struct error *err)
{
    AUTO_FREE uint64_t *sorted = sorted_copy(question->addrs, question->count);
    struct code_census_choice choice = {
        .addrs = sorted,
        .count = question->count,
        .none = target->runtime != RUNTIME_CORECLR,
        .by_memory_only = question->by_memory_only,
    };
    struct address_facts facts = { 0 };
    if (!code_census_take(target, &choice, &facts.census, err))
        return false;
    answer(&facts, target, question);
    *out = facts;
    return true;
}

void address_facts_find_core(struct core_target *core, const struct address_question *question,
                             struct address_facts *out)
{
    AUTO_FREE uint64_t *sorted = sorted_copy(question->addrs, question->count);
    struct code_census_choice choice = { .addrs = sorted, .count = question->count };
    *out = (struct address_facts){ 0 };
    code_census_take_core(core, &choice, &out->census);
    answer(out, NULL, question);
}

void address_facts_done(struct address_facts *facts)
{
    free(facts->rows);
    code_census_done(&facts->census);
}

const char *address_facts_text(const struct address_facts *facts, uint32_t id)
{
    return id ? trace_string(&facts->census.b.trace, id) : NULL;
}

const struct trace_inlined *address_facts_inlined(const struct address_facts *facts,
                                                  const struct address_fact *fact, uint32_t i)
{
    return &facts->census.b.trace.inlined.rows[fact->inlined + i];
}

const char *address_facts_function(const struct address_facts *facts, const struct trace_inlined *inlined)
{
    const struct trace *t = &facts->census.b.trace;
    return trace_string(t, t->functions.rows[inlined->function].name);
}
