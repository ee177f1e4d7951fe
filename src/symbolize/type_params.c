#include "symbolize/type_params.h"

#include <string.h>

enum { PARAMS_MAX = 64, INTERFACES_MAX = 64 };

static void append_names(const struct ecma_metadata *md, unsigned owner_tag, uint32_t row, struct buffer *out)
{
    uint32_t first, count = row ? ecma_generic_params(md, owner_tag, row, &first) : 0;
    for (uint32_t i = 0; i < count && i < PARAMS_MAX; i++) {
        struct span name = ecma_cell_string(md, ECMA_GENERIC_PARAM, first + i, ECMA_GENERIC_PARAM_NAME);
        if (i)
            buffer_u8(out, ',');
        for (size_t at = 0; at < name.size; at++) /* the text's own separators cannot be part of a name */
            if (!memchr(",;", name.data[at], 2))
                buffer_u8(out, name.data[at]);
    }
}

static bool has_text(struct span name, const char *text)
{
    return span_equals(name, span_of(text, strlen(text)));
}

/* The simple name of an interface row, through an instantiation to the type it instantiates. */
static struct span interface_name(const struct ecma_metadata *md, uint32_t token)
{
    if ((token & ((1 << ECMA_TYPE_TAG_BITS) - 1)) == ECMA_TYPE_IS_SPEC) {
        struct cursor c =
            cursor_over(ecma_blob(md, ecma_cell(md, ECMA_TYPE_SPEC, token >> ECMA_TYPE_TAG_BITS, 0)));
        cursor_skip(&c, 2); /* GENERICINST, CLASS */
        token = cursor_ecma_uint(&c);
    }
    return ecma_type_simple_name(md, token);
}

/* The compiler's state machines are told apart by what they implement; async streams do both. */
static const char *machine_kind(const struct ecma_metadata *md, uint32_t type)
{
    struct span name = ecma_cell_string(md, ECMA_TYPE_DEF, type, ECMA_TYPE_DEF_NAME);
    bool by_compiler =
        name.size && (name.data[0] == '<' || (name.size > 2 && memcmp(name.data, "VB$", 3) == 0));
    const char *kind = "";
    uint32_t first, count = by_compiler ? ecma_interfaces(md, type, &first) : 0;
    for (uint32_t i = 0; i < count && i < INTERFACES_MAX; i++) {
        struct span interface =
            interface_name(md, ecma_cell(md, ECMA_INTERFACE_IMPL, first + i, ECMA_INTERFACE_IMPL_INTERFACE));
        if (has_text(interface, "IAsyncStateMachine"))
            return "async";
        if (has_text(interface, "IEnumerator"))
            kind = "iterator";
    }
    return kind;
}

void type_params_append(const struct ecma_metadata *md, uint32_t type, uint32_t method, struct buffer *out)
{
    size_t start = out->size;
    append_names(md, ECMA_OWNER_IS_TYPE, type, out);
    buffer_u8(out, ';');
    append_names(md, ECMA_OWNER_IS_METHOD, method, out);
    buffer_u8(out, ';');
    buffer_string(out, type ? machine_kind(md, type) : "");
    while (out->size > start && out->data[out->size - 1] == ';')
        out->size--;
}
