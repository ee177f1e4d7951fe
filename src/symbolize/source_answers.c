#include "symbolize/source_answers.h"

#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"

/* Raised whenever native_source_find() says something else than before. */
#define WRITER "1 clrperf " CLRPERF_VERSION

enum { TEXT_BYTES_MAX = 64 << 20, HEAD_BYTES = 12 };

static const uint64_t magic = UINT64_C(0x0a73656e696c6c63); /* "cllines\n" */

void source_answers_init(struct source_answers *answers)
{
    *answers = (struct source_answers){ 0 };
    intern_init(&answers->texts, TEXT_BYTES_MAX);
}

void source_answers_done(struct source_answers *answers)
{
    intern_done(&answers->texts);
    free(answers->rows);
    free(answers->frames);
    *answers = (struct source_answers){ 0 };
}

static void add_frame(struct source_answers *answers, const struct source_frame *frame)
{
    answers->frames = mem_grow(answers->frames, &answers->frame_capacity, answers->frame_count + 1,
                               sizeof *answers->frames);
    answers->frames[answers->frame_count++] = (struct source_answer_frame){
        .function = frame->function ? intern_cstr(&answers->texts, frame->function) : 0,
        .file = frame->file ? intern_cstr(&answers->texts, frame->file) : 0,
        .line = frame->line,
    };
}

void source_answers_add(struct source_answers *answers, uint64_t addr, const struct source_frame *frames,
                        size_t count)
{
    answers->rows = mem_grow(answers->rows, &answers->capacity, answers->count + 1, sizeof *answers->rows);
    answers->rows[answers->count++] = (struct source_answer){ addr, answers->frame_count, count };
    for (size_t i = 0; i < count; i++)
        add_frame(answers, &frames[i]);
}

static int compare_rows(const void *a, const void *b)
{
    const struct source_answer *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

void source_answers_sort(struct source_answers *answers)
{
    size_t kept = 0;
    if (answers->count)
        qsort(answers->rows, answers->count, sizeof *answers->rows, compare_rows);
    for (size_t i = 0; i < answers->count; i++)
        if (i == 0 || answers->rows[i].addr != answers->rows[kept - 1].addr)
            answers->rows[kept++] = answers->rows[i];
    answers->count = kept;
}

const struct source_answer *source_answers_find(const struct source_answers *answers, uint64_t addr)
{
    struct source_answer wanted = { .addr = addr };
    return answers->count ? bsearch(&wanted, answers->rows, answers->count, sizeof wanted, compare_rows)
                          : NULL;
}

size_t source_answers_frames(const struct source_answers *answers, const struct source_answer *answer,
                             struct source_frame out[SOURCE_FRAMES_MAX])
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct source_answer_frame *frame = &answers->frames[answer->first + i];
        out[i] = (struct source_frame){
            .function = i + 1 < answer->count ? intern_text(&answers->texts, frame->function) : NULL,
            .file = frame->file ? intern_text(&answers->texts, frame->file) : NULL,
            .line = frame->line,
        };
    }
    return answer->count;
}

static void write_text(struct span text, struct buffer *out)
{
    if (text.size > UINT16_MAX)
        out->failed = true;
    buffer_u16le(out, (uint16_t)text.size);
    buffer_append(out, text.data, text.size);
}

static void write_answer(const struct source_answers *answers, const struct source_answer *answer,
                         struct buffer *out)
{
    buffer_u64le(out, answer->addr);
    buffer_u8(out, (uint8_t)answer->count);
    for (size_t i = 0; i < answer->count; i++) {
        const struct source_answer_frame *frame = &answers->frames[answer->first + i];
        buffer_u32le(out, frame->line);
        write_text(intern_span(&answers->texts, frame->function), out);
        write_text(intern_span(&answers->texts, frame->file), out);
    }
}

void source_answers_write(const struct source_answers *answers, const struct file_stamp *stamp,
                          struct buffer *out)
{
    struct buffer body;
    buffer_init(&body, out->ceiling);
    write_text(span_of(WRITER, sizeof WRITER - 1), &body);
    file_stamp_append(stamp, &body);
    buffer_u32le(&body, (uint32_t)answers->count);
    for (size_t i = 0; i < answers->count; i++)
        write_answer(answers, &answers->rows[i], &body);
    buffer_u64le(out, magic);
    buffer_u32le(out, crc32c(0, body.data, body.size));
    buffer_append(out, body.data, body.size);
    out->failed |= body.failed;
    buffer_done(&body);
}

static struct span read_text(struct cursor *c)
{
    return cursor_bytes(c, cursor_u16le(c));
}

static uint32_t read_interned(struct cursor *c, struct intern *texts)
{
    struct span text = read_text(c);
    return text.size ? intern_add(texts, text) : 0;
}

static bool read_answer(struct cursor *c, struct source_answers *answers)
{
    uint64_t addr = cursor_u64le(c);
    size_t count = cursor_u8(c);
    bool ascends = answers->count == 0 || addr > answers->rows[answers->count - 1].addr;
    if (!cursor_ok(c) || !ascends || count > SOURCE_FRAMES_MAX)
        return false;
    source_answers_add(answers, addr, NULL, 0);
    answers->rows[answers->count - 1].count = count;
    for (size_t i = 0; i < count; i++) {
        add_frame(answers, &(struct source_frame){ .line = cursor_u32le(c) });
        struct source_answer_frame *frame = &answers->frames[answers->frame_count - 1];
        frame->function = read_interned(c, &answers->texts);
        frame->file = read_interned(c, &answers->texts);
    }
    return cursor_ok(c);
}

static bool is_of(struct cursor *c, const struct file_stamp *stamp)
{
    return cursor_u64le(c) == stamp->device && cursor_u64le(c) == stamp->inode &&
           cursor_u64le(c) == stamp->size_bytes && cursor_u64le(c) == stamp->changed_ns;
}

bool source_answers_read(struct span bytes, const struct file_stamp *stamp, struct source_answers *out,
                         struct error *err)
{
    struct cursor c = cursor_over(bytes);
    source_answers_init(out);
    bool ok = cursor_u64le(&c) == magic;
    uint32_t sum = cursor_u32le(&c);
    struct span body = span_part(bytes, HEAD_BYTES, bytes.size < HEAD_BYTES ? 0 : bytes.size - HEAD_BYTES);
    ok = ok && cursor_ok(&c) && crc32c(0, body.data, body.size) == sum &&
         span_equals(read_text(&c), span_of(WRITER, sizeof WRITER - 1)) && is_of(&c, stamp);
    uint32_t count = ok ? cursor_u32le(&c) : 0;
    ok = ok && count <= SOURCE_ANSWERS_MAX;
    for (uint32_t i = 0; ok && i < count; i++)
        ok = read_answer(&c, out);
    if (ok && cursor_ok(&c))
        return true;
    source_answers_done(out);
    return error_set(err, ERROR_INPUT, "kept source lines are damaged, or of another file");
}
