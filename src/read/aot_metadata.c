#include "read/aot_metadata.h"

#include <string.h>

#include "read/native_format.h"

enum {
    MAGIC = 0xdeaddffd,
    DEPTH_MAX = 32, /* namespaces and types in each other */
    TEXT_BYTES_MAX = 4096,
};

/* Of HandleType: those that lead to a type's name. */
enum kind {
    KIND_NAMESPACE_DEFINITION = 0x2f,
    KIND_NAMESPACE_REFERENCE = 0x30,
    KIND_SCOPE_DEFINITION = 0x38,
    KIND_SCOPE_REFERENCE = 0x39,
    KIND_TYPE_DEFINITION = 0x3a,
    KIND_TYPE_INSTANTIATION = 0x3c,
    KIND_TYPE_REFERENCE = 0x3d,
    KIND_TYPE_SPECIFICATION = 0x3e,
};

struct handle {
    unsigned kind;
    uint32_t place; /* in the metadata; 0: none */
};

/* What a record says of where it belongs. */
struct record {
    struct handle parent; /* namespace, or what a specification is of */
    struct handle around; /* the type that it is nested in */
    uint32_t name;
};

bool aot_metadata_over(struct span bytes, unsigned kind_bits, struct aot_metadata *out, struct error *err)
{
    struct cursor c = cursor_over(bytes);
    if (cursor_u32le(&c) != MAGIC)
        return error_set(err, ERROR_INPUT, "no metadata of a Native AOT program");
    *out = (struct aot_metadata){ bytes, kind_bits };
    return true;
}

static struct handle handle_of_token(const struct aot_metadata *md, uint32_t token)
{
    unsigned place_bits = 32 - md->kind_bits;
    return (struct handle){ token >> place_bits, token & ((1u << place_bits) - 1) };
}

/* A handle of any kind, as records have it. */
static struct handle read_handle(const struct aot_metadata *md, struct cursor *c)
{
    uint32_t value = cursor_native_uint(c);
    return (struct handle){ value & ((1u << md->kind_bits) - 1), value >> md->kind_bits };
}

bool aot_metadata_is_type(const struct aot_metadata *md, uint32_t token)
{
    struct handle h = handle_of_token(md, token);
    return h.kind == KIND_TYPE_DEFINITION || h.kind == KIND_TYPE_REFERENCE ||
           h.kind == KIND_TYPE_SPECIFICATION;
}

uint32_t aot_metadata_type_token(const struct aot_metadata *md, uint32_t place)
{
    return (uint32_t)KIND_TYPE_DEFINITION << (32 - md->kind_bits) | place;
}

bool aot_metadata_text(const struct aot_metadata *md, uint32_t place, struct span *out)
{
    struct cursor c = cursor_over(md->bytes);
    cursor_seek(&c, place);
    uint32_t size = cursor_native_uint(&c);
    *out = size <= TEXT_BYTES_MAX ? cursor_bytes(&c, size) : (struct span){ 0 };
    bool is_text = out->size == size && !(size && memchr(out->data, 0, size));
    if (!is_text)
        *out = (struct span){ 0 };
    return cursor_ok(&c) && is_text;
}

static void read_type_definition(const struct aot_metadata *md, struct cursor *c, struct record *out)
{
    cursor_native_uint(c); /* flags */
    read_handle(md, c);    /* its base */
    out->parent = (struct handle){ KIND_NAMESPACE_DEFINITION, cursor_native_uint(c) };
    out->name = cursor_native_uint(c);
    cursor_native_uint(c); /* size */
    cursor_native_uint(c); /* packing */
    out->around = (struct handle){ KIND_TYPE_DEFINITION, cursor_native_uint(c) };
}

