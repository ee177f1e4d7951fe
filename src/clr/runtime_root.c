#include "clr/runtime_root.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/code_ranges.h"
#include "clr/library_path.h"
#include "clr/loaded_symbol.h"

enum {
    CANDIDATES_MAX = 256,
    RANGES_MIN = 6,
    TOP_ENTRIES = 256, /* of the map's first level; user space has 47 bits, so that only the first is used */
    SCAN_BYTES_MAX = 16 << 20, /* of one module's data */
    SCAN_STEPS_MAX = 8 * CODE_RANGES_STEPS_MAX,
    LOOKS_MAX = 4,
    CANDIDATE_STEPS_MAX = 1 << 16, /* of one word: data that runs in circles must not cost all the others */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

const char *runtime_root_way_name(enum runtime_root_way way)
{
    static const char *const names[] = { "contract descriptor", "g_dacTable", "scan" };
    return names[way];
}

/* Is it a list or map of which every entry can be one? `least`: entries there must be. */
static bool is_root(struct memory_pages *pages, bool list, uint64_t addr, size_t least, uint64_t *steps)
{
    struct code_ranges ranges;
    if (pages->memory->partial) /* what was left out of a dump looks like nonsense */
        code_ranges_read(pages, runtime_layout_form(list), addr, &ranges);
    else if (!code_ranges_try(pages, runtime_layout_form(list), addr, least, steps, &ranges))
        return false;
    bool sane = ranges.count >= least;
    for (size_t i = 0; sane && i < ranges.count; i++) {
        const struct code_range *r = &ranges.ranges[i];
        uint64_t owner = r->kind == CODE_RANGE_HEAP ? r->heap : r->module;
        sane = r->kind == CODE_RANGE_STUBS ||
               (owner && (pages->memory->partial || memory_mapping_at(pages->memory, owner)));
    }
    code_ranges_done(&ranges);
    return sane;
}

/* The map that the runtime itself names; an empty one is none. */
static bool is_named_map(struct memory_pages *pages, uint64_t addr)
{
    uint64_t steps = CODE_RANGES_STEPS_MAX;
    if (!addr)
        return false;
    code_ranges_fetch(pages, runtime_layout_form(false), addr);
    return is_root(pages, false, addr, 1, &steps);
}

static bool by_descriptor(struct memory_pages *pages, struct runtime_root *root)
{
    struct loaded_symbol symbol;
    if (!loaded_symbol_find(pages, root->base, "DotNetRuntimeContractDescriptor", &symbol) ||
        !contract_descriptor_open(pages, symbol.addr, &root->descriptor, NULL))
        return false;
    root->way = ROOT_BY_DESCRIPTOR;
    return contract_descriptor_addr(root->descriptor, "ExecutionManagerCodeRangeMapAddress", &root->addr) &&
           is_named_map(pages, root->addr);
}

static bool by_dac_table(struct memory_pages *pages, struct runtime_root *root)
{
    struct loaded_symbol symbol;
    if (!loaded_symbol_find(pages, root->base, "g_dacTable", &symbol))
        return false;
    root->way = ROOT_BY_DAC_TABLE;
    root->addr = memory_pages_u64(pages, symbol.addr);
    return is_named_map(pages, root->addr);
}

/* Words of the runtime's data under the eye of the scan. */
struct window {
    uint64_t addr;
    uint64_t *words;
    size_t count;
};

/* What may still be looked at before the scan gives up. */
struct scan_room {
    uint64_t bytes, steps;
};

static bool is_data(struct memory_pages *pages, uint64_t addr)
{
    const struct memory_mapping *there =
        addr && addr % 8 == 0 ? memory_mapping_at(pages->memory, addr) : NULL;
    return there && there->writable;
}

/* As is_root(), for one of many words. */
static bool may_be_root(struct memory_pages *pages, bool list, uint64_t addr, struct scan_room *room)
{
    uint64_t allowed = room->steps < CANDIDATE_STEPS_MAX ? room->steps : CANDIDATE_STEPS_MAX, left = allowed;
    bool found = is_root(pages, list, addr, RANGES_MIN, &left);
    room->steps -= allowed - left;
    return found;
}

static bool scan_for_map(struct memory_pages *pages, const struct window *w, struct scan_room *room,
                         struct runtime_root *root)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++) {
        used += w->words[i] != 0;
        if (i < TOP_ENTRIES)
            continue;
        size_t first = i - TOP_ENTRIES; /* [first, first + TOP_ENTRIES) is the candidate */
        size_t inside = used - (w->words[i] != 0);
        if (inside == 1 && is_data(pages, w->words[first]) &&
            may_be_root(pages, false, w->addr + 8 * first, room)) {
            root->addr = w->addr + 8 * first;
            return true;
        }
        used -= w->words[first] != 0;
    }
    return false;
}

