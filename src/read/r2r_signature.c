#include "read/r2r_signature.h"

#include "read/ecma_metadata.h"
#include "read/ecma_signature.h"

enum {
    NESTING_MAX = 24,
    SIGNATURE_BYTES_MAX = 64 << 10, /* any number of table entries may name the same one */
    HAS_METHOD_INSTANTIATION = 0x04,
    IS_SLOT = 0x08,
    IS_MEMBER_REF = 0x10,
    HAS_CONSTRAINT = 0x20,
    HAS_OWNER_TYPE = 0x40,
    HAS_MODULE = 0x80,
    IS_ASYNC_VARIANT = 0x100,
};

static void skip_type(struct cursor *c, unsigned depth);

static void skip_types(struct cursor *c, uint32_t count, unsigned depth)
{
    for (; count && cursor_ok(c); count--)
        skip_type(c, depth);
}

static void skip_uints(struct cursor *c, uint32_t count)
{
    for (; count && cursor_ok(c); count--)
        cursor_ecma_uint(c);
}

static void skip_function_pointer(struct cursor *c, unsigned depth)
{
    if (cursor_u8(c) & METHOD_SIGNATURE_GENERIC)
        cursor_ecma_uint(c);
    uint32_t count = cursor_ecma_uint(c);
    skip_type(c, depth);
    skip_types(c, count, depth);
}

static void skip_type(struct cursor *c, unsigned depth)
{
    if (depth > NESTING_MAX)
        c->failed = true;
    switch (cursor_u8(c)) {
    case ELEMENT_PTR:
    case ELEMENT_BYREF:
    case ELEMENT_SZARRAY:
    case ELEMENT_PINNED:
    case ELEMENT_NATIVE_ARRAY_ZAPSIG:
    case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
        skip_type(c, depth + 1);
        break;
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE:
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
    case ELEMENT_VAR_ZAPSIG:
        cursor_ecma_uint(c);
        break;
    case ELEMENT_CMOD_REQD:
    case ELEMENT_CMOD_OPT:
    case ELEMENT_MODULE_ZAPSIG:
        cursor_ecma_uint(c);
        skip_type(c, depth + 1);
        break;
    case ELEMENT_GENERICINST:
        skip_type(c, depth + 1);
        skip_types(c, cursor_ecma_uint(c), depth + 1);
        break;
    case ELEMENT_ARRAY:
        skip_type(c, depth + 1);
        cursor_ecma_uint(c);
        skip_uints(c, cursor_ecma_uint(c));
        skip_uints(c, cursor_ecma_uint(c));
        break;
    case ELEMENT_FNPTR:
        skip_function_pointer(c, depth + 1);
        break;
    }
}

static struct span skipped(const struct cursor *c, size_t start)
{
    return span_part(c->bytes, start, c->pos - start);
}

static bool read_signature(struct cursor *c, struct r2r_method_signature *out)
{
    struct r2r_method_signature sig = { 0 };
    uint32_t flags = cursor_ecma_uint(c);
    if (flags & HAS_MODULE)
        sig.module = cursor_ecma_uint(c);
    if (flags & HAS_OWNER_TYPE) {
        size_t start = c->pos;
        skip_type(c, 0);
        sig.owner = skipped(c, start);
    }
    sig.is_member_ref = flags & IS_MEMBER_REF;
    sig.is_awaited = flags & IS_ASYNC_VARIANT;
    sig.row = cursor_ecma_uint(c);
    if (flags & HAS_METHOD_INSTANTIATION) {
        sig.argument_count = cursor_ecma_uint(c);
        size_t start = c->pos;
        skip_types(c, sig.argument_count, 0);
        sig.arguments = skipped(c, start);
    }
    if (flags & HAS_CONSTRAINT)
        skip_type(c, 0);
    if (!cursor_ok(c) || flags & IS_SLOT) /* a slot of an array's own methods: no image has their code */
        return false;
    *out = sig;
    return true;
}

bool cursor_r2r_method_signature(struct cursor *c, struct r2r_method_signature *out)
{
    struct cursor bounded = *c;
    if (cursor_left(c) > SIGNATURE_BYTES_MAX)
        bounded.bytes.size = c->pos + SIGNATURE_BYTES_MAX;
    bool ok = read_signature(&bounded, out);
    c->pos = bounded.pos;
    c->failed = bounded.failed;
    return ok;
}
