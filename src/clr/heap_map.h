/*
 * heap_map: where a runtime's GC keeps its objects, read from memory.
 *
 * GcDacVars, which the GC fills in for debuggers (dotnet/runtime, src/coreclr/gc/gcinterface.dac.h), leads to
 * the segments or regions of all generations, of the large, the pinned and the frozen objects, for the
 * workstation and the server GC. It lies in the runtime, whichever GC is loaded; its slot of g_dacTable is
 * recognised by what is in it.
 */
#ifndef CLRPERF_CLR_HEAP_MAP_H
#define CLRPERF_CLR_HEAP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "clr/managed_threads.h"

enum {
    HEAP_SEGMENTS_MAX = 1 << 20,
    HEAP_GENERATION_LARGE = 3,
    HEAP_GENERATION_PINNED = 4,
    HEAP_GENERATIONS = 5,
};

/* Objects lie one behind the other in [begin, end), a multiple of 8. */
struct heap_segment {
    uint64_t begin, end;
    uint8_t generation; /* 0 to 2, HEAP_GENERATION_... */
    bool frozen;        /* never collected */
};

/* Memory that somebody allocates from: no objects in [begin, end). */
struct heap_gap {
    uint64_t begin, end;
};

struct heap_map {
    uint64_t vars;                 /* GcDacVars */
    struct heap_segment *segments; /* by address, not overlapping */
    size_t segment_count, segment_capacity;
    struct heap_gap *gaps; /* by address */
    size_t gap_count, gap_capacity;
    uint32_t heaps; /* of the server GC; 0: the workstation GC */
    bool regions;   /* else segments */
    bool cut;       /* a list had no end, or was not to be read */
};

/*
 * Finds the GC. ERROR_UNSUPPORTED when it has not started, or is of a kind nobody knows. Undo with
 * heap_map_done().
 */
bool heap_map_open(struct memory_pages *pages, const struct managed_threads *threads, struct heap_map *out,
                   struct error *err);
void heap_map_done(struct heap_map *map);
/*
 * Whether objects are where the segments say: not while a collection moves them. `memory` is asked, not a
 * cached page.
 */
bool heap_map_is_walkable(const struct heap_map *map, const struct memory *memory);
/*
 * Reads the segments, and where threads allocate. The process must stand still, or what is read may be of two
 * times. ERROR_INPUT when it makes no sense.
 */
bool heap_map_read(struct heap_map *map, struct memory_pages *pages, const struct managed_threads *threads,
                   struct error *err);
/* The gap that begins at `addr`, or NULL; and the next one that begins behind it. */
const struct heap_gap *heap_map_gap_at(const struct heap_map *map, uint64_t addr);
const struct heap_gap *heap_map_gap_after(const struct heap_map *map, uint64_t addr);
uint64_t heap_map_bytes(const struct heap_map *map);

#endif
