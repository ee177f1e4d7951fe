#include "symbolize/jit_map.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/sorted.h"
#include "clr/jit_name.h"
#include "read/jitdump.h"
#include "read/perf_map.h"

/* Assignments of jitdump records to addresses; the addresses times a few dozen versions fit easily. */
#define ASSIGNMENTS_MAX ((uint64_t)256 << 20)

struct search {
    const uint64_t *addrs;
    size_t count;
    jit_map_fn *emit;
    void *user;
    struct jit_name text;
    size_t named;
    size_t last; /* where the last search ended; entries next to each other are mostly close */
};

static size_t first_at_or_above(struct search *s, uint64_t addr)
{
    size_t high = s->count;
    if (s->last < s->count && s->addrs[s->last] >= addr) {
        if (s->last == 0 || s->addrs[s->last - 1] < addr)
            return s->last;
        high = s->last;
    }
    return s->last = sorted_from(s->addrs, high, addr);
}

static void emit_match(struct search *s, size_t index, uint64_t start, uint64_t size_bytes,
                       const struct code_name *name)
{
    struct jit_map_match match = { index, start, size_bytes, *name };
    s->emit(s->user, &match);
    s->named++;
}

/*
 * A perf map is read from its end, so the first entry to reach an address wins. `next` skips the
 * addresses that have a name: next[i] is i, or leads to the next one without.
 */
struct perf_map_search {
    struct search s;
    uint32_t *next; /* count + 1 */
};

static size_t next_unnamed(uint32_t *next, size_t i)
{
    while (next[i] != i) {
        next[i] = next[next[i]];
        i = next[i];
    }
    return i;
}

static bool take_perf_map_line(void *user, const struct perf_map_line *line)
{
    struct perf_map_search *p = user;
    struct search *s = &p->s;
    size_t i = first_at_or_above(s, line->start);
    if (i == s->count || s->addrs[i] - line->start >= line->size_bytes)
        return true;
    bool parsed = false;
    struct code_name name = { .resolver = RESOLVER_PERF_MAP };
    for (i = next_unnamed(p->next, i); i < s->count && s->addrs[i] - line->start < line->size_bytes;
         i = next_unnamed(p->next, i + 1)) {
        if (!parsed)
            jit_name_parse(&s->text, line->name, "perf map", &name);
        parsed = true;
        emit_match(s, i, line->start, line->size_bytes, &name);
        p->next[i] = (uint32_t)i + 1;
    }
    return s->named < s->count;
}

static bool resolve_perf_map(const struct source *file, struct search *s, struct jit_map_result *result,
                             struct error *err)
{
    AUTO_FREE uint32_t *next = mem_alloc(s->count + 1, sizeof *next);
    for (size_t i = 0; i <= s->count; i++)
        next[i] = (uint32_t)i;
    struct perf_map_search search = { *s, next };
    struct perf_map_counts counts = { 0 };
    bool ok = perf_map_read_backwards(file, take_perf_map_line, &search, &counts, err);
    *s = search.s;
    result->malformed = counts.malformed;
    return ok;
}

/* A jitdump can only be read forward: the records are noted first and named when all are known. */
struct jitdump_search {
    struct search s;
    uint64_t *records; /* for each address: offset of the latest record over it, 0 none */
    uint64_t assignments;
};

static bool take_jitdump_code(void *user, const struct jitdump_code *code)
{
    struct jitdump_search *j = user;
    for (size_t i = first_at_or_above(&j->s, code->start);
         i < j->s.count && j->s.addrs[i] - code->start < code->size_bytes; i++) {
        j->records[i] = code->record_off;
        j->assignments++;
    }
    return j->assignments <= ASSIGNMENTS_MAX;
}

static void name_jitdump_records(struct jitdump_search *j, const struct source *file)
{
    struct buffer bytes;
    buffer_init(&bytes, 2 * JITDUMP_NAME_MAX);
    struct jitdump_code code = { 0 };
    struct code_name name = { 0 };
    for (size_t i = 0; i < j->s.count; i++) {
        if (j->records[i] == 0)
            continue;
        if (j->records[i] != code.record_off) {
            if (!jitdump_code_at(file, j->records[i], &bytes, &code, NULL))
                continue;
            name.resolver = RESOLVER_JITDUMP;
            jit_name_parse(&j->s.text, code.name, "jitdump", &name);
        }
        emit_match(&j->s, i, code.start, code.size_bytes, &name);
    }
    buffer_done(&bytes);
}

static bool resolve_jitdump(const struct source *file, struct search *s, struct jit_map_result *result,
                            struct error *err)
{
    AUTO_FREE uint64_t *records = mem_alloc(s->count, sizeof *records);
    struct jitdump_search search = { *s, records, 0 };
    struct jitdump_counts counts = { 0 };
    if (!jitdump_read(file, take_jitdump_code, &search, &counts, err))
        return false;
    if (search.assignments > ASSIGNMENTS_MAX)
        return error_set(err, ERROR_LIMIT, "the code in the jitdump overlaps too often");
    name_jitdump_records(&search, file);
    *s = search.s;
    result->malformed = counts.malformed;
    result->cut = counts.cut;
    return true;
}

bool jit_map_resolve(const struct source *file, const uint64_t *addrs, size_t count, jit_map_fn *emit,
                     void *user, struct jit_map_result *out, struct error *err)
{
    if (count >= UINT32_MAX)
        return error_set(err, ERROR_LIMIT, "%zu addresses are too many", count);
    struct search s = { .addrs = addrs, .count = count, .emit = emit, .user = user };
    struct jit_map_result result = { 0 };
    jit_name_init(&s.text);
    bool ok =
        jitdump_is(file) ? resolve_jitdump(file, &s, &result, err) : resolve_perf_map(file, &s, &result, err);
    jit_name_done(&s.text);
    if (!ok)
        return false;
    result.named = s.named;
    *out = result;
    return true;
}
