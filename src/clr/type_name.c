#include "clr/type_name.h"

#include <inttypes.h>
#include <string.h>

#include "clr/member_name.h"
#include "clr/type_keyword.h"

enum { NESTING_MAX = 12, ARITY_MAX = 64 };

static const char canon[] = "System.__Canon";

static struct span part(struct span text, size_t start, size_t end)
{
    return start < end && end <= text.size ? (struct span){ text.data + start, end - start }
                                           : (struct span){ 0 };
}

static bool is_text(struct span text, const char *wanted)
{
    return span_equals(text, span_of(wanted, strlen(wanted)));
}

/* Steps over one character, which a backslash makes part of a name. */
static size_t step(struct span text, size_t i)
{
    return i + (text.data[i] == '\\' && i + 1 < text.size ? 2 : 1);
}

/* Item `index` of a comma-separated list; empty when there is none. */
static struct span list_item(struct span list, unsigned index)
{
    size_t start = 0;
    for (size_t i = 0; i <= list.size; i++) {
        if (i < list.size && list.data[i] != ',')
            continue;
        if (index-- == 0)
            return part(list, start, i);
        start = i + 1;
    }
    return (struct span){ 0 };
}

/* Splits what is between the brackets of an instantiation; false when the brackets do not match. */
static bool split_arguments(struct span text, size_t open, struct type_name *out, size_t *out_end)
{
    unsigned depth = 0;
    size_t start = open + 1;
    for (size_t i = open; i < text.size; i = step(text, i)) {
        uint8_t c = text.data[i];
        if (c == '[')
            depth++;
        if (c == ']')
            depth--;
        if ((c == ',' && depth == 1) || depth == 0) {
            if (out->argument_count == TYPE_NAME_ARGUMENTS_MAX)
                return false;
            out->arguments[out->argument_count++] = part(text, start, i);
            start = i + 1;
        }
        if (depth == 0) {
            *out_end = i + 1;
            return true;
        }
    }
    return false;
}

static struct span without_arity(struct span segment, uint8_t *out_arity)
{
    size_t end = segment.size;
    unsigned arity = 0, unit = 1;
    while (end && segment.data[end - 1] >= '0' && segment.data[end - 1] <= '9' && unit <= 100) {
        arity += unit * (segment.data[--end] - '0');
        unit *= 10;
    }
    *out_arity = 0;
    if (end < 2 || end == segment.size || segment.data[end - 1] != '`' || arity > ARITY_MAX)
        return segment;
    *out_arity = (uint8_t)arity;
    return part(segment, 0, end - 1);
}

/* Only the outermost type has a namespace; a name made by a compiler may hold points of its own. */
static struct span without_namespace(struct span segment)
{
    size_t start = 0;
    for (size_t i = 0; i < segment.size && segment.data[i] != '<'; i++)
        if (segment.data[i] == '.')
            start = i + 1;
    return part(segment, start, segment.size);
}

static bool add_segment(struct type_name *out, struct span segment)
{
    if (out->segment_count == TYPE_NAME_SEGMENTS_MAX || segment.size == 0)
        return false;
    if (out->segment_count == 0)
        segment = without_namespace(segment);
    unsigned i = out->segment_count++;
    out->segments[i] = without_arity(segment, &out->arities[i]);
    return out->segments[i].size != 0;
}

/* What begins behind a type's own name: its arguments, array, pointer, reference. */
static bool is_suffix(uint8_t c)
{
    return c == '[' || c == '*' || c == '&';
}

bool type_name_split(struct span text, struct type_name *out)
{
    *out = (struct type_name){ 0 };
    size_t start = 0, i = 0;
    while (i < text.size && !is_suffix(text.data[i])) {
        if (text.data[i] == '+') {
            if (!add_segment(out, part(text, start, i)))
                return false;
            start = i + 1;
        }
        i = step(text, i);
    }
    if (i > text.size || !add_segment(out, part(text, start, i)))
        return false;
    out->full_path = part(text, 0, i);
    if (i + 1 == text.size && text.data[i] == '[')
        return false;
    if (i < text.size && text.data[i] == '[' && !memchr("],*", text.data[i + 1], 3) &&
        !split_arguments(text, i, out, &i))
        return false;
    out->suffix = part(text, i, text.size);
    return true;
}

bool type_name_is_closure(struct span segment)
{
    return is_text(segment, "<>c") || span_begins(segment, "<>c__") || span_begins(segment, "_Closure$__");
}

static void append_unescaped(struct buffer *out, struct span text)
{
    while (text.size) {
        const uint8_t *escape = memchr(text.data, '\\', text.size - 1);
        size_t plain = escape ? (size_t)(escape - text.data) : text.size;
        buffer_append(out, text.data, plain);
        if (escape)
            buffer_u8(out, escape[1]);
        text = escape ? part(text, plain + 2, text.size) : (struct span){ 0 };
    }
}

/* "<>f__AnonymousType0", "<File>F0A1__Name": the part that means something to people. */
static struct span meaningful(struct span segment)
{
    if (segment.size == 0 || segment.data[0] != '<')
        return segment;
    const uint8_t *close = memchr(segment.data, '>', segment.size);
    size_t from = close ? (size_t)(close - segment.data) + 1 : segment.size;
    bool generated = from == 2 || (from < segment.size && segment.data[from] == 'F');
    for (; generated && from + 2 < segment.size; from++)
        if (segment.data[from] == '_' && segment.data[from + 1] == '_')
            return part(segment, from + 2, segment.size);
    return segment;
}

/* A whole type, with C# keywords: "Dictionary<int,_>.Entry[]". */
static void show_type(struct span text, unsigned depth, struct buffer *out);

