#include "render/frame_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *frame_mark(enum code_kind kind)
{
    switch (kind) {
    case CODE_KERNEL:
    case CODE_IDLE:
        return "_[k]";
    case CODE_R2R:
    case CODE_JIT:
    case CODE_DYNAMIC:
        return "_[j]";
    case CODE_NATIVE:
    case CODE_RUNTIME:
    case CODE_STUB:
        return "_[n]";
    case CODE_UNKNOWN:
    case CODE_KINDS:
        break;
    }
    return "";
}

static bool has_module_prefix(const struct profile_frame *frame)
{
    size_t size = strlen(frame->module);
    return strncmp(frame->name, frame->module, size) == 0 && frame->name[size] == '!';
}

void frame_text_name(struct buffer *into, const struct profile_frame *frame,
                     const struct export_options *options)
{
    if (options && options->modules && *frame->module && !has_module_prefix(frame)) {
        buffer_string(into, frame->module);
        buffer_u8(into, '!');
    }
    buffer_string(into, frame->name);
    if (options && options->annotate)
        buffer_string(into, frame_mark(frame->kind));
}

void frame_text_replace(struct buffer *text, size_t start, char from, char to)
{
    for (size_t i = start; i < text->size; i++) {
        if (text->data[i] == (uint8_t)from)
            text->data[i] = (uint8_t)to;
    }
}

void frame_text_replace_controls(struct buffer *text, size_t start, char to)
{
    for (size_t i = start; i < text->size; i++) {
        uint8_t *at = text->data + i;
        if (*at < 0x20 || *at == 0x7f)
            *at = (uint8_t)to;
        if (text->size - i >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9))
            memset(at, to, 3);
    }
}

void frame_texts_init(struct frame_texts *texts, const struct profile *p,
                      const struct export_options *options, frame_text_fn *render)
{
    buffer_init(&texts->text, SIZE_MAX);
    texts->start = mem_alloc((size_t)p->frame_count + 2, sizeof *texts->start);
    for (uint32_t frame = 1; frame < p->frame_count; frame++) {
        texts->start[frame] = texts->text.size;
        render(&texts->text, &p->frames[frame], frame, options);
    }
    texts->start[p->frame_count ? p->frame_count : 1] = texts->text.size;
}

void frame_texts_done(struct frame_texts *texts)
{
    buffer_done(&texts->text);
    free(texts->start);
    texts->start = NULL;
}

const char *profile_thread_process(const struct profile *p, uint32_t thread)
{
    const char *name = thread < p->thread_count ? p->threads[thread].process_name : NULL;
    return name && *name ? name : "[unknown]";
}

const char *profile_thread_comm(const struct profile *p, uint32_t thread)
{
    const char *name = thread < p->thread_count ? p->threads[thread].name : NULL;
    return name && *name ? name : profile_thread_process(p, thread);
}
