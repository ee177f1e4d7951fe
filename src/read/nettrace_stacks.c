#include "read/nettrace_stacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/nettrace.h"

enum { UNKNOWN = UINT32_MAX };

static void grow_kinds(struct nettrace_stacks *s, size_t count)
{
    if (count <= s->kind_count)
        return;
    s->kinds = mem_resize(s->kinds, count, sizeof *s->kinds);
    memset(s->kinds + s->kind_count, NETTRACE_STACK_UNKNOWN, count - s->kind_count);
    s->kind_count = count;
}

void nettrace_stacks_init(struct nettrace_stacks *s)
{
    *s = (struct nettrace_stacks){ 0 };
    buffer_init(&s->addresses, NETTRACE_STACK_BYTES_MAX);
    grow_kinds(s, NETTRACE_SHORT_IDS);
    s->kinds[0] = NETTRACE_STACK_EMPTY;
}

void nettrace_stacks_done(struct nettrace_stacks *s)
{
    buffer_done(&s->addresses);
    free(s->by_id);
    free(s->kinds);
}

void nettrace_stacks_clear(struct nettrace_stacks *s)
{
    buffer_clear(&s->addresses);
    s->count = 0;
    memset(s->kinds, NETTRACE_STACK_UNKNOWN, s->kind_count);
    s->kinds[0] = NETTRACE_STACK_EMPTY;
}

static bool keep(struct nettrace_stacks *s, uint32_t id, struct span addresses)
{
    if (id >= NETTRACE_STACKS_MAX || addresses.size > s->addresses.ceiling - s->addresses.size)
        return false;
    if (id >= s->count) {
        s->by_id = mem_grow(s->by_id, &s->capacity, (size_t)id + 1, sizeof *s->by_id);
        for (; s->count <= id; s->count++)
            s->by_id[s->count] = (struct nettrace_stack){ .off = (uint32_t)UNKNOWN };
        grow_kinds(s, s->capacity);
    }
    s->by_id[id] = (struct nettrace_stack){ (uint32_t)s->addresses.size, (uint32_t)addresses.size, 0 };
    s->kinds[id] = addresses.size ? NETTRACE_STACK_FRAMES : NETTRACE_STACK_EMPTY;
    buffer_append(&s->addresses, addresses.data, addresses.size);
    return true;
}

bool nettrace_stacks_read(struct nettrace_stacks *s, struct span content, uint32_t pointer_size,
                          uint64_t *refused, struct error *err)
{
    struct cursor c = cursor_over(content);
    uint32_t first_id = cursor_u32le(&c);
    uint32_t count = cursor_u32le(&c);
    if (count > UINT32_MAX - first_id)
        return error_set(err, ERROR_INPUT, "the ids of a StackBlock run past 32 bits");
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        struct span addresses = cursor_bytes(&c, cursor_u32le(&c));
        if (addresses.size % pointer_size != 0)
            return error_set(err, ERROR_INPUT, "stack %" PRIu32 " is not a whole number of addresses",
                             first_id + i);
        if (cursor_ok(&c) && !keep(s, first_id + i, addresses))
            ++*refused;
    }
    return cursor_finish(&c, err, "a StackBlock");
}
