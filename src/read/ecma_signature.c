#include "read/ecma_signature.h"

#include <inttypes.h>
#include <string.h>

#include "base/own.h"

enum { NESTING_MAX = 24 /* of types, and of types in types */, RANK_MAX = 32 };

struct speller {
    struct cursor c;
    struct ecma_scope scope;
    struct buffer *out;
    unsigned depth;
    bool legacy; /* as method signatures are spelled */
};

/* Of element types that need no more bytes. */
static const struct {
    const char *runtime, *legacy;
} simple_types[] = {
    [0x01] = { "System.Void", "void" },
    [0x02] = { "System.Boolean", "bool" },
    [0x03] = { "System.Char", "wchar" },
    [0x04] = { "System.SByte", "int8" },
    [0x05] = { "System.Byte", "unsigned int8" },
    [0x06] = { "System.Int16", "int16" },
    [0x07] = { "System.UInt16", "unsigned int16" },
    [0x08] = { "System.Int32", "int32" },
    [0x09] = { "System.UInt32", "unsigned int32" },
    [0x0a] = { "System.Int64", "int64" },
    [0x0b] = { "System.UInt64", "unsigned int64" },
    [0x0c] = { "System.Single", "float32" },
    [0x0d] = { "System.Double", "float64" },
    [0x0e] = { "System.String", "class System.String" },
    [0x16] = { "System.TypedReference", "refany" },
    [0x18] = { "System.IntPtr", "int" },
    [0x19] = { "System.UIntPtr", "unsigned int" },
    [0x1c] = { "System.Object", "class System.Object" },
    [ELEMENT_CANON_ZAPSIG] = { "System.__Canon", "class System.__Canon" },
};

static const char *simple_type(uint8_t element, bool legacy)
{
    if (element >= ARRAY_LEN(simple_types))
        return NULL;
    return legacy ? simple_types[element].legacy : simple_types[element].runtime;
}

const char *ecma_primitive_name(uint8_t element)
{
    return simple_type(element, false);
}

/* The runtime puts a backslash before characters that its own type-name grammar uses. */
static void append_escaped(struct buffer *out, struct span text)
{
    static const bool used[256] = {
        [','] = true, ['['] = true, [']'] = true, ['&'] = true, ['*'] = true, ['+'] = true, ['\\'] = true
    };
    size_t done = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (!used[text.data[i]])
            continue;
        buffer_append(out, text.data + done, i - done);
        buffer_u8(out, '\\');
        done = i;
    }
    if (text.size)
        buffer_append(out, text.data + done, text.size - done);
}

static void append_full_name(struct buffer *out, struct span name_space, struct span name, bool escape)
{
    if (name_space.size) {
        if (escape)
            append_escaped(out, name_space);
        else
            buffer_append(out, name_space.data, name_space.size);
        buffer_u8(out, '.');
    }
    if (escape)
        append_escaped(out, name);
    else
        buffer_append(out, name.data, name.size);
}

static void append_row_name(const struct ecma_metadata *md, bool is_ref, uint32_t row, bool escape,
                            struct buffer *out)
{
    enum ecma_table_id table = is_ref ? ECMA_TYPE_REF : ECMA_TYPE_DEF;
    append_full_name(
        out, ecma_cell_string(md, table, row, is_ref ? ECMA_TYPE_REF_NAMESPACE : ECMA_TYPE_DEF_NAMESPACE),
        ecma_cell_string(md, table, row, is_ref ? ECMA_TYPE_REF_NAME : ECMA_TYPE_DEF_NAME), escape);
}

/* The row of the type around, or 0. */
static uint32_t outer_row(const struct ecma_metadata *md, bool is_ref, uint32_t row)
{
    if (!is_ref)
        return ecma_enclosing_type(md, row);
    uint32_t scope = ecma_cell(md, ECMA_TYPE_REF, row, ECMA_TYPE_REF_SCOPE);
    bool nested = (scope & ((1 << ECMA_SCOPE_TAG_BITS) - 1)) == ECMA_SCOPE_IS_TYPE_REF;
    return nested ? scope >> ECMA_SCOPE_TAG_BITS : 0;
}

void ecma_spell_type_token(const struct ecma_metadata *md, uint32_t token, struct buffer *out)
{
    unsigned tag = token & ((1 << ECMA_TYPE_TAG_BITS) - 1);
    bool is_ref = tag == ECMA_TYPE_IS_REF;
    if (tag > ECMA_TYPE_IS_REF) {
        buffer_format(out, "[type 0x%x]", token);
        return;
    }
    uint32_t path[NESTING_MAX];
    unsigned depth = 0;
    for (uint32_t row = token >> ECMA_TYPE_TAG_BITS; row && depth < NESTING_MAX;
         row = outer_row(md, is_ref, row))
        path[depth++] = row;
    while (depth) {
        append_row_name(md, is_ref, path[--depth], true, out);
        if (depth)
            buffer_u8(out, '+');
    }
}

