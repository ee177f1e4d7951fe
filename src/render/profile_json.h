/*
 * profile_json: a profile as neutral JSON, "clrperf.profile/1", for scripts.
 *
 * {"schema","title","event","unit","rate_hz","started_s","start_monotonic_ns","duration_ns",
 *  "totals":{"samples","weight","lost","whole","truncated","broken"},
 *  "processes":[{"pid","name","runtime_version","container"}],
 *  "threads":[{"pid","tid","name","process","samples","weight"}],
 *  "frames":[{"name","module","kind","tier","file","line"}],
 *  "nodes":{"parent":[...],"frame":[...],"self":[...]},
 *  "samples":{"time_ns":[...],"thread":[...],"node":[...],"weight":[...],"cpu":[...]}}
 *
 * `nodes` is the call tree: node 0 is the root, a parent stands before its children, self is the weight
 * of the samples that end there. `parent`, `frame`, `node` and `thread` are indices from 0; the root's
 * parent and frame are null. An unknown value is null. `unit` says what a weight is: ns, bytes, count,
 * samples. time_ns counts from the start. kind and tier are spelled as in every other JSON of clrperf.
 */
#ifndef CLRPERF_RENDER_PROFILE_JSON_H
#define CLRPERF_RENDER_PROFILE_JSON_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool profile_json_write(const struct profile *p, const struct export_options *options, struct output *out,
                        struct error *err);

#endif
