#include "clr/event_path.h"

#include <string.h>

#include "base/utf16.h"
#include "clr/event_field.h"

struct path_walk {
    const char
        *rest[EVENT_FIELD_DEPTH_MAX + 2]; /* by depth: what of the path is to be found there, or NULL */
    bool item[EVENT_FIELD_DEPTH_MAX + 2]; /* by depth: it is one of an array */
    unsigned depth;
    bool key; /* the item has the key that is looked for */
    bool found;
    struct event_value *out;
};

static const char *path_behind(const char *path, const char *name)
{
    size_t size = strlen(name);
    return strncmp(path, name, size) == 0 && path[size] == '.' ? path + size + 1 : NULL;
}

static bool is_text(const struct event_value *v, const char *text)
{
    if (v->kind == EVENT_VALUE_TEXT16)
        return utf16_equals_ascii(v->bytes, text);
    return v->kind == EVENT_VALUE_TEXT8 && v->bytes.size == strlen(text) &&
           memcmp(v->bytes.data, text, v->bytes.size) == 0;
}

static void path_value(void *user, const char *name, const struct event_value *v)
{
    struct path_walk *w = user;
    const char *rest = w->rest[w->depth];
    if (!rest || w->found)
        return;
    if (w->item[w->depth] && strcmp(name, "Key") == 0)
        w->key = is_text(v, rest);
    if (w->item[w->depth] ? !w->key || strcmp(name, "Value") != 0 : strcmp(name, rest) != 0)
        return;
    w->found = true;
    *w->out = *v;
}

static void path_begin(void *user, const char *name, bool array)
{
    struct path_walk *w = user;
    const char *rest = w->rest[w->depth++];
    (void)array;
    w->item[w->depth] = !*name;
    w->rest[w->depth] = rest && *name ? path_behind(rest, name) : rest;
    w->key = false;
}

static void path_end(void *user, bool array)
{
    struct path_walk *w = user;
    (void)array;
    w->depth--;
}

bool event_path_read(const struct event_schema *s, struct span payload, const char *path,
                     struct event_value *out)
{
    struct path_walk walk = { .rest = { path }, .out = out };
    const struct event_visitor visitor = { &walk, path_value, path_begin, path_end };
    event_schema_visit(s, payload, &visitor);
    return walk.found;
}
