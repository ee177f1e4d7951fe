#include "clr/member_name.h"

#include <inttypes.h>
#include <string.h>

#include "base/own.h"
#include "clr/type_keyword.h"

enum { NESTING_MAX = 8, OPERATOR_SIGNS_MAX = 16 };

static const struct {
    const char *metadata, *shown;
} operators[] = {
    { "op_Implicit", "implicit operator" },
    { "op_Explicit", "explicit operator" },
    { "op_CheckedExplicit", "explicit operator checked" },
    { "op_Addition", "operator +" },
    { "op_CheckedAddition", "operator checked +" },
    { "op_Subtraction", "operator -" },
    { "op_CheckedSubtraction", "operator checked -" },
    { "op_Multiply", "operator *" },
    { "op_CheckedMultiply", "operator checked *" },
    { "op_Division", "operator /" },
    { "op_CheckedDivision", "operator checked /" },
    { "op_Modulus", "operator %" },
    { "op_BitwiseAnd", "operator &" },
    { "op_BitwiseOr", "operator |" },
    { "op_ExclusiveOr", "operator ^" },
    { "op_LeftShift", "operator <<" },
    { "op_RightShift", "operator >>" },
    { "op_UnsignedRightShift", "operator >>>" },
    { "op_Equality", "operator ==" },
    { "op_Inequality", "operator !=" },
    { "op_LessThan", "operator <" },
    { "op_GreaterThan", "operator >" },
    { "op_LessThanOrEqual", "operator <=" },
    { "op_GreaterThanOrEqual", "operator >=" },
    { "op_UnaryNegation", "operator -" },
    { "op_CheckedUnaryNegation", "operator checked -" },
    { "op_UnaryPlus", "operator +" },
    { "op_LogicalNot", "operator !" },
    { "op_OnesComplement", "operator ~" },
    { "op_Increment", "operator ++" },
    { "op_CheckedIncrement", "operator checked ++" },
    { "op_Decrement", "operator --" },
    { "op_CheckedDecrement", "operator checked --" },
    { "op_True", "operator true" },
    { "op_False", "operator false" },
    /* of Visual Basic only */
    { "op_Concatenate", "operator &" },
    { "op_Exponent", "operator ^" },
    { "op_IntegerDivision", "operator \\" },
    { "op_Like", "operator Like" },
    /* of instances, which they change: since C# 14 */
    { "op_AdditionAssignment", "operator +=" },
    { "op_CheckedAdditionAssignment", "operator checked +=" },
    { "op_SubtractionAssignment", "operator -=" },
    { "op_CheckedSubtractionAssignment", "operator checked -=" },
    { "op_MultiplicationAssignment", "operator *=" },
    { "op_CheckedMultiplicationAssignment", "operator checked *=" },
    { "op_DivisionAssignment", "operator /=" },
    { "op_CheckedDivisionAssignment", "operator checked /=" },
    { "op_ModulusAssignment", "operator %=" },
    { "op_BitwiseAndAssignment", "operator &=" },
    { "op_BitwiseOrAssignment", "operator |=" },
    { "op_ExclusiveOrAssignment", "operator ^=" },
    { "op_LeftShiftAssignment", "operator <<=" },
    { "op_RightShiftAssignment", "operator >>=" },
    { "op_UnsignedRightShiftAssignment", "operator >>>=" },
    { "op_IncrementAssignment", "operator ++" },
    { "op_CheckedIncrementAssignment", "operator checked ++" },
    { "op_DecrementAssignment", "operator --" },
    { "op_CheckedDecrementAssignment", "operator checked --" },
};

/* Of which F# makes the names of all other operators: op_GreaterGreaterEquals (F# specification, 4.1). */
static const struct {
    const char *metadata;
    char shown;
} operator_signs[] = {
    { "Greater", '>' }, { "Less", '<' },    { "Plus", '+' }, { "Minus", '-' },   { "Multiply", '*' },
    { "Divide", '/' },  { "Equals", '=' },  { "Bar", '|' },  { "Amp", '&' },     { "Dot", '.' },
    { "Bang", '!' },    { "Dollar", '$' },  { "Hat", '^' },  { "Percent", '%' }, { "Qmark", '?' },
    { "At", '@' },      { "Twiddle", '~' },
};

