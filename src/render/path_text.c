#include "render/path_text.h"

#include <stdlib.h>

#include "base/mem.h"

void path_text_init(struct path_text *path, const struct profile *p, const struct frame_texts *frames,
                    char separator)
{
    *path = (struct path_text){ .profile = p, .frames = frames, .separator = separator };
    buffer_init(&path->text, SIZE_MAX);
    path->node_depth = mem_alloc(p->node_count, sizeof *path->node_depth);
    uint32_t deepest = 0;
    for (uint32_t node = 1; node < p->node_count; node++) {
        uint32_t depth = path->node_depth[p->nodes[node].parent] + 1;
        path->node_depth[node] = depth;
        if (depth > deepest)
            deepest = depth;
    }
    path->node = mem_alloc((size_t)deepest + 1, sizeof *path->node);
    path->end = mem_alloc((size_t)deepest + 1, sizeof *path->end);
    path->missing = mem_alloc((size_t)deepest + 1, sizeof *path->missing);
}

void path_text_done(struct path_text *path)
{
    buffer_done(&path->text);
    free(path->node_depth);
    free(path->node);
    free(path->end);
    free(path->missing);
}

void path_text_root(struct path_text *path, const char *root)
{
    buffer_clear(&path->text);
    buffer_string(&path->text, root);
    path->depth = 0;
    path->end[0] = path->text.size;
}

struct span path_text_of(struct path_text *path, uint32_t node)
{
    const struct profile *p = path->profile;
    uint32_t missing = 0;
    while (node != 0) {
        uint32_t depth = path->node_depth[node];
        if (depth <= path->depth && path->node[depth] == node)
            break;
        path->missing[missing++] = node;
        node = p->nodes[node].parent;
    }
    path->depth = path->node_depth[node];
    path->text.size = path->end[path->depth];
    while (missing > 0) {
        uint32_t next = path->missing[--missing];
        struct span name = frame_text(path->frames, p->nodes[next].frame);
        if (path->text.size > 0)
            buffer_u8(&path->text, (uint8_t)path->separator);
        buffer_append(&path->text, name.data, name.size);
        path->depth++;
        path->node[path->depth] = next;
        path->end[path->depth] = path->text.size;
    }
    return buffer_span(&path->text);
}
