/*
 * provider_uses: what each provider of a stream was asked for, as far as its events tell.
 */
#ifndef CLRPERF_IMPORT_PROVIDER_USES_H
#define CLRPERF_IMPORT_PROVIDER_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "trace/trace.h"

enum { PROVIDER_USES_MAX = 4096 /* pairs of process and provider */ };

/* Zeroed: none. */
struct provider_uses {
    struct provider_use *rows; /* [0] is unused */
    size_t count, capacity;
    struct id_map ids;
    bool cut; /* there were more than PROVIDER_USES_MAX */
};

void provider_uses_done(struct provider_uses *uses);
/*
 * A process has an event of these keywords and this level: somebody asked its provider, a string of the
 * trace, for it.
 */
void provider_uses_note(struct provider_uses *uses, uint32_t process, uint32_t provider, uint64_t keywords,
                        uint32_t level);
/* Adds what was asked for, in all the time. */
void provider_uses_tell(const struct provider_uses *uses, struct trace *t, uint64_t from_ns, uint64_t to_ns);

#endif
