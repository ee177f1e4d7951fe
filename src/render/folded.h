/*
 * folded: one line per distinct stack, "root;caller;leaf COUNT", as FlameGraph's programs read it.
 *
 * The first frame is the process's name (options.threads: the thread's, perf's comm), its spaces
 * replaced by '_' as stackcollapse-perf does. The number is the count of samples for a profile that
 * was taken at a rate, so that it equals what stackcollapse prints for the same data, else the
 * weight in the profile's unit. ';' in a name becomes ':'.
 */
#ifndef CLRPERF_RENDER_FOLDED_H
#define CLRPERF_RENDER_FOLDED_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool folded_write(const struct profile *p, const struct export_options *options, struct output *out,
                  struct error *err);

#endif
