/*
 * code_ranges: the regions of memory that a runtime says hold machine code, and of what kind.
 *
 * RangeSections in dotnet/runtime: a linked list up to 7, from 8 on a radix map of five levels of 256
 * pointers over the bits 17 to 56 of an address, at whose leaves fragments point to the sections.
 */
#ifndef CLRPERF_CLR_CODE_RANGES_H
#define CLRPERF_CLR_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory_pages.h"
#include "clr/runtime_layout.h"

/* Places to look at in one map or list. */
enum { CODE_RANGES_STEPS_MAX = 1 << 22 };

enum code_range_kind {
    CODE_RANGE_HEAP,  /* jitted code */
    CODE_RANGE_STUBS, /* precodes and their like */
    CODE_RANGE_IMAGE, /* a ReadyToRun image; begin is its load address */
};

struct code_range {
    uint64_t begin, end; /* [begin, end) */
    uint64_t section;    /* address of the RangeSection */
    uint64_t link;       /* address of the word of the map or list that led there; 0: the list's root did */
    uint64_t link_word;  /* what it held */
    uint64_t module;     /* of an image */
    uint64_t heap;       /* of jitted code: its node */
    uint8_t kind;        /* enum code_range_kind */
    uint8_t stub;        /* of stubs: 4 stub precode, 5 fixup precode; 0 unknown */
    bool collectible;    /* what is in it may be freed: dynamic methods, collectible assemblies */
};

struct code_ranges {
    struct code_range *ranges; /* by begin, not overlapping */
    size_t count, capacity;
    size_t insane; /* entries that could not be one, left out */
    bool cut;      /* the walk ended at one of our bounds */
};

/* `root`: the map itself, or the first node of the list. Undo with code_ranges_done(). */
void code_ranges_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t root,
                      struct code_ranges *out);
/*
 * The same for what may be no root at all: false at the first entry that cannot be one, or below `least` of
 * them. Takes the places it looks at off *steps, and ends when those are used up.
 */
bool code_ranges_try(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t root,
                     size_t least, uint64_t *steps, struct code_ranges *out);
void code_ranges_done(struct code_ranges *ranges);
/* Brings the pages of what surely is a map, level by level, each in one read of the target. */
void code_ranges_fetch(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t map);
/* The range that holds `addr`, or NULL. */
const struct code_range *code_ranges_find(const struct code_ranges *ranges, uint64_t addr);

#endif
