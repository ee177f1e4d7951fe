/*
 * nettrace_info: the first object of an event stream, which says whose and when.
 */
#ifndef CLRPERF_READ_NETTRACE_INFO_H
#define CLRPERF_READ_NETTRACE_INFO_H

#include "read/nettrace.h"

/* Ticks scaled to nanoseconds, where they are not that already. */
uint64_t nettrace_info_scaled_ns(const struct nettrace_info *info, uint64_t ticks);
static inline uint64_t nettrace_info_ns(const struct nettrace_info *info, uint64_t ticks)
{
    return info->frequency == 1000000000 ? ticks : nettrace_info_scaled_ns(info, ticks);
}
/* The last ticks that are no later than `ns`. */
uint64_t nettrace_info_last_ticks(const struct nettrace_info *info, uint64_t ns);
/* Reads the content of a Trace object, or of a Trace block of nettrace 6. *odd_clock: it says no frequency.
 */
bool nettrace_info_read(struct span content, uint32_t version, struct nettrace_info *out, bool *odd_clock,
                        struct error *err);

#endif
