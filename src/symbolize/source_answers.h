/*
 * source_answers: what native_source_find() said of addresses of one file, for many at a time.
 *
 * As bytes, in which they are kept for later (symbolize/kept_lines.h): u64le magic, u32le CRC-32C of what
 * follows, the text of whoever wrote them and four u64le, the state of the file that was asked, then u32le
 * count and for each address u64le address and u8 count of frames; of each frame u32le line and two texts,
 * function and file, "" for none. A text is u16le size and bytes.
 */
#ifndef CLRPERF_SYMBOLIZE_SOURCE_ANSWERS_H
#define CLRPERF_SYMBOLIZE_SOURCE_ANSWERS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/file_stamp.h"
#include "base/intern.h"
#include "symbolize/native_source.h"

enum { SOURCE_ANSWERS_MAX = 1 << 12, SOURCE_ANSWERS_BYTES_MAX = 2 << 20 };

struct source_answer {
    uint64_t addr;       /* as linked */
    size_t first, count; /* of `frames`; count 0: the file knows nothing of the address */
};

/* A source_frame; its texts are ids, 0 for none. */
struct source_answer_frame {
    uint32_t function, file, line;
};

struct source_answers {
    struct source_answer *rows; /* in any order; once read, ascending */
    size_t count, capacity;
    struct source_answer_frame *frames;
    size_t frame_count, frame_capacity;
    struct intern texts;
};

void source_answers_init(struct source_answers *answers);
void source_answers_done(struct source_answers *answers);
/* `count` of `frames` may be 0. */
void source_answers_add(struct source_answers *answers, uint64_t addr, const struct source_frame *frames,
                        size_t count);
/* By address, as find wants them. Of what was added twice one stays. */
void source_answers_sort(struct source_answers *answers);
/* NULL when the address was not asked. */
const struct source_answer *source_answers_find(const struct source_answers *answers, uint64_t addr);
/* Puts the frames of an answer into `out`, and returns how many. The texts are valid as long as `answers`. */
size_t source_answers_frames(const struct source_answers *answers, const struct source_answer *answer,
                             struct source_frame out[SOURCE_FRAMES_MAX]);

/* Appends the bytes; `out` fails at its ceiling. Sorted, at most SOURCE_ANSWERS_MAX. */
void source_answers_write(const struct source_answers *answers, const struct file_stamp *stamp,
                          struct buffer *out);
/*
 * ERROR_INPUT for what is damaged, of another file's state or of another version; then *out needs no end.
 */
bool source_answers_read(struct span bytes, const struct file_stamp *stamp, struct source_answers *out,
                         struct error *err);

#endif