static const struct {
    const char *prefix, *suffix;
} accessors[] = { { "get_", ".get" }, { "set_", ".set" }, { "add_", ".add" }, { "remove_", ".remove" } };

static struct span without(struct span text, size_t start)
{
    return start <= text.size ? (struct span){ text.data + start, text.size - start } : (struct span){ 0 };
}

static void append(struct buffer *out, struct span text)
{
    buffer_append(out, text.data, text.size);
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The number at the end of "0_3"; 0 when there is none. */
static uint32_t last_number(struct span text)
{
    uint64_t number = 0, unit = 1;
    while (text.size && is_digit(text.data[text.size - 1]) && unit < 1000000) {
        number += unit * (text.data[--text.size] - '0');
        unit *= 10;
    }
    return (uint32_t)number;
}

/* Position of the '>' that closes the '<' at the start, or 0. */
static size_t closing(struct span text)
{
    unsigned depth = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '<')
            depth++;
        else if (text.data[i] == '>' && --depth == 0)
            return i;
    }
    return 0;
}

/* Position of the last '.' outside <>, or 0. */
static size_t last_dot(struct span text)
{
    size_t found = 0;
    int depth = 0;
    for (size_t i = 0; i < text.size; i++) {
        depth += text.data[i] == '<' ? 1 : text.data[i] == '>' ? -1 : 0;
        if (text.data[i] == '.' && depth == 0)
            found = i;
    }
    return found;
}

static bool is_name_byte(uint8_t c)
{
    return c == '_' || c == '.' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c >= 0x80;
}

/* A type in a source spelling, "System.IComparable<App.Order>", without its namespaces. */
static void show_source_type(struct span type, struct buffer *out)
{
    for (size_t i = 0; i < type.size;) {
        size_t start = i;
        while (i < type.size && is_name_byte(type.data[i]))
            i++;
        struct span name = { type.data + start, i - start };
        if (name.size) {
            const char *keyword = type_keyword(name);
            size_t dot = name.size;
            while (dot && name.data[dot - 1] != '.')
                dot--;
            if (keyword)
                buffer_string(out, keyword);
            else
                append(out, without(name, dot));
        }
        if (i < type.size)
            buffer_u8(out, type.data[i++]);
    }
}

static void show(struct span name, unsigned depth, struct buffer *out);

/* `name` is "<INNER>TAIL"; false when the tail is no form of the compilers'. */
static bool show_generated(struct span name, unsigned depth, struct buffer *out)
{
    size_t close = closing(name);
    if (close == 0)
        return false;
    struct span inner = { name.data + 1, close - 1 }, tail = without(name, close + 1);
    if (inner.size == 0) {
        if (span_begins(tail, "m__Finally"))
            buffer_string(out, "finally");
        else if (span_begins(tail, "n__"))
            buffer_string(out, "base call");
        else
            return false;
        return true;
    }
    if (tail.size == 0 || span_begins(tail, "$") || span_begins(tail, "k__BackingField")) {
        show(inner, depth + 1, out);
        if (tail.size == 0)
            buffer_string(out, " (entry point)");
    } else if (span_begins(tail, "b__")) {
        show(inner, depth + 1, out);
        buffer_string(out, " lambda");
        if (last_number(tail))
            buffer_format(out, " #%" PRIu32, last_number(tail) + 1);
    } else if (span_begins(tail, "g__")) {
        show(inner, depth + 1, out);
        const uint8_t *bar = memchr(tail.data, '|', tail.size);
        buffer_u8(out, '.');
        buffer_append(out, tail.data + 3, bar ? (size_t)(bar - tail.data) - 3 : tail.size - 3);
    } else if (tail.data[0] == 'd') {
        show(inner, depth + 1, out);
    } else {
        return false;
    }
    return true;
}

/* `signs` is "GreaterGreaterEquals"; nothing is appended when something else is in it. */
static bool show_operator_signs(struct span signs, struct buffer *out)
{
    char shown[OPERATOR_SIGNS_MAX + 1] = "";
    size_t count = 0;
    while (signs.size && count < OPERATOR_SIGNS_MAX) {
        size_t i = 0;
        while (i < ARRAY_LEN(operator_signs) && !span_begins(signs, operator_signs[i].metadata))
            i++;
        if (i == ARRAY_LEN(operator_signs))
            return false;
        shown[count++] = operator_signs[i].shown;
        signs = without(signs, strlen(operator_signs[i].metadata));
    }
    if (count == 0 || signs.size)
        return false;
    buffer_format(out, "(%s)", shown);
    return true;
}

