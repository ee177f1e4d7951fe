#include "unwind/unwind_images.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/mem.h"
#include "read/bundle.h"

enum {
    SECTION_TABLE_AT = 40, /* e_shoff, e_shentsize and e_shnum of an ELF header */
    SECTION_BYTES_AT = 58,
    SECTION_COUNT_AT = 60,
    VDSO_BYTES_MAX = 1 << 16,
    PARTS_MAX = 4096,
};

/* A precompiled assembly inside a single-file program. */
struct image_part {
    uint64_t file_off, size_bytes;
    struct pe_unwind *pe; /* NULL: without code */
};

struct image {
    bool opened, parts_read;
    struct elf_unwind *elf;
    struct pe_unwind *pe;
    struct image_part *parts;
    size_t part_count, part_capacity;
};

struct unwind_images {
    struct image **by_number;
    size_t count, capacity;
    struct unwind_images_stats stats;
};

struct unwind_images *unwind_images_new(void)
{
    return mem_alloc(1, sizeof(struct unwind_images));
}

void unwind_images_free(struct unwind_images *images)
{
    if (!images)
        return;
    for (size_t i = 0; i < images->count; i++) {
        struct image *image = images->by_number[i];
        if (!image)
            continue;
        elf_unwind_close(image->elf);
        pe_unwind_close(image->pe);
        for (size_t part = 0; part < image->part_count; part++)
            pe_unwind_close(image->parts[part].pe);
        free(image->parts);
        free(image);
    }
    free(images->by_number);
    free(images);
}

static struct image *image_numbered(struct unwind_images *images, uint32_t number)
{
    images->by_number =
        mem_grow(images->by_number, &images->capacity, (size_t)number + 1, sizeof *images->by_number);
    while (images->count <= number)
        images->by_number[images->count++] = NULL;
    if (!images->by_number[number])
        images->by_number[number] = mem_alloc(1, sizeof(struct image));
    return images->by_number[number];
}

static void image_read_parts(struct image *image, const struct source *file)
{
    struct bundle *bundle;
    if (!bundle_open(file, &bundle, NULL))
        return;
    for (size_t i = 0; i < bundle_count(bundle) && image->part_count < PARTS_MAX; i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (entry->kind != BUNDLE_ASSEMBLY || entry->compressed_bytes)
            continue;
        struct image_part part = { .file_off = entry->file_off, .size_bytes = entry->size_bytes };
        struct source whole = source_part(file, entry->file_off, entry->size_bytes);
        if (!pe_unwind_open(&whole, &part.pe, NULL))
            continue;
        image->parts =
            mem_grow(image->parts, &image->part_capacity, image->part_count + 1, sizeof *image->parts);
        image->parts[image->part_count++] = part;
    }
    bundle_close(bundle);
}

static void image_read(struct image *image, const struct source *file)
{
    if (!pe_unwind_open(file, &image->pe, NULL))
        elf_unwind_open(file, &image->elf, NULL);
}

/* The assembly in a bundle whose code is mapped from `file_off`, which can lie in the page before it. */
static struct unwind_code image_part_code(const struct image *image, uint64_t start, uint64_t file_off)
{
    for (size_t i = 0; i < image->part_count; i++) {
        const struct image_part *part = &image->parts[i];
        uint64_t bias;
        if (file_off + 0xfff >= part->file_off && file_off < part->file_off + part->size_bytes &&
            pe_unwind_bias(part->pe, start, file_off - part->file_off, &bias))
            return (struct unwind_code){ .kind = UNWIND_CODE_PE, .bias = bias, .pe = part->pe };
    }
    return (struct unwind_code){ .kind = UNWIND_CODE_OTHER };
}

/* How an image's file is had. */
struct image_access {
    uint32_t number;
    unwind_open_fn *open;
    unwind_close_fn *close;
    void *user;
};

/* Whether there was anything to look at. */
static bool image_look(struct unwind_images *images, struct image *image, const struct image_access *access,
                       void (*look)(struct image *image, const struct source *file))
{
    struct source file;
    uint64_t begin_ns = clock_own_cpu_ns();
    bool opened = access->open(access->user, access->number, &file);
    if (opened) {
        look(image, &file);
        access->close(access->user, &file);
    }
    images->stats.open_ns += clock_own_cpu_ns() - begin_ns;
    return opened;
}

/* What cannot be opened for one process, which may be gone, can perhaps for the next one that has it. */
static void image_open(struct unwind_images *images, struct image *image, const struct image_access *access)
{
    image->opened = image_look(images, image, access, image_read);
    images->stats.opened += image->elf || image->pe;
}

struct unwind_code unwind_images_code(struct unwind_images *images, uint32_t number, uint64_t start,
                                      uint64_t file_off, unwind_open_fn *open, unwind_close_fn *close,
                                      void *user)
{
    struct image *image = image_numbered(images, number);
    struct image_access access = { number, open, close, user };
    if (!image->opened)
        image_open(images, image, &access);
    uint64_t bias;
    if (image->elf && elf_unwind_bias(image->elf, start, file_off, &bias))
        return (struct unwind_code){ .kind = UNWIND_CODE_ELF, .bias = bias, .elf = image->elf };
    if (image->pe && pe_unwind_bias(image->pe, start, file_off, &bias))
        return (struct unwind_code){ .kind = UNWIND_CODE_PE, .bias = bias, .pe = image->pe };
    if (image->elf && !image->parts_read) { /* behind what a program loads of itself: perhaps a bundle */
        image->parts_read = true;
        image_look(images, image, &access, image_read_parts);
    }
    return image_part_code(image, start, file_off);
}

struct unwind_images_stats unwind_images_stats(const struct unwind_images *images)
{
    return images->stats;
}

bool unwind_vdso(struct source *out)
{
    const uint8_t *header = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!header)
        return false;
    /* the section headers are the last thing in it */
    uint64_t size = load_u64le(header + SECTION_TABLE_AT) +
                    (uint64_t)load_u16le(header + SECTION_BYTES_AT) * load_u16le(header + SECTION_COUNT_AT);
    if (size > VDSO_BYTES_MAX)
        return false;
    *out = source_over_span(span_of(header, (size_t)size));
    return true;
}
