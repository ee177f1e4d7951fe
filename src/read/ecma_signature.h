/*
 * ecma_signature: the two spellings that the runtime has for types and method signatures.
 *
 * Bytes: ECMA-335 II.23.2, and for ReadyToRun images the additions in dotnet/runtime
 * docs/design/coreclr/botr/readytorun-format.md. Texts: as src/coreclr/vm/typestring.cpp (types, with
 * '+' before nested ones and instantiations in []) and src/coreclr/utilcode/prettyprintsig.cpp
 * ("legacy", method signatures) make them for EventPipe, because names must be equal byte by byte.
 */
#ifndef CLRPERF_READ_ECMA_SIGNATURE_H
#define CLRPERF_READ_ECMA_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/ecma_metadata.h"

enum {
    ELEMENT_VOID = 0x01,
    ELEMENT_PTR = 0x0f,
    ELEMENT_BYREF = 0x10,
    ELEMENT_VALUETYPE = 0x11,
    ELEMENT_CLASS = 0x12,
    ELEMENT_VAR = 0x13,
    ELEMENT_ARRAY = 0x14,
    ELEMENT_GENERICINST = 0x15,
    ELEMENT_FNPTR = 0x1b,
    ELEMENT_SZARRAY = 0x1d,
    ELEMENT_MVAR = 0x1e,
    ELEMENT_CMOD_REQD = 0x1f,
    ELEMENT_CMOD_OPT = 0x20,
    ELEMENT_INTERNAL = 0x21,      /* a type's handle, in signatures that the runtime makes itself */
    ELEMENT_CMOD_INTERNAL = 0x22, /* the same of a modifier, behind a byte that says whether it is required */
    ELEMENT_VAR_ZAPSIG = 0x3b,
    ELEMENT_NATIVE_ARRAY_ZAPSIG = 0x3c,
    ELEMENT_NATIVE_VALUETYPE_ZAPSIG = 0x3d,
    ELEMENT_CANON_ZAPSIG = 0x3e,
    ELEMENT_MODULE_ZAPSIG = 0x3f,
    ELEMENT_SENTINEL = 0x41,
    ELEMENT_PINNED = 0x45,
};

enum { METHOD_SIGNATURE_GENERIC = 0x10, METHOD_SIGNATURE_HAS_THIS = 0x20 };

/* Finds the metadata that tokens behind a module index are rows of; NULL when it is not at hand. */
typedef const struct ecma_metadata *ecma_module_fn(void *user, uint32_t index);

/* Where the tokens of a signature are looked up. */
struct ecma_scope {
    const struct ecma_metadata *md; /* NULL: not at hand, tokens are spelled as numbers */
    ecma_module_fn *module;         /* NULL: no other modules */
    void *user;
};

/* "System.String" for an element type that has no more bytes, else NULL. */
const char *ecma_primitive_name(uint8_t element);
/* The name of a type's own row, "Ns.Outer`1+Inner"; `token` is a coded TypeDefOrRef. */
void ecma_spell_type_token(const struct ecma_metadata *md, uint32_t token, struct buffer *out);
/* One type at the cursor: "System.Collections.Generic.List`1[System.__Canon]". */
void ecma_spell_type(struct cursor *c, const struct ecma_scope *scope, struct buffer *out);
/* A method's signature, "instance void  (class System.String,int32)". False when it is damaged. */
bool ecma_spell_method_signature(const struct ecma_metadata *md, struct span signature, struct buffer *out);

#endif
