#include "clr/method_text.h"

#include <string.h>

#include "base/utf8.h"
#include "clr/method_name.h"
#include "read/ecma_signature.h"

enum {
    SIGNATURE_BYTES_MAX = 4096,
    NAME_BYTES_MAX = 1024,
    /* ImplMap and ModuleRef, ECMA-335 II.22.22 and II.22.31 */
    TABLE_IMPL_MAP = 0x1c,
    IMPL_MAP_FORWARDED = 1,
    IMPL_MAP_NAME = 2,
    IMPL_MAP_SCOPE = 3,
    FORWARDED_IS_METHOD = 1,
    TABLE_MODULE_REF = 0x1a,
};

static enum method_agreement check(struct loaded_types *types, const struct loaded_type *type,
                                   const struct method_desc *method)
{
    const struct ecma_metadata *md = type ? &loaded_types_module(types, type)->md : NULL;
    if (!md || ecma_rows(md, ECMA_METHOD_DEF) == 0 || method_table_is_array(&type->table))
        return AGREEMENT_UNKNOWN;
    uint32_t first;
    uint64_t arguments;
    if (!ecma_is_method_of(md, method->row, type->table.row))
        return AGREEMENT_WRONG;
    if (method->kind == METHOD_GENERIC &&
        ecma_generic_params(md, ECMA_OWNER_IS_METHOD, method->row, &first) !=
            method_desc_arguments(types->pages, types->layout, method, &arguments))
        return AGREEMENT_WRONG;
    return AGREEMENT_RIGHT;
}

enum method_agreement method_text_check(struct loaded_types *types, const struct method_desc *method)
{
    if (method->kind == METHOD_DYNAMIC || method->kind == METHOD_ARRAY)
        return AGREEMENT_UNKNOWN;
    return check(types, loaded_types_find_nameless(types, method->table), method);
}

/* From the first parenthesis on: what comes before is the return type. */
static bool append_signature(const struct ecma_metadata *md, struct span signature, struct buffer *out)
{
    size_t start = out->size;
    if (!ecma_spell_method_signature(md, signature, out))
        return false;
    uint8_t *text = out->data + start, *parenthesis = memchr(text, '(', out->size - start);
    if (!parenthesis)
        return false;
    memmove(text, parenthesis, out->size - (size_t)(parenthesis - out->data));
    out->size -= (size_t)(parenthesis - text);
    return true;
}

/* What was added to a program while it runs (hot reload) has numbers behind those of its file. */
static bool append_added(struct loaded_types *types, const struct method_desc *method, struct buffer *out)
{
    const struct loaded_type *type = loaded_types_find_nameless(types, method->table);
    const struct ecma_metadata *md = type ? &loaded_types_module(types, type)->md : NULL;
    uint32_t rows = md ? ecma_rows(md, ECMA_METHOD_DEF) : 0;
    if (rows == 0 || method->row <= rows || method->kind == METHOD_ARRAY ||
        method_table_is_array(&type->table))
        return false;
    const struct loaded_type *named = loaded_types_find(types, method->table);
    if (type->table.row > ecma_rows(md, ECMA_TYPE_DEF))
        buffer_format(out, "added-0x%08x", ecma_token(ECMA_TYPE_DEF, type->table.row));
    else if (named && named->name)
        buffer_append(out, named->name, named->name_size);
    else
        return false;
    buffer_format(out, "::[added-0x%08x]()", ecma_token(ECMA_METHOD_DEF, method->row));
    return true;
}

/* "[System.Int32]": what a generic method is of. Nothing where it cannot be spelled. */
static void append_arguments(struct loaded_types *types, const struct method_desc *method, struct buffer *out)
{
    uint64_t list;
    unsigned count = method_desc_arguments(types->pages, types->layout, method, &list);
    size_t start = out->size;
    if (list && !loaded_types_spell_list(types, list, count, out))
        out->size = start;
}

/* A small dump does not have all types that its methods' types are of. */
static bool append_type(const struct loaded_types *types, const struct loaded_type *type, struct buffer *out)
{
    if (!type->name)
        return loaded_types_spell_definition(types, type, out);
    buffer_append(out, type->name, type->name_size);
    return true;
}

