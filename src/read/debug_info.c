#include "read/debug_info.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/sorted.h"
#include "read/debug_names.h"
#include "read/debug_ranges.h"

enum {
    NESTING_MAX = 512,
    TEXT_BYTES_MAX = 64 << 20,
    /* entries, ranges and addresses looked at, which is not bounded by the size of the sections */
    STEPS_MAX = 1 << 26,
    BYTES_A_STEP = 16,
    CALLS_MAX = 1 << 22, /* of a unit */
};

/* A function that was inlined somewhere. */
struct call {
    uint64_t origin; /* its entry, in .debug_info */
    uint64_t file;   /* in the unit's line program */
    uint32_t line;
    uint32_t outer; /* the call it was inlined into; 0: the function itself */
};

/* What is known of an address: the innermost entry that holds it so far. */
struct holder {
    uint32_t entry; /* its number in the unit; 0: none */
    uint32_t call;  /* the same, when it is one that was inlined */
    uint16_t level;
    uint16_t depth; /* calls */
};

/* A text that was looked up: a function's by its entry, or a path by its program and number. */
struct known_text {
    uint64_t where, number;
    uint32_t text;
};

struct info_search {
    const struct debug_sections *sections;
    const struct debug_units *units;
    const uint64_t *addrs;
    struct holder *holders; /* by address */
    size_t *order;          /* addresses by unit */
    struct call *calls;     /* of the unit; [0] is unused */
    size_t call_count, call_capacity;
    struct debug_unit unit;
    struct debug_names names;
    struct intern texts;
    struct known_text *known; /* [0] is unused */
    size_t known_count, known_capacity;
    struct id_map known_ids;
    debug_info_fn *answer;
    void *user;
    uint64_t steps;
};

/* A walk over the entries of a unit. */
struct walk {
    struct cursor c;
    uint32_t entry;             /* its number */
    unsigned level;             /* its depth; the unit's own children have 1 */
    uint32_t open[NESTING_MAX]; /* by level: the entry whose children were begun last */
    unsigned foreign;           /* level of a function around that holds no address; 0: none */
    bool careful;               /* skip nothing */
};

static uint64_t steps_of(const struct info_search *s)
{
    return s->steps + s->names.steps + s->unit.abbrevs.looked;
}

static bool is_open(const struct walk *w, const struct holder *holder)
{
    return holder->level < w->level && w->open[holder->level] == holder->entry;
}

static void hold_by_function(const struct walk *w, struct holder *holder)
{
    /* of several with the same code the first; a nested one's code is not the outer one's */
    if (!holder->entry || is_open(w, holder))
        *holder = (struct holder){ .entry = w->entry, .level = (uint16_t)w->level };
}

static void hold_by_call(struct info_search *s, const struct walk *w, struct holder *holder,
                         const struct call *call)
{
    if (!holder->entry || holder->entry == w->entry || !is_open(w, holder))
        return;
    if (s->call_count == CALLS_MAX) {
        s->steps = STEPS_MAX;
        return;
    }
    s->calls = mem_grow(s->calls, &s->call_capacity, s->call_count + 1, sizeof *s->calls);
    s->calls[s->call_count] = *call;
    s->calls[s->call_count].outer = holder->call;
    holder->call = (uint32_t)s->call_count++;
    holder->entry = w->entry;
    holder->level = (uint16_t)w->level;
    holder->depth++;
}

/* Gives the entry the addresses in its ranges. False when there are none. `call` is NULL for a function. */
static bool hold(struct info_search *s, const struct walk *w, const struct debug_entry *entry,
                 const struct call *call)
{
    const struct debug_units *units = s->units;
    struct debug_ranges ranges = debug_ranges_of(&s->unit, s->sections, entry);
    uint64_t begin, end;
    bool any = false;
    while (s->steps < STEPS_MAX && debug_ranges_next(&ranges, &begin, &end)) {
        size_t i = sorted_from(s->addrs, units->addr_count, begin);
        for (; i < units->addr_count && s->addrs[i] < end; i++, s->steps++) {
            if (units->of_addr[i] != s->unit.offset)
                continue;
            any = true;
            if (call)
                hold_by_call(s, w, &s->holders[i], call);
            else
                hold_by_function(w, &s->holders[i]);
        }
        s->steps++;
    }
    return any;
}

static struct call call_of(const struct debug_unit *unit, const struct debug_entry *entry)
{
    const struct debug_value *f = entry->fields;
    return (struct call){
        .origin = f[DEBUG_ORIGIN].number + (f[DEBUG_ORIGIN].kind == DEBUG_VALUE_ENTRY ? unit->offset : 0),
        .file = f[DEBUG_CALL_FILE].number,
        .line = (uint32_t)f[DEBUG_CALL_LINE].number,
    };
}

