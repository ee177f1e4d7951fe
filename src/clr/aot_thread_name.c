#include "clr/aot_thread_name.h"

#include "clr/managed_lock.h"
#include "clr/managed_string.h"
#include "clr/managed_thread_name.h"
#include "clr/type_fields.h"

enum {
    TABLE_COMPONENT = 0, /* of a MethodTable: bytes of an element, in the low half */
    TABLE_BASE = 4,      /* bytes of an object without elements, with its header */
    COMPONENT_MASK = 0xffff,
    HAS_COMPONENTS = 1u << 31,
    HEADER_BYTES = 8,
    OBJECT_BYTES_MAX = 512,
    STRING_BASE = 22, /* no other type has that */
};

static uint64_t table_of(struct memory_pages *pages, uint64_t addr)
{
    const struct memory_mapping *m = addr % 8 == 0 ? memory_mapping_at(pages->memory, addr) : NULL;
    uint64_t table = m && m->writable ? managed_object_table(pages, addr) : 0;
    return table && memory_mapping_at(pages->memory, table) ? table : 0;
}

/* Where the fields of an object end, from its start; 0: at any word `addr` there is none, or it has elements.
 */
static uint32_t fields_end(struct memory_pages *pages, uint64_t addr)
{
    uint64_t table = table_of(pages, addr);
    if (!table || memory_pages_u32(pages, table + TABLE_COMPONENT) & HAS_COMPONENTS)
        return 0;
    uint32_t base = memory_pages_u32(pages, table + TABLE_BASE);
    return base > OBJECT_FIELDS + HEADER_BYTES && base <= OBJECT_BYTES_MAX ? base - HEADER_BYTES : 0;
}

static bool is_string(struct memory_pages *pages, uint64_t addr)
{
    uint64_t table = table_of(pages, addr);
    return table && memory_pages_u32(pages, table + TABLE_BASE) == STRING_BASE &&
           (memory_pages_u32(pages, table + TABLE_COMPONENT) & COMPONENT_MASK) == 2;
}

static bool refers_to(struct memory_pages *pages, uint64_t object, uint64_t other)
{
    uint32_t end = object != other ? fields_end(pages, object) : 0;
    for (uint32_t at = OBJECT_FIELDS; at < end; at += 8)
        if (memory_pages_u64(pages, object + at) == other)
            return true;
    return false;
}

static bool is_thread(struct memory_pages *pages, uint64_t object)
{
    uint32_t end = fields_end(pages, object);
    for (uint32_t at = OBJECT_FIELDS; at < end; at += 8)
        if (refers_to(pages, memory_pages_u64(pages, object + at), object))
            return true;
    return false;
}

/* The only string of an object, or 0. */
static uint64_t string_of(struct memory_pages *pages, uint64_t object)
{
    uint64_t found = 0;
    uint32_t end = fields_end(pages, object);
    for (uint32_t at = OBJECT_FIELDS; at < end; at += 8) {
        uint64_t field = memory_pages_u64(pages, object + at);
        if (!is_string(pages, field))
            continue;
        if (found)
            return 0;
        found = field;
    }
    return found;
}

bool aot_thread_name_read(struct memory_pages *pages, struct span frame, struct buffer *out)
{
    uint64_t thread = 0;
    for (size_t at = 0; at + 8 <= frame.size; at += 8) {
        uint64_t word = load_u64le(frame.data + at);
        if (word == thread || !is_thread(pages, word))
            continue;
        if (thread)
            return false;
        thread = word;
    }
    uint64_t name = thread ? string_of(pages, thread) : 0;
    return name && managed_string_read(pages, name, MANAGED_THREAD_NAME_MAX, out);
}
