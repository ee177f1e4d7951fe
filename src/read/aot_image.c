#include "read/aot_image.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/native_format.h"

enum {
    SIGNATURE = 0x525452, /* "RTR" */
    HEADER_BYTES = 16,
    ROW_BYTES = 24,
    ROWS_MAX = 256,
    METADATA_BYTES_MAX = 128 << 20,
    TABLE_BYTES_MAX = 64 << 20,
    METHODS_MAX = 4 << 20,
    RELOCATIONS_BYTES_MAX = 64 << 20,
};

/* By their numbers in the header. */
enum part_id {
    PART_TYPES = 301,
    PART_CALLABLE = 306,
    PART_PLACES = 308,
    PART_METADATA = 313,
    PART_METHODS = 327
};

/* What a method of the list says anew. */
enum command {
    NEW_OWNER = 0x01,
    NEW_NAME = 0x02,
    NEW_SIGNATURE = 0x04,
    NEW_GENERIC_SIGNATURE = 0x08,
    COMMANDS = 0x1f, /* these, and that stack traces leave it out */
};

/* Bytes of the image as its loader leaves them: where an address is written, that as linked. */
struct loaded_bytes {
    const struct elf *e;
    uint64_t addr;
    uint8_t *bytes;
    size_t size;
};

static bool relocate(void *user, const struct elf_relocation *r)
{
    const struct loaded_bytes *l = user;
    uint64_t off = r->addr - l->addr;
    if (elf_relocation_is_relative(l->e, r) && r->addr >= l->addr && off + sizeof(uint64_t) <= l->size)
        for (size_t i = 0; i < sizeof(uint64_t); i++)
            l->bytes[off + i] = (uint8_t)(r->addend >> (8 * i));
    return true;
}

static bool read_loaded(const struct elf *e, uint64_t addr, uint8_t *bytes, size_t size, struct error *err)
{
    uint64_t file_off;
    struct loaded_bytes loaded = { e, addr, bytes, size };
    const struct elf_section *relocations = elf_section_named(e, ".rela.dyn");
    if (!elf_file_off_of_addr(e, addr, &file_off))
        return error_set(err, ERROR_INPUT, "a Native AOT program's header lies outside of its image");
    if (!source_read(&e->file, file_off, bytes, size, err))
        return false;
    if (!relocations) /* linked where it is loaded */
        return true;
    struct buffer unpacked;
    struct source table;
    buffer_init(&unpacked, RELOCATIONS_BYTES_MAX);
    bool ok = elf_section_source(e, relocations, &unpacked, &table, err) &&
              elf_relocations(&table, relocate, &loaded, err);
    buffer_done(&unpacked);
    return ok;
}

struct part {
    uint64_t start, end; /* as linked; 0: there is none */
};

struct parts {
    struct part types, callable, places, metadata, methods;
};

static struct part *part_of(struct parts *parts, uint32_t id)
{
    switch (id) {
    case PART_TYPES:
        return &parts->types;
    case PART_CALLABLE:
        return &parts->callable;
    case PART_PLACES:
        return &parts->places;
    case PART_METADATA:
        return &parts->metadata;
    case PART_METHODS:
        return &parts->methods;
    default:
        return NULL;
    }
}

static void find_parts(struct span rows, struct parts *out)
{
    struct cursor c = cursor_over(rows);
    while (cursor_left(&c) >= ROW_BYTES) {
        struct part *part = part_of(out, cursor_u32le(&c));
        cursor_u32le(&c); /* flags */
        uint64_t start = cursor_u64le(&c), end = cursor_u64le(&c);
        if (part)
            *part = (struct part){ start, end };
    }
}

/* Of the first module, which is the program but where it was built in pieces. */
static bool read_parts(const struct elf *e, struct parts *out, struct error *err)
{
    const struct elf_section *modules = elf_section_named(e, "__modules");
    uint8_t header[HEADER_BYTES], pointer[sizeof(uint64_t)], rows[ROWS_MAX * ROW_BYTES];
    if (!modules || modules->size_bytes < sizeof pointer)
        return error_set(err, ERROR_INPUT, "no section __modules of a Native AOT program");
    if (!read_loaded(e, modules->addr, pointer, sizeof pointer, err))
        return false;
    uint64_t addr = load_u64le(pointer);
    if (!read_loaded(e, addr, header, sizeof header, err))
        return false;
    size_t count = load_u16le(header + 12);
    if (load_u32le(header) != SIGNATURE || header[14] != ROW_BYTES || count > ROWS_MAX)
        return error_set(err, ERROR_INPUT, "the header of a Native AOT program is not as known ones are");
    if (!read_loaded(e, addr + HEADER_BYTES, rows, count * ROW_BYTES, err))
        return false;
    find_parts(span_of(rows, count * ROW_BYTES), out);
    return true;
}

static bool load_part(const struct elf *e, struct part part, struct buffer *out, struct error *err)
{
    uint64_t file_off;
    if (part.start >= part.end || !elf_file_off_of_addr(e, part.start, &file_off))
        return error_set(err, ERROR_INPUT, "a Native AOT program without names for its stack traces");
    return source_load(&e->file, file_off, part.end - part.start, out, err);
}

