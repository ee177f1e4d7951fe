/*
 * speedscope: JSON for the speedscope viewer.
 *
 * Specified by https://www.speedscope.app/file-format-schema.json. Only "sampled" profiles: all threads
 * merged first, then one per thread, in time order. Neighbouring samples of one stack are one entry.
 */
#ifndef CLRPERF_RENDER_SPEEDSCOPE_H
#define CLRPERF_RENDER_SPEEDSCOPE_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool speedscope_write(const struct profile *p, const struct export_options *options, struct output *out,
                      struct error *err);

#endif
