/*
 * stub_kinds: tells stubs by their code while a process lives, as its memory ends with it.
 *
 * Fills trace_location.stub of sampled locations in generated code of which no method is known. A location
 * is made when runtimes have told of its time; what can be freed until then is looked at before.
 */
#ifndef CLRPERF_COLLECT_STUB_KINDS_H
#define CLRPERF_COLLECT_STUB_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "trace/trace.h"

struct stub_kinds;

/* Of the locations of `t`, which must outlive it. */
struct stub_kinds *stub_kinds_new(struct trace *t);
void stub_kinds_free(struct stub_kinds *kinds);
/*
 * Looks at the code at `addr` now, for locations that will be there. False when it could not be read: it is
 * gone.
 */
bool stub_kinds_look(struct stub_kinds *kinds, uint32_t process, uint64_t addr, const struct memory *memory);
/* Looks at the locations of the process that were added since the last time. What cannot be read is left out.
 */
void stub_kinds_update(struct stub_kinds *kinds, uint32_t process, const struct memory *memory);

#endif
