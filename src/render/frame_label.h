/*
 * frame_label: the part of a frame's name that fits into its box.
 */
#ifndef CLRPERF_RENDER_FRAME_LABEL_H
#define CLRPERF_RENDER_FRAME_LABEL_H

#include <stddef.h>

#include "base/cursor.h"

/*
 * A part of `name`: all of it when it has at most `bytes` bytes, else without the parameters, else
 * without the namespace too (which may still be too long). Never empty for a name that is not.
 */
struct span frame_label(const char *name, size_t bytes);

#endif