static bool show_operator_or_accessor(struct span name, struct buffer *out)
{
    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (span_equals(name, span_of(operators[i].metadata, strlen(operators[i].metadata)))) {
            buffer_string(out, operators[i].shown);
            return true;
        }
    if (span_begins(name, "op_") && show_operator_signs(without(name, 3), out))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(accessors); i++)
        if (span_begins(name, accessors[i].prefix) && name.size > strlen(accessors[i].prefix)) {
            append(out, without(name, strlen(accessors[i].prefix)));
            buffer_string(out, accessors[i].suffix);
            return true;
        }
    return false;
}

/* Where the line begins in what F# names by it; 0: it is not of that kind. */
static size_t fsharp_line(struct span name)
{
    const uint8_t *at = name.size ? memchr(name.data, '@', name.size) : NULL;
    size_t line = at ? (size_t)(at - name.data) + 1 : 0;
    return line && line < name.size && is_digit(name.data[line]) ? line : 0;
}

bool member_name_is_fsharp(struct span name)
{
    return fsharp_line(name) != 0;
}

bool member_name_show_fsharp(struct span name, struct buffer *out)
{
    size_t line = fsharp_line(name), end = line;
    if (!line)
        return false;
    struct span function = { name.data, line - 1 };
    if (function.size && !span_equals(function, span_of("clo", 3))) {
        for (size_t i = 0; i < function.size; i++)
            if (function.data[i] != '\\') /* a type's name has them before what would end it */
                buffer_u8(out, function.data[i]);
        buffer_u8(out, ' ');
    }
    while (end < name.size && is_digit(name.data[end]))
        end++;
    buffer_string(out, "closure line ");
    append(out, (struct span){ name.data + line, end - line });
    return true;
}

static void show(struct span name, unsigned depth, struct buffer *out)
{
    if (depth > NESTING_MAX || name.size == 0) {
        append(out, name);
        return;
    }
    if (name.data[0] == '<') {
        if (!show_generated(name, depth, out))
            append(out, name);
        return;
    }
    if (member_name_show_fsharp(name, out))
        return;
    if (span_begins(name, "_Lambda$__")) { /* Visual Basic's say nothing of the method around */
        buffer_format(out, "lambda #%" PRIu32, last_number(name) + 1);
        return;
    }
    /* an explicit interface implementation */
    size_t dot = name.data[0] == '.' ? 0 : last_dot(name);
    if (dot && dot + 1 < name.size) {
        show_source_type((struct span){ name.data, dot }, out);
        buffer_u8(out, '.');
        name = without(name, dot + 1);
    }
    if (!show_operator_or_accessor(name, out))
        append(out, name);
}

void member_name_show(struct span name, struct buffer *out)
{
    show(name, 0, out);
}

static struct span visual_basic_machine(struct span type_name)
{
    static const char prefix[] = "VB$StateMachine_";
    if (!span_begins(type_name, prefix))
        return (struct span){ 0 };
    size_t i = sizeof prefix - 1;
    while (i < type_name.size && is_digit(type_name.data[i]))
        i++;
    return i < type_name.size && type_name.data[i] == '_' ? without(type_name, i + 1) : (struct span){ 0 };
}

bool member_name_is_machine(struct span type_name)
{
    if (visual_basic_machine(type_name).size)
        return true;
    size_t close = type_name.size && type_name.data[0] == '<' ? closing(type_name) : 0;
    struct span tail = close > 1 ? without(type_name, close + 1) : (struct span){ 0 };
    return tail.size && tail.data[0] == 'd' && (tail.size == 1 || tail.data[1] == '_');
}

void member_name_show_machine(struct span type_name, struct buffer *out)
{
    struct span basic = visual_basic_machine(type_name);
    struct buffer method;
    buffer_init(&method, type_name.size + 1);
    append(&method, basic.size ? basic : type_name);
    for (size_t i = 0; i < method.size; i++) /* in a type's name compilers write '-' for '.' */
        if (method.data[i] == '-')
            method.data[i] = '.';
    show(buffer_span(&method), 0, out);
    buffer_done(&method);
}
