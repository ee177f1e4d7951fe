#include "unwind/pe_unwind.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
    EXCEPTION_DIRECTORY = 3,
    FUNCTIONS_BYTES_MAX = 64 << 20,
    INFOS_BYTES_MAX = 64 << 20,
    MAPPING_SLACK_BYTES = 0x10000, /* the largest page there is */
};

struct pe_unwind {
    struct pe pe;
    const struct unwind_format *format;
    struct buffer functions; /* sorted by begin */
    uint32_t count;
    struct buffer infos; /* every function's, from info_rva on */
    uint32_t info_rva;
};

static const uint8_t *function_entry(const struct pe_unwind *image, uint32_t i)
{
    return image->functions.data + (size_t)i * image->format->entry_bytes;
}

static bool is_info(const struct pe_unwind *image, uint32_t rva)
{
    uint64_t file_off;
    return pe_file_offset(&image->pe, rva, image->format->header_bytes, &file_off);
}

/* The first and the last info; without looking whether those that are named are there when not `checked`. */
static void span_infos(const struct pe_unwind *image, bool checked, uint32_t *first, uint32_t *last)
{
    *first = UINT32_MAX;
    *last = 0;
    for (uint32_t i = 0; i < image->count; i++) {
        uint32_t rva = image->format->info_at(function_entry(image, i));
        if (!rva || (checked && !is_info(image, rva)))
            continue;
        *first = rva < *first ? rva : *first;
        *last = rva > *last ? rva : *last;
    }
}

/* The infos of an image lie together; shared ones are named by several functions. */
static bool load_infos(const struct source *file, struct pe_unwind *image, struct error *err)
{
    uint32_t first, last;
    uint64_t file_off;
    span_infos(image, false, &first, &last);
    if (first <= last && !(is_info(image, first) && is_info(image, last)))
        span_infos(image, true, &first, &last);
    if (first > last)
        return error_set(err, ERROR_INPUT, "an image without unwind information");
    /* the last one may be as long as its header says, but not leave its section */
    uint32_t size = last - first + image->format->info_bytes_max;
    while (size > last - first + image->format->header_bytes &&
           !pe_file_offset(&image->pe, first, size, &file_off))
        size -= 2;
    image->info_rva = first;
    return pe_load(file, &image->pe, (struct pe_range){ first, size }, &image->infos, err);
}

bool pe_unwind_open(const struct source *file, struct pe_unwind **out, struct error *err)
{
    struct pe_unwind *image = mem_alloc(1, sizeof *image);
    buffer_init(&image->functions, FUNCTIONS_BYTES_MAX);
    buffer_init(&image->infos, INFOS_BYTES_MAX);
    bool ok = pe_read(file, &image->pe, err);
    struct pe_range table = image->pe.directories[EXCEPTION_DIRECTORY];
    image->format = unwind_format_of(image->pe.machine);
    if (ok && (!image->format || table.size < image->format->entry_bytes))
        ok = error_set(err, ERROR_UNSUPPORTED, "an image without runtime functions of x64 or arm64");
    ok = ok && pe_load(file, &image->pe, table, &image->functions, err);
    image->count = ok ? (uint32_t)(image->functions.size / image->format->entry_bytes) : 0;
    ok = ok && load_infos(file, image, err);
    if (!ok) {
        pe_unwind_close(image);
        return false;
    }
    *out = image;
    return true;
}

void pe_unwind_close(struct pe_unwind *image)
{
    if (!image)
        return;
    buffer_done(&image->functions);
    buffer_done(&image->infos);
    free(image);
}

bool pe_unwind_bias(const struct pe_unwind *image, uint64_t start, uint64_t file_off, uint64_t *out_bias)
{
    uint32_t rva;
    /* the mapping of .text may begin in the page of the headers */
    for (uint32_t i = 0; i < image->pe.section_count; i++) {
        const struct pe_section *s = &image->pe.sections[i];
        uint64_t ahead = s->file_off - file_off; /* in a bundle the mapping may begin before the image */
        if (s->executable && ahead && ahead < MAPPING_SLACK_BYTES && s->file_size) {
            *out_bias = start + ahead - s->rva;
            return true;
        }
    }
    if (!pe_code_rva(&image->pe, file_off, &rva))
        return false;
    *out_bias = start - rva;
    return true;
}

bool pe_unwind_find(const struct pe_unwind *image, uint64_t rva, struct unwind_function *out)
{
    const struct unwind_format *format = image->format;
    uint32_t low = 0, high = image->count; /* functions below `low` begin at or before rva */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (load_u32le(function_entry(image, middle)) <= rva)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    const uint8_t *entry = function_entry(image, low - 1);
    uint32_t info_rva = format->info_at(entry);
    struct span infos = buffer_span(&image->infos);
    struct span header = info_rva
                             ? span_part(infos, (uint64_t)info_rva - image->info_rva, format->header_bytes)
                             : (struct span){ 0 };
    struct unwind_function f = {
        .begin = load_u32le(entry),
        .end = format->function_end(entry, header.data),
        .format = format,
    };
    if (rva >= f.end)
        return false;
    if (header.size)
        f.info = span_part(infos, (uint64_t)info_rva - image->info_rva, format->info_bytes(header.data));
    *out = f;
    return true;
}