/* Goes to the entry behind the children, where it is known. */
static bool pass_children(struct walk *w, const struct debug_entry *entry)
{
    struct debug_value next = entry->fields[DEBUG_SIBLING];
    if (w->careful || next.kind != DEBUG_VALUE_ENTRY || next.number < w->c.pos)
        return false;
    cursor_seek(&w->c, next.number);
    return true;
}

/* A function that holds no address has nothing inlined that does. True when its children were passed. */
static bool walk_function(struct info_search *s, struct walk *w, const struct debug_abbrev *abbrev)
{
    struct debug_entry entry;
    debug_unit_read(&s->unit, &w->c, abbrev, &entry);
    if (hold(s, w, &entry, NULL)) {
        w->foreign = 0;
        return false;
    }
    if (!entry.has_children)
        return false;
    if (pass_children(w, &entry))
        return true;
    if (!w->foreign)
        w->foreign = w->level;
    return false;
}

static void walk_inlined(struct info_search *s, struct walk *w, const struct debug_abbrev *abbrev)
{
    struct debug_entry entry;
    debug_unit_read(&s->unit, &w->c, abbrev, &entry);
    struct call call = call_of(&s->unit, &entry);
    hold(s, w, &entry, &call);
}

/* Types hold no code, but for what is local to a function in them. True when its children were passed. */
static bool walk_type(struct info_search *s, struct walk *w, const struct debug_abbrev *abbrev)
{
    struct debug_entry entry;
    debug_unit_read(&s->unit, &w->c, abbrev, &entry);
    return entry.has_children && pass_children(w, &entry);
}

static bool walk_entry(struct info_search *s, struct walk *w, const struct debug_abbrev *abbrev)
{
    switch (abbrev->tag) {
    case DEBUG_TAG_SUBPROGRAM:
        return walk_function(s, w, abbrev);
    case DEBUG_TAG_INLINED_SUBROUTINE:
        if (w->foreign)
            break;
        walk_inlined(s, w, abbrev);
        return false;
    case DEBUG_TAG_CLASS_TYPE:
    case DEBUG_TAG_ENUMERATION_TYPE:
    case DEBUG_TAG_STRUCTURE_TYPE:
    case DEBUG_TAG_UNION_TYPE:
        return walk_type(s, w, abbrev);
    }
    s->steps += debug_unit_skip(&s->unit, &w->c, abbrev);
    return false;
}

static void walk_unit(struct info_search *s, bool careful)
{
    struct walk *w = mem_alloc(1, sizeof *w);
    w->c = s->unit.entries;
    w->careful = careful;
    w->level = s->unit.root.has_children ? 1 : 0;
    while (w->level && cursor_left(&w->c) && steps_of(s) < STEPS_MAX) {
        const struct debug_abbrev *abbrev = debug_unit_next(&s->unit, &w->c);
        s->steps++;
        if (!abbrev) {
            w->level--;
            if (w->foreign && w->foreign >= w->level)
                w->foreign = 0;
            continue;
        }
        w->entry++;
        bool has_children = abbrev->has_children;
        if (walk_entry(s, w, abbrev) || !has_children)
            continue;
        if (w->level == NESTING_MAX - 1)
            break;
        w->open[w->level++] = w->entry;
    }
    free(w);
}

static bool known_same(const void *table, uint32_t id, const void *key)
{
    const struct known_text *a = (const struct known_text *)table + id, *b = key;
    return a->where == b->where && a->number == b->number;
}

/* As it was looked up before; else where the answer is to go. False: it is new. */
static bool known_find(struct info_search *s, const struct known_text *key, uint32_t *out)
{
    uint64_t hash = hash_pair(key->where, key->number);
    uint32_t id = id_map_find(&s->known_ids, hash, known_same, s->known, key);
    *out = id;
    if (id)
        return true;
    s->known = mem_grow(s->known, &s->known_capacity, s->known_count + 1, sizeof *s->known);
    *out = (uint32_t)s->known_count++;
    s->known[*out] = *key;
    id_map_add(&s->known_ids, hash, *out);
    return false;
}

/* "" when it has none. */
static const char *function_name(struct info_search *s, uint64_t origin)
{
    uint32_t id;
    if (!known_find(s, &(struct known_text){ .where = origin, .number = UINT64_MAX }, &id)) {
        const char *name = debug_names_find(&s->names, &s->unit, origin);
        s->known[id].text = name ? intern_cstr(&s->texts, name) : 0;
    }
    return intern_text(&s->texts, s->known[id].text);
}

