/*
 * frame_text: every frame of a profile as one text format spells it, rendered once.
 */
#ifndef CLRPERF_RENDER_FRAME_TEXT_H
#define CLRPERF_RENDER_FRAME_TEXT_H

#include <stdint.h>

#include "analyse/profile.h"
#include "base/buffer.h"
#include "render/export_options.h"

struct frame_texts {
    struct buffer text;
    size_t *start; /* by frame; one more than there are frames */
};

/* Renders one frame behind what `into` holds. */
typedef void frame_text_fn(struct buffer *into, const struct profile_frame *frame, uint32_t id,
                           const struct export_options *options);

void frame_texts_init(struct frame_texts *texts, const struct profile *p,
                      const struct export_options *options, frame_text_fn *render);
void frame_texts_done(struct frame_texts *texts);

static inline struct span frame_text(const struct frame_texts *texts, uint32_t frame)
{
    size_t start = texts->start[frame];
    return (struct span){ texts->text.data + start, texts->start[frame + 1] - start };
}

/*
 * "[module!]name[_[k]]". With `options` NULL the plain name. A name that begins with its module
 * already ("libcoreclr.so!0x2f3a10") does not get it twice.
 */
void frame_text_name(struct buffer *into, const struct profile_frame *frame,
                     const struct export_options *options);
/* Replaces one byte in everything from `start` on. */
void frame_text_replace(struct buffer *text, size_t start, char from, char to);
/*
 * Likewise for every control character and, byte by byte, for the line separators U+2028 and U+2029,
 * at which the patterns of readers written in JavaScript stop.
 */
void frame_text_replace_controls(struct buffer *text, size_t start, char to);

/* What perf calls comm: the thread's name, else its process's. Never NULL. */
const char *profile_thread_comm(const struct profile *p, uint32_t thread);
const char *profile_thread_process(const struct profile *p, uint32_t thread);

#endif
