/*
 * kept_index: what it took long to find out about an image, kept for the next look at the same file.
 *
 * Of images of 2 MiB and more. Which method each of 50,000 precompiled functions belongs to stands in tables
 * that must be read whole: 3 ms of CoreLib, which each look at a process paid for a few dozen of them. A file
 * "0123....index", named by the state of the image's file and of our own program, has
 *
 *   8 bytes "clindex\n", both stamps (base/file_stamp.h), u64le where the image begins in its file, and u64le
 *   XXH3 of what follows: the bytes of whoever kept them
 */
#ifndef CLRPERF_SYMBOLIZE_KEPT_INDEX_H
#define CLRPERF_SYMBOLIZE_KEPT_INDEX_H

#include "base/source.h"
#include "symbolize/kept_folder.h"

enum { KEPT_INDEX_BYTES_MAX = 16 << 20 };

/* Whether it is worth it: of a small image all is found out faster than a file is opened. */
bool kept_index_wants(const struct kept_folder *folder, const struct source *image);
/*
 * Loads what is kept of the image into `out`, which is initialised here and the caller's to end; empty when
 * that is nothing. `folder` may be NULL.
 */
void kept_index_load(const struct kept_folder *folder, const struct source *image, struct buffer *out);
/* Keeps `bytes`, if that is possible. */
void kept_index_save(const struct kept_folder *folder, const struct source *image, struct span bytes);

#endif
