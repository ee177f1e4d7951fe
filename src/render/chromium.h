/*
 * chromium: a profile as a timeline for Perfetto, chrome://tracing and speedscope.
 *
 * The JSON of Chrome's Trace Event Format: of each thread the functions as nested begins and ends, made of
 * neighbouring samples; what runtimes told as spans and instants on a track of each process, and its heap as
 * a counter. Events nest, as Perfetto demands.
 */
#ifndef CLRPERF_RENDER_CHROMIUM_H
#define CLRPERF_RENDER_CHROMIUM_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool chromium_write(const struct profile *p, const struct export_options *options, struct output *out,
                    struct error *err);

#endif
