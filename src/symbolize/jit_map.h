/*
 * jit_map: names of jitted code from the perf map or jitdump its process left.
 *
 * The file is streamed once against the addresses seen, so memory depends on those alone. Of several
 * entries over one address the latest one wins.
 */
#ifndef CLRPERF_SYMBOLIZE_JIT_MAP_H
#define CLRPERF_SYMBOLIZE_JIT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "clr/code_name.h"

struct jit_map_match {
    size_t index;               /* of the address, in the list */
    uint64_t start, size_bytes; /* of the code around it */
    struct code_name name;      /* valid during the call */
};

typedef void jit_map_fn(void *user, const struct jit_map_match *match);

struct jit_map_result {
    size_t named;
    uint64_t malformed; /* entries that were skipped */
    bool cut;           /* a jitdump whose last record is not complete */
};

/*
 * Looks up `count` addresses, which are sorted, and calls `emit` for each that an entry covers, in
 * no order. The file is a jitdump if it starts like one, else a perf map. ERROR_LIMIT when its
 * entries overlap beyond all reason.
 */
bool jit_map_resolve(const struct source *file, const uint64_t *addrs, size_t count, jit_map_fn *emit,
                     void *user, struct jit_map_result *out, struct error *err);

#endif