static void append_commas(struct buffer *out, uint32_t rank)
{
    for (uint32_t i = 1; i < rank && i < RANK_MAX; i++)
        buffer_u8(out, ',');
}

/*
 * rank, sizes, lower bounds; only the rank is spelled, since C# can make no others. The lists are as long as
 * the rank at most: longer ones would cost much and spell nothing.
 */
static uint32_t read_array_shape(struct cursor *c)
{
    uint32_t rank = cursor_ecma_uint(c);
    for (int list = 0; list < 2; list++) {
        uint32_t count = cursor_ecma_uint(c);
        if (count > RANK_MAX)
            c->failed = true;
        for (; count && cursor_ok(c); count--)
            cursor_ecma_uint(c);
    }
    return rank;
}

static void spell_type(struct speller *s);

static void spell_types(struct speller *s, uint32_t count)
{
    for (uint32_t i = 0; i < count && cursor_ok(&s->c) && !s->out->failed; i++) {
        if (i)
            buffer_u8(s->out, ',');
        spell_type(s);
    }
}

/* The type that a TypeSpec row stands for. */
static void spell_type_spec(struct speller *s, uint32_t row)
{
    struct cursor here = s->c;
    const struct ecma_metadata *md = s->scope.md;
    s->c = cursor_over(ecma_blob(md, ecma_cell(md, ECMA_TYPE_SPEC, row, ECMA_TYPE_SPEC_SIGNATURE)));
    spell_type(s);
    s->c = here;
}

static void spell_runtime_token(struct speller *s)
{
    uint32_t token = cursor_ecma_uint(&s->c);
    if (!cursor_ok(&s->c))
        return;
    if (!s->scope.md) {
        buffer_format(s->out, "[type 0x%x]", token);
        return;
    }
    if ((token & ((1 << ECMA_TYPE_TAG_BITS) - 1)) != ECMA_TYPE_IS_SPEC) {
        ecma_spell_type_token(s->scope.md, token, s->out);
        return;
    }
    spell_type_spec(s, token >> ECMA_TYPE_TAG_BITS);
}

static void spell_runtime_in_module(struct speller *s)
{
    uint32_t index = cursor_ecma_uint(&s->c);
    struct ecma_scope here = s->scope;
    s->scope.md = s->scope.module ? s->scope.module(s->scope.user, index) : NULL;
    spell_type(s);
    s->scope = here;
}

static void spell_runtime_element(struct speller *s, uint8_t element)
{
    struct buffer *out = s->out;
    switch (element) {
    case ELEMENT_VALUETYPE:
    case ELEMENT_CLASS:
        spell_runtime_token(s);
        break;
    case ELEMENT_GENERICINST:
        spell_type(s);
        buffer_u8(out, '[');
        spell_types(s, cursor_ecma_uint(&s->c));
        buffer_u8(out, ']');
        break;
    case ELEMENT_SZARRAY:
        spell_type(s);
        buffer_string(out, "[]");
        break;
    case ELEMENT_ARRAY: {
        spell_type(s);
        uint32_t rank = read_array_shape(&s->c);
        buffer_string(out, rank == 1 ? "[*" : "[");
        append_commas(out, rank);
        buffer_u8(out, ']');
        break;
    }
    case ELEMENT_PTR:
    case ELEMENT_BYREF:
        spell_type(s);
        buffer_u8(out, element == ELEMENT_PTR ? '*' : '&');
        break;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        buffer_string(out, element == ELEMENT_VAR ? "!" : "!!");
        buffer_decimal(out, cursor_ecma_uint(&s->c));
        break;
    case ELEMENT_CMOD_REQD:
    case ELEMENT_CMOD_OPT:
        cursor_ecma_uint(&s->c);
        spell_type(s);
        break;
    case ELEMENT_NATIVE_ARRAY_ZAPSIG:
    case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
    case ELEMENT_PINNED:
        spell_type(s);
        break;
    case ELEMENT_MODULE_ZAPSIG:
        spell_runtime_in_module(s);
        break;
    default: /* function pointers and what is not known: how long they are is not known either */
        s->c.failed = true;
    }
}