/* A generic parameter of an anonymous type is "<Name>j__TPar", of Visual Basic's state machines "SM$T". */
static struct span parameter_name(struct span name)
{
    if (span_begins(name, "SM$"))
        return part(name, 3, name.size);
    const uint8_t *close = name.size > 2 && name.data[0] == '<' ? memchr(name.data, '>', name.size) : NULL;
    return close ? part(name, 1, (size_t)(close - name.data)) : name;
}

static void show_argument(const struct type_name *type, unsigned index, struct span names, unsigned depth,
                          struct buffer *out)
{
    struct span argument = index < type->argument_count ? type->arguments[index] : (struct span){ 0 };
    struct span name = parameter_name(list_item(names, index));
    if (argument.size && !is_text(argument, canon))
        show_type(argument, depth + 1, out);
    else if (name.size)
        buffer_append(out, name.data, name.size);
    else
        buffer_u8(out, '_');
}

static void show_arguments(const struct type_name *type, unsigned segment, struct span names, unsigned *used,
                           unsigned depth, struct buffer *out)
{
    for (unsigned i = 0; i < type->arities[segment]; i++) {
        buffer_u8(out, i ? ',' : '<');
        show_argument(type, (*used)++, names, depth, out);
    }
    if (type->arities[segment])
        buffer_u8(out, '>');
}

static void show_segment(const struct type_name *type, unsigned segment, struct span names, unsigned *used,
                         unsigned depth, struct buffer *out)
{
    struct span name = type->segments[segment];
    if (member_name_is_machine(name))
        member_name_show_machine(name, out);
    else if (type_name_is_closure(name))
        buffer_string(out, "closure");
    else if (!member_name_show_fsharp(name, out))
        append_unescaped(out, meaningful(name));
    show_arguments(type, segment, names, used, depth, out);
}

void type_name_show_segment(const struct type_name *type, unsigned segment, struct span names, unsigned *used,
                            struct buffer *out)
{
    show_segment(type, segment, names, used, 0, out);
}

bool type_name_show_arguments(struct span list, struct span names, struct buffer *out)
{
    struct type_name type = { 0 };
    size_t end = 0;
    if (list.size < 2 || list.data[0] != '[' || !split_arguments(list, 0, &type, &end) || end != list.size)
        return false;
    for (unsigned i = 0; i < type.argument_count; i++) {
        buffer_u8(out, i ? ',' : '<');
        show_argument(&type, i, names, 0, out);
    }
    buffer_u8(out, '>');
    return true;
}

/* Nullable<T> and tuples have a syntax of their own. */
static bool show_special(const struct type_name *type, unsigned depth, struct buffer *out)
{
    const char *keyword = type_keyword(type->full_path);
    if (keyword) {
        buffer_string(out, keyword);
        return true;
    }
    if (type->argument_count == 1 && is_text(type->full_path, "System.Nullable`1")) {
        show_argument(type, 0, (struct span){ 0 }, depth, out);
        buffer_u8(out, '?');
        return true;
    }
    if (type->segment_count != 1 || type->argument_count < 2 ||
        !span_begins(type->full_path, "System.ValueTuple`"))
        return false;
    for (unsigned i = 0; i < type->argument_count; i++) {
        buffer_u8(out, i ? ',' : '(');
        show_argument(type, i, (struct span){ 0 }, depth, out);
    }
    buffer_u8(out, ')');
    return true;
}

/* The state machine of a lambda: what its method is called says the closure that it is in, too. */
static bool is_around_machine(const struct type_name *type, unsigned segment)
{
    return segment + 1 < type->segment_count && type_name_is_closure(type->segments[segment]) &&
           member_name_is_machine(type->segments[segment + 1]);
}

static void show_type(struct span text, unsigned depth, struct buffer *out)
{
    struct type_name type;
    if (is_text(text, canon)) {
        buffer_u8(out, '_');
        return;
    }
    if (depth > NESTING_MAX || !type_name_split(text, &type)) {
        buffer_append(out, text.data, text.size);
        return;
    }
    unsigned used = 0;
    size_t from = out->size;
    if (!show_special(&type, depth, out))
        for (unsigned i = 0; i < type.segment_count; i++) {
            if (is_around_machine(&type, i)) {
                used += type.arities[i];
                continue;
            }
            if (out->size > from)
                buffer_u8(out, '.');
            show_segment(&type, i, (struct span){ 0 }, &used, depth, out);
        }
    buffer_append(out, type.suffix.data, type.suffix.size);
}

void type_name_show(struct span text, struct buffer *out)
{
    show_type(text, 0, out);
}

/* Of what is around a nested type that stands alone only the arguments are told. */
static void give_last_the_rest(struct type_name *type)
{
    unsigned told = 0;
    for (unsigned i = 0; i < type->segment_count; i++)
        told += type->arities[i];
    if (told < type->argument_count)
        type->arities[type->segment_count - 1] += (uint8_t)(type->argument_count - told);
}

void type_name_show_full(struct span text, struct buffer *out)
{
    struct type_name type;
    if (!type_name_split(text, &type)) {
        buffer_append(out, text.data, text.size);
        return;
    }
    if (show_special(&type, 0, out)) {
        buffer_append(out, type.suffix.data, type.suffix.size);
        return;
    }
    give_last_the_rest(&type);
    unsigned used = 0;
    struct span none = { 0 };
    append_unescaped(out, part(type.full_path, 0, (size_t)(type.segments[0].data - type.full_path.data)));
    for (unsigned i = 0; i < type.segment_count; i++) {
        struct span name = type.segments[i];
        if (i)
            buffer_u8(out, '.');
        append_unescaped(out, member_name_is_machine(name) ? name : meaningful(name));
        show_arguments(&type, i, none, &used, 0, out);
    }
    buffer_append(out, type.suffix.data, type.suffix.size);
}
