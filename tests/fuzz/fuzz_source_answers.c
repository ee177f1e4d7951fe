#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "symbolize/source_answers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAGIC_BYTES = 8, HEAD_BYTES = 12 };

/* What a file in the cache may be, with a checksum that is right. What was read is what is written. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct file_stamp stamp = { 1, 2, 3, 4 };
    struct source_answers answers, again;
    struct source_frame frames[SOURCE_FRAMES_MAX];
    if (size < HEAD_BYTES)
        return 0;
    uint8_t *copy = mem_alloc(size, 1);
    memcpy(copy, data, size);
    uint32_t sum = crc32c(0, copy + HEAD_BYTES, size - HEAD_BYTES);
    for (unsigned i = 0; i < 4; i++)
        copy[MAGIC_BYTES + i] = (uint8_t)(sum >> 8 * i);
    if (source_answers_read(span_of(copy, size), &stamp, &answers, NULL)) {
        struct buffer out;
        buffer_init(&out, SOURCE_ANSWERS_BYTES_MAX);
        for (size_t i = 0; i < answers.count; i++)
            source_answers_frames(&answers, &answers.rows[i], frames);
        source_answers_write(&answers, &stamp, &out);
        if (!out.failed) {
            if (!source_answers_read(buffer_span(&out), &stamp, &again, NULL) || again.count != answers.count)
                abort();
            source_answers_done(&again);
        }
        buffer_done(&out);
        source_answers_done(&answers);
    }
    free(copy);
    return 0;
}
