#include "collect/stub_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/stub_code.h"

enum { READS_MAX = 256 };

struct stub_kinds {
    struct trace *t;
    uint32_t *next; /* by process: the first location that was not looked at */
    size_t next_capacity;
    uint32_t locations[READS_MAX]; /* to read the code of */
    size_t count;
};

struct stub_kinds *stub_kinds_new(struct trace *t)
{
    struct stub_kinds *kinds = mem_alloc(1, sizeof *kinds);
    kinds->t = t;
    return kinds;
}

void stub_kinds_free(struct stub_kinds *kinds)
{
    if (!kinds)
        return;
    free(kinds->next);
    free(kinds);
}

static uint64_t code_addr(const struct trace_location *row)
{
    return row->addr - (row->is_return ? 1 : 0) - STUB_CODE_BEFORE;
}

static void read_stubs(struct stub_kinds *kinds, const struct memory *memory)
{
    struct trace *t = kinds->t;
    struct memory_piece pieces[READS_MAX];
    uint8_t code[READS_MAX][STUB_CODE_BYTES];
    for (size_t i = 0; i < kinds->count; i++)
        pieces[i] = (struct memory_piece){ .addr = code_addr(&t->locations.rows[kinds->locations[i]]),
                                           .into = code[i],
                                           .size = STUB_CODE_BYTES };
    memory->read(memory->user, pieces, kinds->count);
    for (size_t i = 0; i < kinds->count; i++) {
        const char *kind = pieces[i].got > STUB_CODE_BEFORE
                               ? stub_code_kind(span_of(code[i], pieces[i].got), STUB_CODE_BEFORE)
                               : NULL;
        if (kind)
            t->locations.rows[kinds->locations[i]].stub = trace_add_string(t, kind);
    }
    kinds->count = 0;
}

/* In generated code, where no method was known when it was sampled. */
static bool may_be_stub(const struct trace *t, const struct trace_location *row)
{
    uint8_t image = t->images.rows[t->mappings.rows[row->mapping].image].kind;
    return row->mapping && !row->code && (image == IMAGE_JIT || image == IMAGE_ANON) &&
           row->addr > STUB_CODE_BYTES;
}

void stub_kinds_update(struct stub_kinds *kinds, uint32_t process, const struct memory *memory)
{
    const struct trace *t = kinds->t;
    size_t had = kinds->next_capacity;
    kinds->next = mem_grow(kinds->next, &kinds->next_capacity, (size_t)process + 1, sizeof *kinds->next);
    if (had < kinds->next_capacity)
        memset(kinds->next + had, 0, (kinds->next_capacity - had) * sizeof *kinds->next);
    for (uint32_t id = kinds->next[process]; id < t->locations.count; id++) {
        if (t->locations.rows[id].process != process || !may_be_stub(t, &t->locations.rows[id]))
            continue;
        kinds->locations[kinds->count++] = id;
        if (kinds->count == READS_MAX)
            read_stubs(kinds, memory);
    }
    if (kinds->count)
        read_stubs(kinds, memory);
    kinds->next[process] = (uint32_t)t->locations.count;
}