static const char *call_path(struct info_search *s, uint64_t file)
{
    struct debug_value program = s->unit.root.fields[DEBUG_STMT_LIST];
    uint32_t id;
    if (program.kind == DEBUG_VALUE_NONE || file == UINT64_MAX)
        return "";
    if (!known_find(s, &(struct known_text){ .where = program.number, .number = file }, &id)) {
        char path[DEBUG_LINE_PATH_MAX];
        uint64_t bytes = 0;
        bool found = debug_line_path(&s->sections->lines, program.number, file, path, &bytes);
        s->known[id].text = found ? intern_cstr(&s->texts, path) : 0;
        s->steps += bytes / BYTES_A_STEP;
    }
    return intern_text(&s->texts, s->known[id].text);
}

/* All or nothing: a chain with a function left out would be another one, as of a unit that was not read to
 * its end. */
static void answer_address(struct info_search *s, size_t index)
{
    struct debug_inlined inlined[DEBUG_INLINED_MAX];
    size_t count = 0;
    if (s->holders[index].depth > DEBUG_INLINED_MAX)
        return;
    for (uint32_t id = s->holders[index].call; id; id = s->calls[id].outer) {
        const struct call *call = &s->calls[id];
        const char *file = call_path(s, call->file);
        inlined[count] = (struct debug_inlined){
            .function = function_name(s, call->origin),
            .call_file = file,
            .call_line = file[0] ? call->line : 0,
        };
        if (!inlined[count++].function[0])
            return;
    }
    if (count)
        s->answer(s->user, index, inlined, count);
}

/* Looks at the addresses order[from, to), all of one unit. */
static void ask_unit(struct info_search *s, uint64_t offset, size_t from, size_t to)
{
    if (!debug_unit_open(&s->unit, s->sections, offset))
        return;
    s->call_count = 1;
    walk_unit(s, false);
    bool all = true;
    for (size_t i = from; i < to; i++)
        all &= s->holders[s->order[i]].entry != 0;
    if (!all) { /* they may be of a function that is local to one which holds no address */
        for (size_t i = from; i < to; i++)
            s->holders[s->order[i]] = (struct holder){ 0 };
        s->call_count = 1;
        walk_unit(s, true);
    }
    for (size_t i = from; i < to && steps_of(s) < STEPS_MAX; i++)
        answer_address(s, s->order[i]);
}

/* Fills `order`. Returns how many addresses have a unit. */
static size_t sort_by_unit(struct info_search *s)
{
    const struct debug_units *units = s->units;
    AUTO_FREE size_t *ends = mem_alloc(units->count + 1, sizeof *ends);
    for (size_t i = 0; i < units->addr_count; i++)
        if (units->of_addr[i] != DEBUG_NO_UNIT)
            ends[sorted_from(units->offsets, units->count, units->of_addr[i])]++;
    size_t sum = 0;
    for (size_t i = 0; i < units->count; i++) {
        size_t count = ends[i];
        ends[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < units->addr_count; i++)
        if (units->of_addr[i] != DEBUG_NO_UNIT)
            s->order[ends[sorted_from(units->offsets, units->count, units->of_addr[i])]++] = i;
    return sum;
}

bool debug_info_find(const struct debug_sections *sections, const struct debug_units *units,
                     const uint64_t *addrs, debug_info_fn *answer, void *user, struct error *err)
{
    struct info_search *s = mem_alloc(1, sizeof *s);
    *s = (struct info_search){ .sections = sections,
                               .units = units,
                               .addrs = addrs,
                               .holders = mem_alloc(units->addr_count + 1, sizeof *s->holders),
                               .order = mem_alloc(units->addr_count + 1, sizeof *s->order),
                               .known_count = 1,
                               .answer = answer,
                               .user = user };
    intern_init(&s->texts, TEXT_BYTES_MAX);
    debug_unit_init(&s->unit);
    debug_names_init(&s->names, sections);
    s->calls = mem_grow(NULL, &s->call_capacity, 1, sizeof *s->calls);
    s->known = mem_grow(NULL, &s->known_capacity, 1, sizeof *s->known);
    size_t count = sort_by_unit(s);
    for (size_t from = 0, to = 0; from < count && steps_of(s) < STEPS_MAX; from = to) {
        uint64_t offset = units->of_addr[s->order[from]];
        while (to < count && units->of_addr[s->order[to]] == offset)
            to++;
        ask_unit(s, offset, from, to);
    }
    bool cut = steps_of(s) >= STEPS_MAX;
    debug_names_done(&s->names);
    debug_unit_done(&s->unit);
    intern_done(&s->texts);
    id_map_done(&s->known_ids);
    free(s->known);
    free(s->calls);
    free(s->holders);
    free(s->order);
    free(s);
    return !cut || error_set(err, ERROR_LIMIT, ".debug_info asks for too much work");
}
