/*
 * gc_sizes: what follows from the sizes that heaps told before and after their collections.
 *
 * The definitions are PerfView's: what was allocated since the collection before, what survived, how large
 * the heap was at most.
 */
#ifndef CLRPERF_ANALYSE_GC_SIZES_H
#define CLRPERF_ANALYSE_GC_SIZES_H

#include "analyse/gc_stats.h"

/* Fills gen[], sizes before and peaks of a process's rows, which are in the order they began. */
void gc_sizes_fill(struct gc_stats *stats, struct gc_record *rows, size_t count);

#endif
