/*
 * perf_text: the text `perf script --fields comm,pid,tid,cpu,time,period,event,ip,sym,dso` prints.
 *
 * One block per sample: a header line, then the frames, leaf first, then an empty line. Spelled so that
 * stackcollapse-perf.pl, speedscope, the Firefox profiler and FlameScope all read it: '+' in a name
 * becomes '/', ';' becomes ':', "->" becomes "=>" (some read it as inlining), a leading parenthesis
 * becomes a bracket (some skip such frames). A profile knows functions, not addresses: the address
 * column holds the frame's number in the profile. The period is the sample's weight.
 */
#ifndef CLRPERF_RENDER_PERF_TEXT_H
#define CLRPERF_RENDER_PERF_TEXT_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool perf_text_write(const struct profile *p, const struct export_options *options, struct output *out,
                     struct error *err);

#endif
