#include "collect/stub_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"
#include "clr/stub_code.h"

enum { READS_MAX = 256, LOOKS_MAX = 1 << 16 };

/* Code that was looked at before it had a location. */
struct looked_at {
    uint64_t addr;
    uint32_t process;
    uint32_t kind; /* string of the trace; 0: none that is known */
};

struct stub_kinds {
    struct trace *t;
    struct looked_at *looks; /* [0] is none */
    size_t look_count, look_capacity;
    struct id_map looks_by_place;
    uint32_t *next; /* by process: the first location that was not looked at */
    size_t next_capacity;
    uint32_t locations[READS_MAX]; /* to read the code of */
    size_t count;
};

struct stub_kinds *stub_kinds_new(struct trace *t)
{
    struct stub_kinds *kinds = mem_alloc(1, sizeof *kinds);
    kinds->t = t;
    kinds->look_count = 1;
    kinds->looks = mem_grow(NULL, &kinds->look_capacity, 1, sizeof *kinds->looks);
    return kinds;
}

void stub_kinds_free(struct stub_kinds *kinds)
{
    if (!kinds)
        return;
    id_map_done(&kinds->looks_by_place);
    free(kinds->looks);
    free(kinds->next);
    free(kinds);
}

/*
 * Asks for the code around an address in two pieces: what lies in the page before its own, and the rest,
 * which may be there alone.
 */
enum { PIECES = 2 };
static void ask_for(uint64_t addr, uint8_t code[STUB_CODE_BYTES], struct memory_piece pieces[PIECES])
{
    size_t in_page = addr % MEMORY_PAGE_BYTES;
    size_t other = in_page < STUB_CODE_BEFORE ? STUB_CODE_BEFORE - in_page : 0;
    uint64_t from = addr - STUB_CODE_BEFORE;
    pieces[0] = (struct memory_piece){ .addr = from, .into = code, .size = other };
    pieces[1] =
        (struct memory_piece){ .addr = from + other, .into = code + other, .size = STUB_CODE_BYTES - other };
}

/* False when the code at the address itself was not there. *out_kind: string of the trace; 0: none that is
 * known. */
static bool kind_of(struct trace *t, const uint8_t code[STUB_CODE_BYTES],
                    const struct memory_piece pieces[PIECES], uint32_t *out_kind)
{
    size_t other = pieces[0].size, begin = pieces[0].got == other ? 0 : other;
    size_t size = other + pieces[1].got - begin, at = STUB_CODE_BEFORE - begin;
    const char *kind = size > at ? stub_code_kind(span_of(code + begin, size), at) : NULL;
    *out_kind = kind ? trace_add_string(t, kind) : 0;
    return size > at;
}

static bool same_place(const void *table, uint32_t id, const void *key)
{
    const struct looked_at *a = (const struct looked_at *)table + id, *b = key;
    return a->addr == b->addr && a->process == b->process;
}

/* NULL when nobody has looked there. */
static const struct looked_at *looked_at(const struct stub_kinds *kinds, uint32_t process, uint64_t addr)
{
    const struct looked_at key = { addr, process, 0 };
    uint32_t id =
        id_map_find(&kinds->looks_by_place, hash_pair(process, addr), same_place, kinds->looks, &key);
    return id ? &kinds->looks[id] : NULL;
}

bool stub_kinds_look(struct stub_kinds *kinds, uint32_t process, uint64_t addr, const struct memory *memory)
{
    uint8_t code[STUB_CODE_BYTES];
    struct memory_piece pieces[PIECES];
    uint32_t kind;
    if (addr < STUB_CODE_BEFORE || kinds->look_count == LOOKS_MAX || looked_at(kinds, process, addr))
        return true;
    ask_for(addr, code, pieces);
    memory->read(memory->user, pieces, PIECES);
    if (!kind_of(kinds->t, code, pieces, &kind))
        return false; /* what comes there next is looked at again */
    kinds->looks = mem_grow(kinds->looks, &kinds->look_capacity, kinds->look_count + 1, sizeof *kinds->looks);
    kinds->looks[kinds->look_count] = (struct looked_at){ addr, process, kind };
    id_map_add(&kinds->looks_by_place, hash_pair(process, addr), (uint32_t)kinds->look_count++);
    return true;
}

static uint64_t code_addr(const struct trace_location *row)
{
    return row->addr - (row->is_return ? 1 : 0);
}

static void read_stubs(struct stub_kinds *kinds, const struct memory *memory)
{
    struct trace *t = kinds->t;
    struct memory_piece pieces[READS_MAX * PIECES];
    uint8_t code[READS_MAX][STUB_CODE_BYTES];
    for (size_t i = 0; i < kinds->count; i++)
        ask_for(code_addr(&t->locations.rows[kinds->locations[i]]), code[i], &pieces[i * PIECES]);
    memory->read(memory->user, pieces, kinds->count * PIECES);
    for (size_t i = 0; i < kinds->count; i++)
        kind_of(t, code[i], &pieces[i * PIECES], &t->locations.rows[kinds->locations[i]].stub);
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
    kinds->next =
        mem_grow_zeroed(kinds->next, &kinds->next_capacity, (size_t)process + 1, sizeof *kinds->next);
    for (uint32_t id = kinds->next[process]; id < t->locations.count; id++) {
        struct trace_location *row = &t->locations.rows[id];
        if (row->process != process || !may_be_stub(t, row))
            continue;
        const struct looked_at *look = looked_at(kinds, process, code_addr(row));
        if (look) {
            row->stub = look->kind;
            continue;
        }
        kinds->locations[kinds->count++] = id;
        if (kinds->count == READS_MAX)
            read_stubs(kinds, memory);
    }
    if (kinds->count)
        read_stubs(kinds, memory);
    kinds->next[process] = (uint32_t)t->locations.count;
}
