#include "clr/stub_sweep.h"

#include <stdlib.h>

#include "base/mem.h"
#include "clr/stub_code.h"

enum {
    CHUNK_BYTES = 64 << 10,
    PADDING_MAX = 16, /* between neighbours of one kind */
};

struct sweep {
    stub_sweep_fn *emit;
    void *user;
    uint64_t begin, end; /* of the run so far */
    const char *kind;    /* NULL: none */
};

static void sweep_flush(struct sweep *s)
{
    if (s->kind)
        s->emit(s->user, s->begin, s->end, s->kind);
    s->kind = NULL;
}

static void sweep_add(struct sweep *s, uint64_t begin, uint64_t end, const char *kind)
{
    if (s->kind != kind || begin - s->end > PADDING_MAX) {
        sweep_flush(s);
        s->begin = begin;
        s->kind = kind;
    }
    s->end = end;
}

/* Looks at what begins in the first `size` bytes. Returns how far that reached. */
static size_t sweep_chunk(struct sweep *s, uint64_t addr, struct span bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        size_t length = 0;
        const char *kind = stub_code_begin(bytes, at, &length);
        if (kind)
            sweep_add(s, addr + at, addr + at + length, kind);
        at += kind ? length : 1;
    }
    return at;
}

void stub_sweep(const struct memory *memory, uint64_t begin, uint64_t end, stub_sweep_fn *emit, void *user)
{
    struct sweep s = { .emit = emit, .user = user };
    uint8_t *bytes = mem_alloc(1, CHUNK_BYTES + STUB_CODE_BYTES);
    for (uint64_t at = begin; at < end;) {
        uint64_t left = end - at;
        struct memory_piece piece = { .addr = at, .into = bytes, .size = CHUNK_BYTES + STUB_CODE_BYTES };
        if (piece.size > left)
            piece.size = (size_t)left;
        memory->read(memory->user, &piece, 1);
        size_t size = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        size_t reached = sweep_chunk(&s, at, span_of(bytes, piece.got), piece.got < size ? piece.got : size);
        at += reached > size ? reached : size;
    }
    sweep_flush(&s);
    free(bytes);
}
