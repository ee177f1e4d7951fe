/*
 * code_heap: one heap of jitted code, with what lies before each piece of code in it.
 *
 * The eight bytes before a start are either a small number (a stub of that kind) or a pointer to a
 * RealCodeHeader, which leads to the MethodDesc and holds the extent of the code: unwind records of 12 bytes
 * with begin and end relative to the range (x86-64).
 */
#ifndef CLRPERF_CLR_CODE_HEAP_H
#define CLRPERF_CLR_CODE_HEAP_H

#include "base/buffer.h"
#include "clr/code_ranges.h"

struct code_heap {
    const struct code_range *range; /* borrowed */
    uint64_t base;                  /* what the map counts from */
    uint64_t map_addr;
    struct buffer map; /* a copy of the nibble map, once that was read; its ceiling is the size */
};

/* A piece of code. */
struct code_body {
    uint64_t begin, end; /* [begin, end), funclets included; end is 0 for a stub, whose size is not told */
    uint64_t header;     /* address of the RealCodeHeader; 0 for a stub */
    uint64_t method;     /* address of the MethodDesc */
    uint64_t mark;       /* address of the nibble map's number that says that it begins there */
    uint8_t mark_offset; /* where, in what the number covers */
    uint8_t stub;        /* kind of a stub, 1 to 15; 0 for a method */
};

/*
 * Reads the node of a range of jitted code, then the map: in three steps, the first two of which say which
 * pages the next one needs. False when the node makes no sense, or the map is larger than `map_bytes_max`.
 * Undo with code_heap_done().
 */
void code_heap_want(struct memory_pages *pages, const struct code_range *range);
bool code_heap_read(struct memory_pages *pages, const struct runtime_layout *layout,
                    const struct code_range *range, size_t map_bytes_max, struct code_heap *out);
void code_heap_read_map(struct memory_pages *pages, struct code_heap *heap);
void code_heap_done(struct code_heap *heap);

/* What starts at `start`, an address that the map gives, in two steps, so that pages can be asked for ahead:
 * the word before the code, then what it points to. False when there is nothing sane. */
uint64_t code_heap_word(struct memory_pages *pages, uint64_t start);
bool code_heap_body_of_word(struct memory_pages *pages, const struct runtime_layout *layout,
                            const struct code_heap *heap, uint64_t start, uint64_t word,
                            struct code_body *out);
/* The body that holds `addr`; false between bodies. A stub counts from its start to the next one. */
bool code_heap_find(struct memory_pages *pages, const struct runtime_layout *layout,
                    const struct code_heap *heap, uint64_t addr, struct code_body *out);

/* "[jump stub]" and the like, for a kind of code_body.stub or code_range.stub. */
const char *code_stub_name(unsigned kind);

#endif
