/*
 * path_text: the frames from the root to a node of the call tree, joined by a separator.
 *
 * Keeps the path it rendered last and only renders what differs from it, which is most of the speed
 * of the formats that spell whole stacks: sorted nodes share nearly all of their path.
 */
#ifndef CLRPERF_RENDER_PATH_TEXT_H
#define CLRPERF_RENDER_PATH_TEXT_H

#include <stdint.h>

#include "render/frame_text.h"

struct path_text {
    const struct profile *profile; /* borrowed */
    const struct frame_texts *frames;
    char separator;
    struct buffer text;
    uint32_t *node_depth; /* by node; the root has 0 */
    uint32_t *node;       /* by depth: the path in `text` */
    size_t *end;          /* by depth: where the text of its frame ends */
    uint32_t *missing;    /* by depth: the part that is being added */
    uint32_t depth;
};

void path_text_init(struct path_text *path, const struct profile *p, const struct frame_texts *frames,
                    char separator);
void path_text_done(struct path_text *path);
/* What stands in front of every path from now on, "" for nothing. */
void path_text_root(struct path_text *path, const char *root);
/* Valid until the next call. */
struct span path_text_of(struct path_text *path, uint32_t node);

#endif
