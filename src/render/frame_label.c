#include "render/frame_label.h"

#include <stdbool.h>
#include <string.h>

#include "base/own.h"

/* Where the parameters start: the first parenthesis that is not the name's first character. */
static size_t label_head(const char *name)
{
    const char *open = name[0] ? strchr(name + 1, '(') : NULL;
    return open ? (size_t)(open - name) : strlen(name);
}

/* "Type.Property.get" has a part more than "Type.Method". */
static bool label_is_accessor(const char *name, size_t head)
{
    static const char *const accessors[] = { ".get", ".set", ".add", ".remove" };
    for (size_t i = 0; i < ARRAY_LEN(accessors); i++) {
        size_t size = strlen(accessors[i]);
        if (head > size && memcmp(name + head - size, accessors[i], size) == 0)
            return true;
    }
    return false;
}

/* The start of "Type.Method" in "Ns.Type<A.B>.Method": behind the last dot but one outside brackets. */
static size_t label_type_start(const char *name, size_t head)
{
    int depth = 0, dots = 0, parts = label_is_accessor(name, head) ? 3 : 2;
    for (size_t i = head; i-- > 0;) {
        char c = name[i];
        depth += c == '>' || c == ']';
        depth -= c == '<' || c == '[';
        if (c != '.' || depth != 0 || i + 1 == head)
            continue;
        /* "Type..ctor" has one separator. */
        if (i > 0 && name[i - 1] == '.')
            continue;
        if (++dots == parts)
            return i + 1;
    }
    return 0;
}

struct span frame_label(const char *name, size_t bytes)
{
    size_t size = strlen(name);
    if (size <= bytes)
        return span_of(name, size);
    size_t head = label_head(name);
    if (head <= bytes || name[0] == '[')
        return span_of(name, head);
    size_t start = label_type_start(name, head);
    return span_of(name + start, head - start);
}
