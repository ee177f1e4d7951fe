#include "render/page_section.h"

#include <zlib.h>

enum { GROUPS_AT_ONCE = 4096 };

static size_t base64_group(const uint8_t *in, size_t left, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t word = (uint32_t)in[0] << 16 | (left > 1 ? (uint32_t)in[1] << 8 : 0) | (left > 2 ? in[2] : 0u);
    out[0] = digits[word >> 18];
    out[1] = digits[word >> 12 & 63];
    out[2] = left > 1 ? digits[word >> 6 & 63] : '=';
    out[3] = left > 2 ? digits[word & 63] : '=';
    return left > 3 ? 3 : left;
}

void page_section_base64(struct output *out, struct span bytes)
{
    char text[GROUPS_AT_ONCE * 4];
    size_t read = 0;
    while (read < bytes.size) {
        size_t written = 0;
        for (; read < bytes.size && written < sizeof text; written += 4)
            read += base64_group(bytes.data + read, bytes.size - read, text + written);
        output_write(out, text, written);
    }
}

/*
 * Columns of small numbers hold few long matches: in large ones, to look for repeated bytes only takes
 * 40 % less time and 5 % more room.
 */
enum { DEFLATE_LEVEL = 1, DEFLATE_WINDOW = -15, DEFLATE_MEMORY = 9, LARGE = 1 << 20, PACKED_MAX = 1 << 30 };

static bool deflate_span(struct span bytes, struct buffer *packed, struct error *err)
{
    z_stream z = { 0 };
    int strategy = bytes.size > LARGE ? Z_RLE : Z_DEFAULT_STRATEGY;
    if (deflateInit2(&z, DEFLATE_LEVEL, Z_DEFLATED, DEFLATE_WINDOW, DEFLATE_MEMORY, strategy) != Z_OK)
        return error_set(err, ERROR_LIMIT, "no memory to compress the page's data");
    enum { STEP_BYTES = 1 << 20 };
    int status = Z_OK;
    size_t read = 0;
    while (status == Z_OK) {
        uint8_t *room = buffer_reserve(packed, STEP_BYTES);
        if (!room)
            break;
        size_t step = bytes.size - read < STEP_BYTES ? bytes.size - read : STEP_BYTES;
        z.next_in = (Bytef *)(uintptr_t)(bytes.data + read); /* zlib 1.2 takes no const */
        z.avail_in = (uInt)step;
        z.next_out = room;
        z.avail_out = STEP_BYTES;
        status = deflate(&z, read + step == bytes.size ? Z_FINISH : Z_NO_FLUSH);
        read += step - z.avail_in;
        packed->size += STEP_BYTES - z.avail_out;
    }
    deflateEnd(&z);
    if (packed->failed)
        return error_set(err, ERROR_LIMIT, "the page's data is larger than 1 GiB");
    return status == Z_STREAM_END || error_set(err, ERROR_SYSTEM, "zlib stopped with %d", status);
}

bool page_section_write(struct output *out, const char *id, struct span bytes, struct error *err)
{
    struct buffer packed;
    buffer_init(&packed, PACKED_MAX);
    bool ok = deflate_span(bytes, &packed, err);
    if (ok) {
        output_text(out, "<script type=\"application/octet-stream\" id=\"");
        output_text(out, id);
        output_text(out, "\">");
        page_section_base64(out, buffer_span(&packed));
        output_text(out, "</script>\n");
    }
    buffer_done(&packed);
    return ok;
}
