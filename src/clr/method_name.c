#include "clr/method_name.h"

#include <string.h>

#include "base/own.h"
#include "clr/member_name.h"
#include "clr/type_name.h"

struct parts {
    struct span type, method; /* "Ns.Type`1[Args]", "Method" */
    struct span arguments;    /* "[Args]", the method's own, or empty */
    struct span parameters;   /* with the parentheses, or empty */
    bool is_thunk;
};

/* The three lists of code_name.type_params. */
struct params {
    struct span type, method, kind;
};

static struct span span_between(struct span text, size_t start, size_t end)
{
    return start < end && end <= text.size ? (struct span){ text.data + start, end - start }
                                           : (struct span){ 0 };
}

static bool is_text(struct span text, const char *wanted)
{
    return span_equals(text, span_of(wanted, strlen(wanted)));
}

static bool contains(struct span text, const char *wanted)
{
    return text.size && memmem(text.data, text.size, wanted, strlen(wanted));
}

bool method_name_is_async_thunk(struct span raw)
{
    return span_ends(raw, METHOD_ASYNC_THUNK);
}

/* "[System.Int32]" behind a method's name, from `out_name`'s end on; empty where there is none. */
static struct span take_arguments(struct span *name)
{
    size_t depth = 0, at = name->size;
    while (at > 1) {
        uint8_t c = name->data[--at];
        if (name->data[at - 1] == '\\')
            continue;
        depth += c == ']';
        depth -= c == '[' && depth;
        if (depth == 0)
            break;
    }
    if (name->size < 2 || depth || name->data[at] != '[')
        return (struct span){ 0 };
    struct span arguments = span_between(*name, at, name->size);
    *name = span_between(*name, 0, at);
    return arguments;
}

/* C++ has "a::b::c", blanks before the name, and templates; the runtime has one "::" and none of these. */
static bool split(struct span raw, struct parts *out)
{
    bool is_thunk = method_name_is_async_thunk(raw);
    if (is_thunk)
        raw.size -= sizeof METHOD_ASYNC_THUNK - 1;
    const uint8_t *colons = raw.size ? memmem(raw.data, raw.size, "::", 2) : NULL;
    if (!colons || colons == raw.data)
        return false;
    size_t at = (size_t)(colons - raw.data);
    struct span type = span_between(raw, 0, at), rest = span_between(raw, at + 2, raw.size);
    if (rest.size == 0 || memchr(type.data, ' ', type.size) || memchr(type.data, '(', type.size))
        return false;
    const uint8_t *open = memchr(rest.data, '(', rest.size);
    size_t end = open ? (size_t)(open - rest.data) : rest.size;
    struct span method = span_between(rest, 0, end);
    if (method.size == 0 || contains(method, "::"))
        return false;
    struct span arguments = take_arguments(&method);
    *out = (struct parts){ type, method, arguments, span_between(rest, end, rest.size), is_thunk };
    return true;
}

/* '<' may only open a name that a compiler made; elsewhere it is a template's. */
static bool has_template(const struct type_name *type)
{
    for (unsigned i = 0; i < type->segment_count; i++) {
        struct span segment = type->segments[i];
        if (segment.data[0] != '<' && memchr(segment.data, '<', segment.size))
            return true;
    }
    return false;
}

static struct params split_params(const char *text)
{
    struct span list[3] = { { 0 } };
    for (unsigned i = 0; i < ARRAY_LEN(list); i++) {
        size_t size = strcspn(text, ";");
        list[i] = span_of(text, size);
        text += size;
        text += *text == ';';
    }
    return (struct params){ list[0], list[1], list[2] };
}

/* Left out where it is said what the stub serves. */
#define STUB_NOTE " stub]"

static const struct {
    const char *name, *shown;
} il_stubs[] = {
    { "IL_STUB_PInvoke", "[P/Invoke stub]" },
    { "IL_STUB_ReversePInvoke", "[reverse P/Invoke stub]" },
    { "IL_STUB_CLRtoCOM", "[COM call stub]" },
    { "IL_STUB_COMtoCLR", "[COM entry stub]" },
    { "IL_STUB_StructMarshal", "[struct marshalling stub]" },
    { "IL_STUB_Array", "[array stub]" },
    { "IL_STUB_Array_Get", "[array get stub]" },
    { "IL_STUB_Array_Set", "[array set stub]" },
    { "IL_STUB_Array_Address", "[array address stub]" },
    { "IL_STUB_Delegate_Invoke", "[delegate invoke stub]" },
    { "IL_STUB_MulticastDelegate_Invoke", "[multicast delegate stub]" },
    { "IL_STUB_WrapperDelegate_Invoke", "[wrapper delegate stub]" },
    { "IL_STUB_SecureDelegate_Invoke", "[wrapper delegate stub]" },
    { "IL_STUB_InstantiatingStub", "[instantiating stub]" },
    { "IL_STUB_UnboxingStub", "[unboxing stub]" },
    { "IL_STUB_StoreTailCallArgs", "[tail call stub]" },
    { "IL_STUB_CallTailCallTarget", "[tail call stub]" },
    { "IL_STUB_DelegateShuffleThunk", "[delegate shuffle thunk]" },
    { "IL_STUB_VirtualStaticMethodDispatch", "[static virtual dispatch stub]" },
    { "IL_STUB_bVirtualStaticMethodDispatch",
      "[static virtual dispatch stub]" }, /* so .NET 8 and 9 spell it */
    { "IL_STUB_AsyncResume", "[async resume stub]" },
};

