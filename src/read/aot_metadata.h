/*
 * aot_metadata: names of types in the metadata that .NET's Native AOT compiler puts into a program.
 *
 * Records that refer to each other by handles: a kind and where the record is. The format is that of
 * dotnet/runtime src/coreclr/tools/Common/Internal/Metadata/NativeFormat (SchemaDef.cs,
 * NativeMetadataReader.cs); integers are those of read/native_format. .NET 8 and 9 have kinds of 8 bits, 10
 * of 7.
 */
#ifndef CLRPERF_READ_AOT_METADATA_H
#define CLRPERF_READ_AOT_METADATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"

struct aot_metadata {
    struct span bytes; /* borrowed */
    unsigned kind_bits;
};

enum { AOT_KIND_BITS_OLD = 8, AOT_KIND_BITS = 7 };

/* ERROR_INPUT when the bytes are no such metadata. */
bool aot_metadata_over(struct span bytes, unsigned kind_bits, struct aot_metadata *out, struct error *err);

/* Whether a token is of a type, by its kind: a definition, a reference or a specification. */
bool aot_metadata_is_type(const struct aot_metadata *md, uint32_t token);
/* Of the definition of a type that is there. */
uint32_t aot_metadata_type_token(const struct aot_metadata *md, uint32_t place);
/*
 * Appends the type's name as the runtime spells it: "Ns.Type`1+Nested"; what stands for its parameters is
 * left out. False, with part of it appended perhaps, when the record is damaged or of an unknown kind.
 */
bool aot_metadata_append_type(const struct aot_metadata *md, uint32_t token, struct buffer *out);
/* The same of the simple name of the assembly that the type is of. */
bool aot_metadata_append_assembly(const struct aot_metadata *md, uint32_t token, struct buffer *out);
/* The text at a place, UTF-8 without NUL; empty, and false, when none is there. */
bool aot_metadata_text(const struct aot_metadata *md, uint32_t place, struct span *out);

#endif