static bool read_record(const struct aot_metadata *md, struct handle h, struct record *out)
{
    struct cursor c = cursor_over(md->bytes);
    cursor_seek(&c, h.place);
    *out = (struct record){ 0 };
    switch (h.kind) {
    case KIND_TYPE_DEFINITION:
        read_type_definition(md, &c, out);
        break;
    case KIND_TYPE_REFERENCE:
        out->parent = read_handle(md, &c);
        out->name = cursor_native_uint(&c);
        if (out->parent.kind != KIND_NAMESPACE_REFERENCE)
            out->around = out->parent;
        break;
    case KIND_NAMESPACE_DEFINITION:
    case KIND_NAMESPACE_REFERENCE:
        out->parent = read_handle(md, &c);
        out->name = cursor_native_uint(&c);
        break;
    case KIND_SCOPE_DEFINITION:
    case KIND_SCOPE_REFERENCE:
        cursor_native_uint(&c); /* flags */
        out->name = cursor_native_uint(&c);
        break;
    case KIND_TYPE_SPECIFICATION:
    case KIND_TYPE_INSTANTIATION:
        out->parent = read_handle(md, &c);
        break;
    default:
        return false;
    }
    return cursor_ok(&c);
}

static bool append_text(const struct aot_metadata *md, uint32_t place, struct buffer *out)
{
    struct span text;
    if (place == 0) /* of the namespace that has no name */
        return true;
    if (!aot_metadata_text(md, place, &text))
        return false;
    if (text.size)
        buffer_append(out, text.data, text.size);
    return true;
}

/* "A.B" of a namespace within others, the outermost of which has no name. */
static bool append_namespace(const struct aot_metadata *md, struct handle h, struct buffer *out)
{
    struct record records[DEPTH_MAX];
    size_t count = 0, begin = out->size;
    while (h.kind == KIND_NAMESPACE_DEFINITION || h.kind == KIND_NAMESPACE_REFERENCE) {
        if (count == DEPTH_MAX || !read_record(md, h, &records[count]))
            return false;
        h = records[count++].parent;
    }
    while (count-- > 0) {
        if (out->size > begin && records[count].name)
            buffer_u8(out, '.');
        if (!append_text(md, records[count].name, out))
            return false;
    }
    return true;
}

/* What a specification is of. False when that is no type with a name. */
static bool resolve(const struct aot_metadata *md, uint32_t token, struct handle *out)
{
    struct handle h = handle_of_token(md, token);
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct record record;
        *out = h;
        if (h.kind == KIND_TYPE_DEFINITION || h.kind == KIND_TYPE_REFERENCE)
            return h.place != 0;
        if (!read_record(md, h, &record))
            return false;
        h = record.parent;
    }
    return false;
}

/* The type and those that it is nested in, the outermost last. */
static bool read_types(const struct aot_metadata *md, uint32_t token, struct record types[DEPTH_MAX],
                       size_t *out_count)
{
    struct handle h;
    *out_count = 0;
    if (!resolve(md, token, &h))
        return false;
    do {
        if (*out_count == DEPTH_MAX || !read_record(md, h, &types[*out_count]))
            return false;
        h = types[(*out_count)++].around;
    } while (h.place);
    return true;
}

bool aot_metadata_append_type(const struct aot_metadata *md, uint32_t token, struct buffer *out)
{
    struct record types[DEPTH_MAX];
    size_t count, begin = out->size;
    if (!read_types(md, token, types, &count))
        return false;
    if (types[count - 1].parent.place && !append_namespace(md, types[count - 1].parent, out))
        return false;
    if (out->size > begin)
        buffer_u8(out, '.');
    for (size_t i = count; i-- > 0;) {
        if (i + 1 < count)
            buffer_u8(out, '+');
        if (!append_text(md, types[i].name, out))
            return false;
    }
    return !out->failed;
}

bool aot_metadata_append_assembly(const struct aot_metadata *md, uint32_t token, struct buffer *out)
{
    struct record types[DEPTH_MAX], record;
    size_t count;
    if (!read_types(md, token, types, &count))
        return false;
    struct handle h = types[count - 1].parent;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (!read_record(md, h, &record))
            return false;
        if (h.kind == KIND_SCOPE_DEFINITION || h.kind == KIND_SCOPE_REFERENCE)
            return append_text(md, record.name, out) && !out->failed;
        h = record.parent;
    }
    return false;
}
