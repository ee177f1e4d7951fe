#include "clr/managed_thread_object.h"

#include <string.h>

#include "clr/managed_lock.h"
#include "clr/type_fields.h"

bool managed_thread_is_type(struct loaded_types *types, uint64_t table)
{
    const struct loaded_type *type = loaded_types_find(types, table);
    return type && type->name && strcmp(type->name, MANAGED_THREAD_TYPE) == 0;
}

const struct managed_thread *managed_thread_of_object(struct loaded_types *types, struct memory_pages *pages,
                                                      const struct managed_threads *threads, uint64_t addr)
{
    uint64_t table = managed_object_at(pages, addr);
    if (!table || !managed_thread_is_type(types, table))
        return NULL;
    uint32_t field = type_fields_in_object(types, table, MANAGED_THREAD_FIELD);
    uint64_t thread = field == TYPE_FIELD_NONE ? 0 : memory_pages_u64(pages, addr + field);
    for (size_t i = 0; thread && i < threads->count; i++)
        if (threads->items[i].addr == thread && threads->items[i].tid)
            return &threads->items[i];
    return NULL;
}
