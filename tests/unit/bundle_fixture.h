/* bundle_fixture: a single-file program with one file inside. */
#ifndef CLRPERF_TESTS_BUNDLE_FIXTURE_H
#define CLRPERF_TESTS_BUNDLE_FIXTURE_H

#include <stdbool.h>

#include "base/buffer.h"

enum { BUNDLE_HOST_BYTES = 100, BUNDLE_HELD_AT = BUNDLE_HOST_BYTES + 8 + 32 };

/* Ends a host's bytes: where the directory is, and the mark behind which a host looks that up. */
void bundle_fixture_mark(struct buffer *file, uint64_t directory);
/* One file of the directory, as version 6 has it, with its path below 128 bytes. */
void bundle_fixture_entry(struct buffer *file, uint32_t major, uint64_t offset, uint64_t size,
                          uint64_t compressed, const char *path);
/* A program of version 6; `out` is initialized here. Returns how many bytes the content takes in it. */
size_t bundle_fixture_make(struct buffer *out, const char *path, struct span content, bool packed);

#endif
