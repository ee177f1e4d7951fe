#include "collect/stub_census.h"

#include <stdlib.h>

#include "base/mem.h"
#include "clr/stub_code.h"
#include "clr/stub_sweep.h"
#include "collect/resident_pages.h"

enum { UNSIZED_STUB_BYTES = 32 /* what the runtime's map of starts counts in */ };

struct stretch {
    uint64_t begin, end;
};

struct stub_search {
    struct code_census *census;
    struct resident_pages pages;
    bool readable;
    struct stretch *methods; /* by address */
    size_t method_count;
    stub_census_fn *emit;
    void *user;
};

static int stretch_compare(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void list_methods(struct stub_search *s)
{
    const struct trace *t = &s->census->b.trace;
    s->methods = mem_alloc(t->codes.count, sizeof *s->methods);
    for (size_t i = 1; i < t->codes.count; i++) {
        const struct trace_code *code = &t->codes.rows[i];
        s->methods[s->method_count++] = (struct stretch){ code->addr, code->addr + code->size_bytes };
    }
    qsort(s->methods, s->method_count, sizeof *s->methods, stretch_compare);
}

static void search_gap(struct stub_search *s, const struct trace_mapping *m, uint64_t begin, uint64_t end)
{
    bool in_file = s->census->b.trace.images.rows[m->image].kind == IMAGE_JIT;
    const char *place = in_file ? stub_code_place(begin - m->start + m->file_off) : NULL;
    uint64_t from, to;
    if (place) {
        s->emit(s->user, begin, end, place);
        return;
    }
    for (; s->readable && resident_pages_next(&s->pages, begin, end, &from, &to); begin = to)
        stub_sweep(memory_session_memory(s->census->memory), from, to, s->emit, s->user);
}

static void search_mapping(struct stub_search *s, const struct trace_mapping *m)
{
    size_t low = 0, high = s->method_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->methods[middle].end <= m->start)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t at = m->start;
    for (; low < s->method_count && s->methods[low].begin < m->end; low++) {
        if (s->methods[low].begin > at)
            search_gap(s, m, at, s->methods[low].begin);
        if (s->methods[low].end > at)
            at = s->methods[low].end;
    }
    if (at < m->end)
        search_gap(s, m, at, m->end);
}

/* Stubs in the heaps of jitted code, of which the runtime keeps a list. */
static bool tell_found(void *user, const struct found_method *found)
{
    const struct stub_search *s = user;
    if (found->kind == FOUND_STUB && found->name[0])
        s->emit(s->user, found->begin,
                found->end > found->begin ? found->end : found->begin + UNSIZED_STUB_BYTES, found->name);
    return true;
}

void stub_census_list(struct code_census *census, stub_census_fn *emit, void *user)
{
    const struct trace *t = &census->b.trace;
    struct stub_search s = { .census = census, .emit = emit, .user = user };
    s.readable = census->memory && census->process < census->files.count &&
                 resident_pages_open((pid_t)t->processes.rows[census->process].pid, &s.pages, NULL);
    list_methods(&s);
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_mapping *m = &t->mappings.rows[i];
        uint8_t kind = t->images.rows[m->image].kind;
        if (m->process == census->process && (kind == IMAGE_JIT || kind == IMAGE_ANON))
            search_mapping(&s, m);
    }
    if (census->memory)
        code_walk_list(memory_session_walk(census->memory), WALK_ALL, tell_found, &s);
    if (s.readable)
        resident_pages_close(&s.pages);
    free(s.methods);
}
