#include "clr/managed_thread_name.h"

#include <string.h>

#include "clr/managed_lock.h"
#include "clr/managed_string.h"
#include "clr/managed_thread_object.h"
#include "clr/type_fields.h"

enum {
    THREADS_TRIED = 16,  /* each that is alive has an object */
    OBJECT_BYTES = 0x80, /* of its object: the Thread is among its first words */
};

#define NAME_FIELD "_name"

/* Asked before anything that takes metadata. */
static bool leads_back(struct memory_pages *pages, uint64_t object, uint64_t thread)
{
    for (unsigned at = OBJECT_FIELDS; at < OBJECT_BYTES; at += 8)
        if (memory_pages_u64(pages, object + at) == thread)
            return true;
    return false;
}

static bool may_be_handle(const struct memory_pages *pages, uint64_t value)
{
    return value && value % 8 == 0 && memory_mapping_at(pages->memory, value);
}

/* Reads ahead all objects that what may be a handle leads to. */
static void read_objects(struct memory_pages *pages, uint64_t thread)
{
    uint64_t handles[MANAGED_THREAD_BYTES / 8];
    size_t count = 0;
    memory_pages_want(pages, thread, MANAGED_THREAD_BYTES);
    memory_pages_fetch(pages);
    for (uint32_t at = 0; at < MANAGED_THREAD_BYTES; at += 8) {
        uint64_t handle = memory_pages_u64(pages, thread + at);
        if (may_be_handle(pages, handle))
            handles[count++] = handle;
    }
    memory_pages_follow_all(pages, handles, count, 0);
    memory_pages_follow_all(pages, handles, count, 0);
}

static bool find_in_thread(struct loaded_types *types, uint64_t thread, struct managed_thread_name_place *out)
{
    struct memory_pages *pages = types->pages;
    read_objects(pages, thread);
    for (uint32_t handle = 0; handle < MANAGED_THREAD_BYTES; handle += 8) {
        uint64_t value = memory_pages_u64(pages, thread + handle);
        uint64_t object = may_be_handle(pages, value) ? managed_handle_object(pages, value) : 0;
        uint64_t table =
            object && leads_back(pages, object, thread) ? managed_object_table(pages, object) : 0;
        if (!table || !managed_thread_is_type(types, table))
            continue;
        uint32_t back = type_fields_in_object(types, table, MANAGED_THREAD_FIELD);
        uint32_t name = type_fields_in_object(types, table, NAME_FIELD);
        if (back == TYPE_FIELD_NONE || name == TYPE_FIELD_NONE ||
            memory_pages_u64(pages, object + back) != thread)
            continue;
        *out = (struct managed_thread_name_place){ handle, back, name };
        return true;
    }
    return false;
}

bool managed_thread_name_place_find(struct loaded_types *types, const struct managed_threads *threads,
                                    struct managed_thread_name_place *out)
{
    size_t tried = 0;
    for (size_t i = 0; i < threads->count && tried < THREADS_TRIED; i++)
        if (threads->items[i].tid && ++tried && find_in_thread(types, threads->items[i].addr, out))
            return true;
    return false;
}

bool managed_thread_name_read(struct memory_pages *pages, const struct managed_thread_name_place *place,
                              const struct managed_thread *thread, struct buffer *out)
{
    uint64_t object = managed_handle_object(pages, memory_pages_u64(pages, thread->addr + place->handle));
    return object && memory_pages_u64(pages, object + place->thread) == thread->addr &&
           managed_string_read(pages, memory_pages_u64(pages, object + place->name), MANAGED_THREAD_NAME_MAX,
                               out);
}