static void spell_legacy_token(struct speller *s)
{
    uint32_t token = cursor_ecma_uint(&s->c);
    unsigned tag = token & ((1 << ECMA_TYPE_TAG_BITS) - 1);
    if (!cursor_ok(&s->c))
        return;
    if (tag <= ECMA_TYPE_IS_REF) {
        /* Only the type's own row: this dialect drops the types around a nested one. */
        append_row_name(s->scope.md, tag == ECMA_TYPE_IS_REF, token >> ECMA_TYPE_TAG_BITS, false, s->out);
        return;
    }
    spell_type_spec(s, token >> ECMA_TYPE_TAG_BITS);
}

/* The return type, `gap`, then the parameters; the cursor is behind the calling convention. */
static void spell_legacy_method(struct speller *s, uint8_t convention, const char *gap)
{
    if (convention & METHOD_SIGNATURE_GENERIC)
        cursor_ecma_uint(&s->c);
    uint32_t count = cursor_ecma_uint(&s->c);
    spell_type(s);
    buffer_string(s->out, gap);
    buffer_u8(s->out, '(');
    spell_types(s, count);
    buffer_u8(s->out, ')');
}

static void spell_legacy_modifier(struct speller *s, const char *kind)
{
    buffer_string(s->out, kind);
    spell_legacy_token(s);
    buffer_u8(s->out, ' ');
    spell_type(s);
}

static void spell_legacy_element(struct speller *s, uint8_t element)
{
    struct buffer *out = s->out;
    switch (element) {
    case ELEMENT_VALUETYPE:
        buffer_string(out, "value class ");
        spell_legacy_token(s);
        break;
    case ELEMENT_CLASS:
        buffer_string(out, "class ");
        spell_legacy_token(s);
        break;
    case ELEMENT_GENERICINST:
        spell_type(s);
        buffer_u8(out, '<');
        spell_types(s, cursor_ecma_uint(&s->c));
        buffer_u8(out, '>');
        break;
    case ELEMENT_SZARRAY:
        spell_type(s);
        buffer_string(out, "[]");
        break;
    case ELEMENT_ARRAY:
        spell_type(s);
        buffer_u8(out, '[');
        append_commas(out, read_array_shape(&s->c));
        buffer_u8(out, ']');
        break;
    case ELEMENT_PTR:
    case ELEMENT_BYREF:
        spell_type(s);
        buffer_u8(out, element == ELEMENT_PTR ? '*' : '&');
        break;
    case ELEMENT_PINNED:
        spell_type(s);
        buffer_string(out, " pinned");
        break;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        buffer_string(out, element == ELEMENT_VAR ? "!" : "!!");
        buffer_decimal(out, cursor_ecma_uint(&s->c));
        break;
    case ELEMENT_CMOD_REQD:
        spell_legacy_modifier(s, "required_modifier ");
        break;
    case ELEMENT_CMOD_OPT:
        spell_legacy_modifier(s, "optional_modifier ");
        break;
    case ELEMENT_INTERNAL:
        buffer_format(out, "pMT: 0x%" PRIx64, cursor_u64le(&s->c));
        break;
    case ELEMENT_CMOD_INTERNAL: /* runtimes print an address of their own in place of modifier and type */
        cursor_skip(&s->c, 1 + 8);
        spell_type(s);
        break;
    case ELEMENT_SENTINEL:
        spell_type(s);
        break;
    case ELEMENT_FNPTR:
        buffer_string(out, "fnptr ");
        spell_legacy_method(s, cursor_u8(&s->c), "");
        break;
    default:
        s->c.failed = true;
    }
}

static void spell_type(struct speller *s)
{
    uint8_t element = cursor_u8(&s->c);
    if (++s->depth > NESTING_MAX || s->out->failed)
        s->c.failed = true;
    if (cursor_ok(&s->c)) {
        const char *simple = simple_type(element, s->legacy);
        if (simple)
            buffer_string(s->out, simple);
        else if (s->legacy)
            spell_legacy_element(s, element);
        else
            spell_runtime_element(s, element);
    }
    s->depth--;
}

void ecma_spell_type(struct cursor *c, const struct ecma_scope *scope, struct buffer *out)
{
    struct speller s = { .c = *c, .scope = *scope, .out = out };
    spell_type(&s);
    *c = s.c;
}

bool ecma_spell_method_signature(const struct ecma_metadata *md, struct span signature, struct buffer *out)
{
    struct speller s = { .c = cursor_over(signature), .scope = { .md = md }, .out = out, .legacy = true };
    uint8_t convention = cursor_u8(&s.c);
    if (convention & METHOD_SIGNATURE_HAS_THIS)
        buffer_string(out, "instance ");
    spell_legacy_method(&s, convention, "  ");
    return cursor_ok(&s.c) && !out->failed;
}
