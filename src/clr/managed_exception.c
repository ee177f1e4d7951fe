#include "clr/managed_exception.h"

#include <string.h>

#include "clr/managed_lock.h"
#include "clr/managed_string.h"
#include "clr/managed_threads.h"
#include "clr/type_fields.h"

enum {
    BASES_MAX = 32, /* of a type up to System.Exception */
    MESSAGE_MAX = 512,
    MESSAGE_BYTES_MAX = 4 * MESSAGE_MAX,
};

#define EXCEPTION_TYPE "System.Exception"

/* System.Exception's own MethodTable when `table` is that of an exception, else 0. */
static uint64_t exception_base(struct loaded_types *types, uint64_t table)
{
    for (unsigned i = 0; table && i < BASES_MAX; i++) {
        const struct loaded_type *type = loaded_types_find(types, table);
        if (!type)
            return 0;
        if (type->name && strcmp(type->name, EXCEPTION_TYPE) == 0)
            return table;
        table = type_fields_base(types, table);
    }
    return 0;
}

static uint64_t find_in_thread(struct loaded_types *types, uint64_t thread, uint64_t *out_base)
{
    struct memory_pages *pages = types->pages;
    for (uint32_t at = 0; at < MANAGED_THREAD_BYTES; at += 8) {
        uint64_t object = managed_handle_object(pages, memory_pages_u64(pages, thread + at));
        uint64_t table = object ? managed_object_table(pages, object) : 0;
        *out_base = table ? exception_base(types, table) : 0;
        if (*out_base)
            return object;
    }
    return 0;
}

static uint64_t field_at(struct loaded_types *types, uint64_t object, uint64_t base, const char *name)
{
    uint32_t at = type_fields_in_object(types, base, name);
    return at == TYPE_FIELD_NONE ? 0 : memory_pages_u64(types->pages, object + at);
}

void managed_exception_list(struct loaded_types *types, const struct managed_thread *thread,
                            managed_exception_fn *emit, void *user)
{
    uint64_t base, object = find_in_thread(types, thread->addr, &base);
    struct buffer message;
    buffer_init(&message, MESSAGE_BYTES_MAX);
    for (unsigned i = 0; object && i < MANAGED_EXCEPTIONS_MAX; i++) {
        buffer_clear(&message);
        managed_string_read(types->pages, field_at(types, object, base, "_message"), MESSAGE_MAX, &message);
        const struct loaded_type *type = loaded_types_find(types, managed_object_table(types->pages, object));
        if (!type || !type->name)
            break;
        emit(user, type->name, buffer_span(&message));
        object = field_at(types, object, base, "_innerException");
    }
    buffer_done(&message);
}
