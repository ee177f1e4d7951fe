/*
 * flame_svg: a profile as a flame graph in one SVG file.
 *
 * The picture needs nothing else to be seen. Opened in a browser, its own small script zooms (click),
 * searches by regular expression with the matched share, and shows details; nothing is fetched.
 * Frames narrower than 0.1 px, and with them their callees, are left out and counted in the picture.
 */
#ifndef CLRPERF_RENDER_FLAME_SVG_H
#define CLRPERF_RENDER_FLAME_SVG_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool flame_svg_write(const struct profile *profile, const struct export_options *options, struct output *out,
                     struct error *err);

#endif