static bool scan_for_list(struct memory_pages *pages, const struct window *w, struct scan_room *room,
                          struct runtime_root *root)
{
    for (size_t i = 0; i < w->count; i++) {
        if (is_data(pages, w->words[i]) && may_be_root(pages, true, w->words[i], room)) {
            root->addr = w->words[i];
            root->head = w->addr + 8 * (uint64_t)i;
            root->list = true;
            return true;
        }
    }
    return false;
}

static bool scan_mapping(struct memory_pages *pages, const struct memory_mapping *m, struct scan_room *room,
                         struct runtime_root *root)
{
    uint64_t size = m->end - m->start;
    struct window w = { .addr = m->start };
    if (size > room->bytes)
        size = room->bytes;
    room->bytes -= size;
    memory_pages_want(pages, m->start, size);
    memory_pages_fetch(pages);
    w.count = (size_t)(size / 8);
    w.words = mem_alloc(w.count ? w.count : 1, sizeof *w.words);
    for (size_t i = 0; i < w.count; i++)
        w.words[i] = memory_pages_u64(pages, m->start + 8 * (uint64_t)i);
    root->way = ROOT_BY_SCAN;
    bool found = scan_for_map(pages, &w, room, root) || scan_for_list(pages, &w, room, root);
    free(w.words);
    return found;
}

/* The runtime's writable mappings, and the nameless one behind them, which holds its zeroed data. */
static bool by_scan(struct memory_pages *pages, struct runtime_root *root)
{
    const struct memory *memory = pages->memory;
    const struct memory_mapping *end = memory->mappings + memory->mapping_count;
    const struct memory_mapping *last = NULL;
    struct scan_room room = { SCAN_BYTES_MAX, SCAN_STEPS_MAX };
    for (const struct memory_mapping *m = root->module; m < end; m++) {
        bool own = strcmp(m->path, root->module->path) == 0;
        bool behind = last && m->path[0] == 0 && m->start == last->end;
        if (!own && !behind)
            break;
        last = m;
        if (m->writable && scan_mapping(pages, m, &room, root))
            return true;
        if (behind)
            break;
    }
    return false;
}

/* Where a file is mapped from its start: of a bundle, assemblies lie below at other offsets. */
static bool may_be_runtime(const struct memory_mapping *m, bool named)
{
    if (!m->readable || m->file_off != 0 || m->inode == 0 || m->path[0] != '/')
        return false;
    return named ? strcmp(base_name(m->path), "libcoreclr.so") == 0
                 : !ends_with(m->path, ".dll") && !library_path(m->path);
}

static bool try_module(struct memory_pages *pages, const struct memory_mapping *m, bool scan,
                       struct runtime_root *out)
{
    struct runtime_root root = { .base = m->start, .module = m };
    if (by_descriptor(pages, &root) || by_dac_table(pages, &root) || (scan && by_scan(pages, &root))) {
        *out = root;
        return true;
    }
    contract_descriptor_close(root.descriptor);
    return false;
}

/* One look at all modules that may be a runtime; *out_tried says how many there were. */
static bool look(struct memory_pages *pages, bool scan, struct runtime_root *out, unsigned *out_tried,
                 bool *seen)
{
    const struct memory *memory = pages->memory;
    *out_tried = 0;
    for (int named = 1; named >= 0; named--)
        for (size_t i = 0; i < memory->mapping_count && *out_tried < CANDIDATES_MAX; i++) {
            const struct memory_mapping *m = &memory->mappings[i];
            if (!may_be_runtime(m, named))
                continue;
            *seen |= named;
            ++*out_tried;
            if (try_module(pages, m, named && scan, out))
                return true;
        }
    return false;
}

bool runtime_root_find(struct memory_pages *pages, struct runtime_root *out, struct error *err)
{
    bool seen = false;
    unsigned tried = 1;
    /* while code comes and goes a look may catch a list halfway */
    for (unsigned looks = 1; looks <= LOOKS_MAX && tried; looks++) {
        if (look(pages, looks == LOOKS_MAX, out, &tried, &seen))
            return true;
        memory_pages_drop(pages);
    }
    return error_set(
        err, ERROR_UNSUPPORTED,
        seen ? "the runtime's list of code cannot be found in its memory (it may still be starting)"
             : "no .NET runtime is loaded that can be read from memory");
}

void runtime_root_done(struct runtime_root *root)
{
    contract_descriptor_close(root->descriptor);
    root->descriptor = NULL;
}
