/*
 * pprof: profile.proto for `go tool pprof` and everything else that reads it.
 *
 * Specified by google/pprof, proto/profile.proto. Two values per sample: samples/count and the weight
 * (cpu/nanoseconds for CPU samples). Labels process, pid, thread and tid. mapping[0] is the first
 * process, because pprof takes title and binary from it; the other mappings are the frames' modules.
 * Written uncompressed; the file format is gzip around it (output_gzip_begin()).
 */
#ifndef CLRPERF_RENDER_PPROF_H
#define CLRPERF_RENDER_PPROF_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool pprof_write(const struct profile *p, const struct export_options *options, struct output *out,
                 struct error *err);

#endif