static bool is_dynamic_type(struct span type)
{
    return is_text(type, "dynamicClass") || is_text(type, "DynamicClass") || is_text(type, "ILStubClass");
}

/* The runtime's own kind, with what it serves: a method, or an imported function. False: it is another one.
 */
static bool show_il_stub(struct span method, struct span serves, struct buffer *out)
{
    size_t i = 0;
    while (i < ARRAY_LEN(il_stubs) && !is_text(method, il_stubs[i].name))
        i++;
    if (i == ARRAY_LEN(il_stubs))
        return false;
    struct span shown = span_of(il_stubs[i].shown, strlen(il_stubs[i].shown));
    if (serves.size == 0) {
        buffer_append(out, shown.data, shown.size);
        return true;
    }
    size_t note = span_ends(shown, STUB_NOTE) ? sizeof STUB_NOTE - 1 : 1;
    buffer_append(out, shown.data, shown.size - note);
    buffer_string(out, "] ");
    method_name_show(serves, "", out);
    return true;
}

static const char *machine_note(struct span kind, const struct buffer *out, size_t start)
{
    if (is_text(kind, "async"))
        return " (async)";
    if (is_text(kind, "iterator"))
        return " (iterator)";
    struct span shown = { out->data + start, out->size - start };
    return span_ends(shown, "Async") ? " (async)" : " (state machine)";
}

/* Names stand for what is not told, or for code that is shared. */
static void show_method_params(struct span arguments, struct span names, struct buffer *out)
{
    if (arguments.size && type_name_show_arguments(arguments, names, out))
        return;
    if (names.size == 0)
        return;
    buffer_u8(out, '<');
    buffer_append(out, names.data, names.size);
    buffer_u8(out, '>');
}

enum owner_form { OWNER_WHOLE, OWNER_OF_LAMBDA, OWNER_TYPE /* without what compilers made for a method */ };

static bool is_left_out(struct span segment, enum owner_form form)
{
    if (form == OWNER_TYPE && (member_name_is_machine(segment) || member_name_is_fsharp(segment)))
        return true;
    return form != OWNER_WHOLE && type_name_is_closure(segment);
}

/* The types around the method; those that only hold captured variables are left out before a lambda. */
static void show_owner(const struct type_name *type, struct span names, enum owner_form form,
                       struct buffer *out)
{
    unsigned used = 0;
    struct span first = type->segments[0];
    buffer_append(out, type->full_path.data, (size_t)(first.data - type->full_path.data)); /* the namespace */
    for (unsigned i = 0; i < type->segment_count; i++) {
        if (i && is_left_out(type->segments[i], form)) {
            used += type->arities[i];
            continue;
        }
        if (i)
            buffer_u8(out, '.');
        type_name_show_segment(type, i, names, &used, out);
    }
}

static void show_managed(const struct parts *parts, const struct type_name *type, const char *type_params,
                         struct buffer *out)
{
    struct params params = split_params(type_params);
    struct span last = type->segments[type->segment_count - 1];
    size_t start = out->size;
    bool is_lambda = span_begins(parts->method, "<") || span_begins(parts->method, "_Lambda$__");
    show_owner(type, params.type, is_lambda || member_name_is_machine(last) ? OWNER_OF_LAMBDA : OWNER_WHOLE,
               out);
    bool is_machine = member_name_is_machine(last), is_closure = member_name_is_fsharp(last);
    bool moves = (is_machine || is_closure) && is_text(parts->method, "MoveNext");
    const char *note = "";
    if (is_closure && moves) /* of a `task`: nothing in metadata says what for; a `seq` has another method */
        note = " (async)";
    else if (is_machine && !out->failed)
        note = machine_note(params.kind, out, start);
    else if (parts->is_thunk)
        note = " (async thunk)";
    bool is_body = moves || (is_closure && is_text(parts->method, "Invoke"));
    if (!is_body) {
        buffer_u8(out, '.');
        member_name_show(parts->method, out);
        show_method_params(parts->arguments, params.method, out);
    }
    buffer_string(out, note);
}

