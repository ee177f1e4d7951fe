/*
 * firefox: a processed profile for the Firefox Profiler (profiler.firefox.com, profiler-cli, Perfetto).
 *
 * Version 60, the first whose tables are shared by all threads; readers upgrade older versions for
 * ever, so an old number is the safe one. Described in firefox-devtools/profiler, src/types/profile.ts
 * and docs-developer/CHANGELOG-formats.md. Times are milliseconds since the start, CPU time is
 * microseconds since the thread's sample before.
 */
#ifndef CLRPERF_RENDER_FIREFOX_H
#define CLRPERF_RENDER_FIREFOX_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool firefox_write(const struct profile *p, const struct export_options *options, struct output *out,
                   struct error *err);

#endif
