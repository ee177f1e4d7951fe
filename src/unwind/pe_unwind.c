#include "unwind/pe_unwind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/unwind_info.h"

enum {
    EXCEPTION_DIRECTORY = 3,
    FUNCTION_BYTES = 12, /* u32 begin, u32 end, u32 unwind info: RVAs */
    FUNCTIONS_BYTES_MAX = 64 << 20,
    INFOS_BYTES_MAX = 64 << 20,
    MAPPING_SLACK_BYTES = 0x10000, /* the largest page there is */
};

struct pe_unwind {
    struct pe pe;
    struct buffer functions; /* sorted by begin */
    uint32_t count;
    struct buffer infos; /* every function's, from info_rva on */
    uint32_t info_rva;
};

static uint32_t function_word(const struct pe_unwind *image, uint32_t i, unsigned word)
{
    return load_u32le(image->functions.data + (size_t)i * FUNCTION_BYTES + 4 * word);
}

/* The infos of an image lie together; shared ones are named by several functions. */
static bool load_infos(const struct source *file, struct pe_unwind *image, struct error *err)
{
    uint32_t first = UINT32_MAX, last = 0;
    uint64_t file_off;
    for (uint32_t i = 0; i < image->count; i++) {
        uint32_t rva = function_word(image, i, 2);
        if (!pe_file_offset(&image->pe, rva, UNWIND_INFO_HEADER_BYTES, &file_off))
            continue;
        first = rva < first ? rva : first;
        last = rva > last ? rva : last;
    }
    if (first > last)
        return error_set(err, ERROR_INPUT, "an image without unwind information");
    /* the last one may be as long as its header says, but not leave its section */
    uint32_t size = last - first + UNWIND_INFO_BYTES_MAX;
    while (size > last - first + UNWIND_INFO_HEADER_BYTES &&
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
    if (ok && (image->pe.machine != PE_MACHINE_X64 || table.size < FUNCTION_BYTES))
        ok = error_set(err, ERROR_UNSUPPORTED, "an image without x64 runtime functions");
    ok = ok && pe_load(file, &image->pe, table, &image->functions, err);
    image->count = (uint32_t)(image->functions.size / FUNCTION_BYTES);
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
    uint32_t low = 0, high = image->count; /* functions below `low` begin at or before rva */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (function_word(image, middle, 0) <= rva)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || rva >= function_word(image, low - 1, 1))
        return false;
    uint64_t off = (uint64_t)function_word(image, low - 1, 2) - image->info_rva;
    struct span infos = buffer_span(&image->infos);
    struct span header = span_part(infos, off, UNWIND_INFO_HEADER_BYTES);
    *out = (struct unwind_function){
        .begin = function_word(image, low - 1, 0),
        .end = function_word(image, low - 1, 1),
        .info = header.size ? span_part(infos, off, unwind_info_bytes(header.data)) : header,
    };
    return true;
}
