/* An image and what may be kept of it: u32le bytes of the image, the image, the index. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "read/ready_to_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 4 };

static void ask(const struct ready_to_run *r2r)
{
    struct r2r_body body;
    for (uint32_t f = 0; f < ready_to_run_function_count(r2r); f++) {
        if (!ready_to_run_body(r2r, f, &body))
            continue;
        if (body.function > f && body.kind == R2R_BODY_NONE)
            abort();
        ready_to_run_find(r2r, body.begin_rva, &body);
    }
}

static bool open_with(const struct source *file, const struct pe *pe, struct pe_range header,
                      struct span index, struct ready_to_run **out)
{
    struct buffer copy;
    buffer_init(&copy, index.size);
    buffer_append(&copy, index.data, index.size);
    bool ok = ready_to_run_open(file, pe, header, &copy, out, NULL);
    buffer_done(&copy);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    struct span all = span_of(data + HEAD_BYTES, size - HEAD_BYTES);
    uint64_t image_bytes = load_u32le(data);
    if (image_bytes > all.size)
        image_bytes = all.size;
    struct source file = source_over_span(span_part(all, 0, image_bytes));
    struct pe pe;
    struct pe_cli cli;
    struct ready_to_run *r2r;
    if (!pe_read(&file, &pe, NULL) || !pe_read_cli(&file, &pe, &cli, NULL) ||
        !open_with(&file, &pe, cli.native_header, span_part(all, image_bytes, all.size - image_bytes), &r2r))
        return 0;
    ask(r2r);
    ready_to_run_close(r2r);
    return 0;
}
