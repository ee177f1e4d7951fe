#include "symbolize/async_method.h"

#include <string.h>

#include "base/own.h"
#include "read/ecma_signature.h"

enum { IMPL_ASYNC = 0x2000 };

/* The first token in what a method returns: of a class or a value, perhaps with type arguments. 0: there is
 * none. */
static uint32_t returned_type(struct span signature)
{
    struct cursor c = cursor_over(signature);
    if (cursor_u8(&c) & METHOD_SIGNATURE_GENERIC)
        cursor_ecma_uint(&c);
    cursor_ecma_uint(&c); /* how many parameters */
    uint8_t element = cursor_u8(&c);
    while (element == ELEMENT_CMOD_REQD || element == ELEMENT_CMOD_OPT) {
        cursor_ecma_uint(&c);
        element = cursor_u8(&c);
    }
    if (element == ELEMENT_GENERICINST)
        element = cursor_u8(&c);
    uint32_t token = element == ELEMENT_CLASS || element == ELEMENT_VALUETYPE ? cursor_ecma_uint(&c) : 0;
    return cursor_ok(&c) ? token : 0;
}

static bool returns_task(const struct ecma_metadata *md, uint32_t method)
{
    static const char *const tasks[] = { "Task", "Task`1", "ValueTask", "ValueTask`1" };
    uint32_t token =
        returned_type(ecma_blob(md, ecma_cell(md, ECMA_METHOD_DEF, method, ECMA_METHOD_DEF_SIGNATURE)));
    struct span name = ecma_type_simple_name(md, token);
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
        if (token && span_equals(name, span_of(tasks[i], strlen(tasks[i]))))
            return true;
    return false;
}

bool async_method_is_thunk(const struct ecma_metadata *md, uint32_t method)
{
    /* some of the core library return what is awaited, and have one form */
    return ecma_cell(md, ECMA_METHOD_DEF, method, ECMA_METHOD_DEF_IMPL_FLAGS) & IMPL_ASYNC &&
           returns_task(md, method);
}