static bool append_defined(struct loaded_types *types, const struct method_desc *method, struct buffer *out)
{
    if (append_added(types, method, out))
        return true;
    const struct loaded_type *type = loaded_types_find(types, method->table);
    if (!type || method->kind == METHOD_ARRAY || check(types, type, method) != AGREEMENT_RIGHT ||
        !append_type(types, type, out))
        return false;
    const struct ecma_metadata *md = &loaded_types_module(types, type)->md;
    struct span name = ecma_cell_string(md, ECMA_METHOD_DEF, method->row, ECMA_METHOD_DEF_NAME);
    uint32_t signature = ecma_cell(md, ECMA_METHOD_DEF, method->row, ECMA_METHOD_DEF_SIGNATURE);
    buffer_string(out, "::");
    buffer_append(out, name.data, name.size);
    append_arguments(types, method, out);
    type = loaded_types_find_nameless(types, method->table); /* types and modules may have come meanwhile */
    md = &loaded_types_module(types, type)->md;
    if (name.size == 0 || !append_signature(md, ecma_blob(md, signature), out))
        return false;
    if (method_desc_is_async_thunk(types->pages, types->layout, method))
        buffer_string(out, METHOD_ASYNC_THUNK);
    return true;
}

static bool is_printable(struct span text)
{
    struct cursor c = cursor_over(text);
    while (cursor_left(&c)) {
        uint32_t code_point = utf8_next(&c);
        if (code_point == UTF8_INVALID || !utf8_is_printable(code_point))
            return false;
    }
    return text.size > 0;
}

static bool read_name(struct memory_pages *pages, uint64_t addr, char text[NAME_BYTES_MAX])
{
    size_t size = 0;
    while (addr && size < NAME_BYTES_MAX - 1 && (text[size] = (char)memory_pages_u8(pages, addr + size)))
        size++;
    text[size] = 0;
    return is_printable(span_of(text, size));
}

static bool append_dynamic(struct loaded_types *types, const struct method_desc *method, struct buffer *out)
{
    /* a stub's types may be told by rows of the module that it belongs to */
    static const struct ecma_metadata no_metadata;
    const struct loaded_type *type = loaded_types_find_nameless(types, method->table);
    const struct ecma_metadata *md = type ? &loaded_types_module(types, type)->md : &no_metadata;
    char name[NAME_BYTES_MAX];
    uint8_t signature[SIGNATURE_BYTES_MAX];
    struct dynamic_method d;
    dynamic_method_name(types->pages, types->layout, method, &d);
    if (d.kind == DYNAMIC_OTHER || d.signature_size == 0 || d.signature_size > sizeof signature ||
        !read_name(types->pages, d.name, name) ||
        !memory_pages_read(types->pages, d.signature, signature, d.signature_size))
        return false;
    buffer_string(out, "dynamicClass::");
    buffer_string(out, name);
    return append_signature(md, span_of(signature, d.signature_size), out);
}

bool method_text_append(struct loaded_types *types, const struct method_desc *method, struct buffer *out)
{
    return method->kind == METHOD_DYNAMIC ? append_dynamic(types, method, out)
                                          : append_defined(types, method, out);
}

bool method_text_append_import(struct loaded_types *types, const struct method_desc *method,
                               struct buffer *out)
{
    const struct loaded_type *type = loaded_types_find_nameless(types, method->table);
    if (!type || method_text_check(types, method) != AGREEMENT_RIGHT)
        return false;
    const struct ecma_metadata *md = &loaded_types_module(types, type)->md;
    enum ecma_table_id imports = (enum ecma_table_id)TABLE_IMPL_MAP,
                       modules = (enum ecma_table_id)TABLE_MODULE_REF;
    for (uint32_t row = 1; row <= ecma_rows(md, imports); row++) {
        if (ecma_cell(md, imports, row, IMPL_MAP_FORWARDED) != (method->row << 1 | FORWARDED_IS_METHOD))
            continue;
        struct span entry = ecma_cell_string(md, imports, row, IMPL_MAP_NAME);
        struct span library = ecma_cell_string(md, modules, ecma_cell(md, imports, row, IMPL_MAP_SCOPE), 0);
        buffer_append(out, library.data, library.size);
        buffer_u8(out, '!');
        buffer_append(out, entry.data, entry.size);
        return entry.size > 0;
    }
    return false;
}