/* What reflection calls is told as "TYPE.METHOD": TYPE without its namespace and the types around it. */
static void show_invoked(struct span name, struct buffer *out)
{
    size_t dot = 0, depth = 0;
    for (; dot < name.size && (name.data[dot] != '.' || depth > 0); dot++) {
        depth += name.data[dot] == '<';
        depth -= name.data[dot] == '>' && depth;
    }
    struct parts parts = { .type = span_between(name, 0, dot),
                           .method = span_between(name, dot + 1, name.size) };
    struct type_name type;
    if (parts.type.size == 0 || parts.method.size == 0 || !type_name_split(parts.type, &type))
        buffer_append(out, name.data, name.size);
    else if (type_name_is_closure(type.segments[0]))
        member_name_show(parts.method, out);
    else
        show_managed(&parts, &type, "", out);
}

/* Methods without metadata: the runtime's stubs, and what programs made with Reflection.Emit. */
static void show_dynamic(struct span method, struct span serves, struct buffer *out)
{
    static const char invoke[] = "InvokeStub_", lambda[] = "lambda_method", stub[] = "IL_STUB_";
    if (show_il_stub(method, serves, out))
        return;
    const char *note = " [dynamic]";
    if (span_begins(method, stub)) {
        method = span_between(method, sizeof stub - 1, method.size);
        note = " [IL stub]";
    } else if (span_begins(method, invoke)) {
        show_invoked(span_between(method, sizeof invoke - 1, method.size), out);
        method = (struct span){ 0 };
        note = " [reflection invoke]";
    } else if (span_begins(method, lambda)) {
        note = " [compiled expression]";
    }
    buffer_append(out, method.data, method.size);
    buffer_string(out, note);
}

/* What names hold comes from the profiled program; it must not steer a terminal. */
static void remove_controls(struct buffer *out, size_t start, bool colons_too)
{
    for (size_t i = start; i < out->size; i++) {
        uint8_t *c = &out->data[i];
        bool wide_control = *c == 0xc2 && i + 1 < out->size && (c[1] & 0xe0) == 0x80;
        if (*c < 0x20 || *c == 0x7f || wide_control)
            *c = '?';
        if (wide_control)
            c[1] = '?';
        if (colons_too && *c == ':') /* a shown name must not look like the runtime's again */
            *c = '.';
    }
}

void method_name_show(struct span raw, const char *type_params, struct buffer *out)
{
    size_t start = out->size;
    struct parts parts;
    struct type_name type;
    bool managed = split(raw, &parts) && type_name_split(parts.type, &type) && !has_template(&type);
    if (!managed)
        buffer_append(out, raw.data, raw.size);
    else if (is_dynamic_type(parts.type))
        show_dynamic(parts.method, split_params(type_params).kind, out);
    else
        show_managed(&parts, &type, type_params, out);
    remove_controls(out, start, managed);
}

void method_name_show_type(struct span raw, const char *type_params, struct buffer *out)
{
    size_t start = out->size;
    struct parts parts;
    struct type_name type;
    if (!split(raw, &parts) || !type_name_split(parts.type, &type) || has_template(&type) ||
        is_dynamic_type(parts.type))
        return;
    show_owner(&type, split_params(type_params).type, OWNER_TYPE, out);
    remove_controls(out, start, true);
}

bool method_name_is_instance(struct span raw, struct span of)
{
    struct parts parts;
    if (!split(raw, &parts) || parts.arguments.size == 0 || raw.size != of.size + parts.arguments.size)
        return false;
    size_t before = (size_t)(parts.arguments.data - raw.data), behind = before + parts.arguments.size;
    return memcmp(raw.data, of.data, before) == 0 &&
           memcmp(raw.data + behind, of.data + before, raw.size - behind) == 0;
}

bool method_name_is_managed(struct span raw)
{
    struct parts parts;
    struct type_name type;
    if (!split(raw, &parts) || !type_name_split(parts.type, &type) || has_template(&type))
        return false;
    return is_dynamic_type(parts.type) || memchr(parts.type.data, '.', parts.type.size) ||
           memchr(parts.type.data, '`', parts.type.size) || memchr(parts.type.data, '+', parts.type.size) ||
           span_begins(parts.method, ".") || span_begins(parts.method, "<") ||
           contains(parts.parameters, "class ") || contains(parts.parameters, "unsigned int") ||
           contains(parts.parameters, "!0");
}
