#include "render/folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "render/frame_text.h"
#include "render/path_text.h"
#include "render/sample_groups.h"

static void render_frame(struct buffer *into, const struct profile_frame *frame, uint32_t id,
                         const struct export_options *options)
{
    (void)id;
    size_t start = into->size;
    frame_text_name(into, frame, options);
    frame_text_replace(into, start, ';', ':');
    frame_text_replace_controls(into, start, ' ');
}

static uint32_t add_root(struct intern *roots, struct buffer *scratch, const char *name)
{
    buffer_clear(scratch);
    buffer_string(scratch, name);
    frame_text_replace(scratch, 0, ' ', '_');
    frame_text_replace(scratch, 0, ';', ':');
    frame_text_replace_controls(scratch, 0, '_');
    return intern_add(roots, buffer_span(scratch));
}

/* By thread: the id of its first frame, so that threads (or processes) of one name become one. */
static uint32_t *make_roots(const struct profile *p, const struct export_options *options,
                            struct intern *roots)
{
    uint32_t *root_of = mem_alloc((size_t)p->thread_count + 1, sizeof *root_of);
    struct buffer scratch;
    buffer_init(&scratch, SIZE_MAX);
    for (uint32_t thread = 0; thread < p->thread_count; thread++) {
        const char *name =
            options->threads ? profile_thread_comm(p, thread) : profile_thread_process(p, thread);
        /* folded stacks of others do not say whose they are */
        bool known =
            !thread || p->threads[thread].pid || strcmp(p->threads[thread].process_name, "[unknown]") != 0;
        root_of[thread] = known ? add_root(roots, &scratch, name) : 0;
    }
    buffer_done(&scratch);
    return root_of;
}

static void write_lines(const struct sample_groups *groups, const struct intern *roots,
                        struct path_text *path, bool samples, struct output *out)
{
    uint32_t root = 0;
    path_text_root(path, "");
    for (size_t i = 0; i < groups->count && !out->failed; i++) {
        const struct sample_group *group = &groups->rows[i];
        if (group->owner != root)
            path_text_root(path, intern_text(roots, group->owner));
        root = group->owner;
        output_span(out, path_text_of(path, group->node));
        output_char(out, ' ');
        output_u64(out, samples ? group->samples : group->weight);
        output_char(out, '\n');
    }
}

bool folded_write(const struct profile *p, const struct export_options *options, struct output *out,
                  struct error *err)
{
    struct intern roots;
    struct frame_texts frames;
    struct path_text path;
    struct sample_groups groups;

    intern_init(&roots, SIZE_MAX);
    uint32_t *root_of = make_roots(p, options, &roots);
    frame_texts_init(&frames, p, options, render_frame);
    path_text_init(&path, p, &frames, ';');
    sample_groups_init(&groups, p, root_of);
    bool samples = p->rate_hz > 0;
    write_lines(&groups, &roots, &path, samples, out);
    sample_groups_done(&groups);
    path_text_done(&path);
    frame_texts_done(&frames);
    free(root_of);
    intern_done(&roots);
    return output_ok(out, err);
}
