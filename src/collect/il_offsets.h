/*
 * il_offsets: tells the sampled locations of jitted code which IL they were made from.
 *
 * The maps are in the memory of the runtimes, and gone with them: so they are read while the processes live.
 * Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_IL_OFFSETS_H
#define CLRPERF_COLLECT_IL_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/il_map.h"
#include "trace/trace.h"

enum {
    IL_OFFSETS_MAPS_MAX = 1 << 16,   /* methods whose maps are held */
    IL_OFFSETS_POINTS_MAX = 8 << 20, /* of all maps together: 64 MiB */
};

/* Reads the IL map of jitted code of a process; as code_walk_il_map(). */
struct il_map_reader {
    bool (*read)(void *user, unsigned major, uint64_t begin, uint64_t size_bytes, struct il_map *out);
    void *user;
};

struct il_offsets;

/* `t` is borrowed. */
struct il_offsets *il_offsets_new(struct trace *t);
/* NULL is fine. */
void il_offsets_free(struct il_offsets *offsets);
/* Fills in the locations of `process`, a row of the trace, that came since the last call for it. */
void il_offsets_update(struct il_offsets *offsets, uint32_t process, const struct il_map_reader *maps);
/* The same for those that had no method when they came: their methods have been told since. */
void il_offsets_finish(struct il_offsets *offsets, uint32_t process, const struct il_map_reader *maps);

#endif
