/*
 * assembly_fixture: a made-up assembly with as many methods as a large one has.
 *
 * A PE file with metadata and nothing else. Its types have the same number of methods each; every eighth
 * method is generic, with one to three parameters.
 */
#ifndef CLRPERF_TESTS_ASSEMBLY_FIXTURE_H
#define CLRPERF_TESTS_ASSEMBLY_FIXTURE_H

#include "base/buffer.h"
#include "base/cursor.h"

/* Metadata, ECMA-335 II.24.2.1: the root and the streams #~, #Strings, #GUID and #Blob; `tables` is padded
 * to 4. */
void metadata_fixture_write(struct span tables, struct span strings, struct span blob, struct buffer *out);

/* Types are the rows 2 to `types` + 1; their methods are named "M". */
void assembly_fixture_write(uint32_t types, uint32_t methods_each, struct buffer *out);

#endif