/* The next method, which differs from the one before in what it says. */
static void read_method(struct cursor *c, uint64_t list_addr, struct aot_method *m)
{
    uint8_t command = cursor_u8(c);
    if (command & NEW_OWNER)
        m->owner = cursor_u32le(c);
    if (command & NEW_NAME)
        m->name = cursor_native_uint(c);
    if (command & NEW_SIGNATURE)
        cursor_native_uint(c);
    if (command & NEW_GENERIC_SIGNATURE) {
        cursor_native_uint(c);
        cursor_native_uint(c);
    }
    c->failed |= command > COMMANDS;
    uint64_t place = list_addr + c->pos;
    m->addr = place + (uint64_t)(int64_t)(int32_t)cursor_u32le(c);
}

static int compare(const void *a, const void *b)
{
    const struct aot_method *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    uint64_t p = (uint64_t)x->owner << 32 | x->name, q = (uint64_t)y->owner << 32 | y->name;
    return (p > q) - (p < q);
}

static bool read_methods(struct span list, uint64_t list_addr, struct aot_image *image, struct error *err)
{
    struct cursor c = cursor_over(list);
    struct aot_method method = { 0 };
    size_t count = cursor_u32le(&c), capacity = 0;
    while (cursor_left(&c) && image->count < count && count <= METHODS_MAX) {
        read_method(&c, list_addr, &method);
        image->methods = mem_grow(image->methods, &capacity, image->count + 1, sizeof *image->methods);
        image->methods[image->count++] = method;
    }
    if (!cursor_finish(&c, err, "the methods of a Native AOT program"))
        return false;
    if (image->count == 0 || image->count < count)
        return error_set(err, ERROR_INPUT, "the methods of a Native AOT program end too early");
    return true;
}

/* Whether all owners are types, with kinds of so many bits. Those without a name have none. */
static bool owners_are_types(const struct aot_image *image)
{
    size_t named = 0;
    for (size_t i = 0; i < image->count; i++) {
        if (!image->methods[i].owner)
            continue;
        if (!aot_metadata_is_type(&image->metadata, image->methods[i].owner))
            return false;
        named++;
    }
    return named > 0;
}

static bool open_metadata(struct aot_image *image, struct error *err)
{
    static const unsigned kind_bits[] = { AOT_KIND_BITS, AOT_KIND_BITS_OLD };
    for (size_t i = 0; i < ARRAY_LEN(kind_bits); i++) {
        if (!aot_metadata_over(buffer_span(&image->bytes), kind_bits[i], &image->metadata, err))
            return false;
        if (owners_are_types(image))
            return true;
    }
    return error_set(err, ERROR_INPUT, "the metadata of a Native AOT program is not as known ones are");
}

struct growing {
    struct aot_image *image;
    size_t capacity;
};

static bool add_method(void *user, const struct aot_method *method)
{
    struct growing *growing = user;
    struct aot_image *image = growing->image;
    image->methods = mem_grow(image->methods, &growing->capacity, image->count + 1, sizeof *image->methods);
    image->methods[image->count++] = *method;
    return image->count < METHODS_MAX;
}

/* The methods that reflection can call, which are not in the list. */
static void read_callable(const struct elf *e, const struct parts *parts, struct aot_image *image)
{
    struct buffer callable, types, places;
    struct growing growing = { image, image->count };
    buffer_init(&callable, TABLE_BYTES_MAX);
    buffer_init(&types, TABLE_BYTES_MAX);
    buffer_init(&places, TABLE_BYTES_MAX);
    bool ok = load_part(e, parts->callable, &callable, NULL) && load_part(e, parts->types, &types, NULL) &&
              load_part(e, parts->places, &places, NULL);
    const struct aot_tables tables = { buffer_span(&callable), buffer_span(&types), buffer_span(&places),
                                       parts->places.start };
    if (ok)
        aot_callable_each(&image->metadata, &tables, add_method, &growing);
    buffer_done(&places);
    buffer_done(&types);
    buffer_done(&callable);
}

bool aot_image_read(const struct elf *e, struct aot_image *out, struct error *err)
{
    struct parts parts = { 0 };
    struct buffer list;
    if (!read_parts(e, &parts, err))
        return false;
    struct aot_image image = { 0 };
    buffer_init(&image.bytes, METADATA_BYTES_MAX);
    buffer_init(&list, TABLE_BYTES_MAX);
    bool ok = load_part(e, parts.metadata, &image.bytes, err) && load_part(e, parts.methods, &list, err) &&
              read_methods(buffer_span(&list), parts.methods.start, &image, err) &&
              open_metadata(&image, err);
    buffer_done(&list);
    *out = image;
    if (!ok) {
        aot_image_done(out);
        return false;
    }
    read_callable(e, &parts, out);
    qsort(out->methods, out->count, sizeof *out->methods, compare);
    return true;
}

void aot_image_done(struct aot_image *image)
{
    free(image->methods);
    buffer_done(&image->bytes);
    *image = (struct aot_image){ 0 };
}
