/*
 * waiting_sample: a sample with its stack, as bytes that wait in a queue until it is known what runtimes told
 * of its time.
 */
#ifndef CLRPERF_COLLECT_WAITING_SAMPLE_H
#define CLRPERF_COLLECT_WAITING_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "trace/builder.h"

/* A raw_sample without judge: with frames, or with a chain, of which frames are to be made yet. */
size_t waiting_sample_size(const struct raw_sample *s);
/* Writes it to aligned memory of that size. */
void waiting_sample_put(const struct raw_sample *s, uint8_t *into);
/* What was written to `bytes`, which the sample points into. */
struct raw_sample waiting_sample_get(struct span bytes);

#endif
