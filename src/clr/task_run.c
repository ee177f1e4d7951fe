#include "clr/task_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/async_graph.h"
#include "clr/managed_lock.h"

enum {
    DELEGATE_RUNS = 0x20000,
    CHILDREN_RUN = 0x800000, /* the delegate has returned */
    KINDS_MAX = 1 << 14,
    TASKS_MAX = 1 << 10, /* that are followed to one another */
    HOPS_MAX = 6,
    LIST_ITEMS_MAX = 1 << 12,
    NEAR_WORDS = 32, /* of one method's frame */
};

#define TASKS "System.Threading.Tasks."

enum role { ROLE_NONE, ROLE_TASK, ROLE_EVENT, ROLE_CANCELLATION, ROLE_LINK };

struct task_type {
    uint64_t table;
    uint8_t role;
    bool ends_after;         /* of a task: not before what it continues, and it continues nothing else */
    uint32_t field;          /* of an event its lock, of a cancellation what is cancelled */
    struct async_type async; /* of a task */
    struct async_link link;  /* of a link */
};

void task_reader_init(struct task_reader *reader, struct loaded_types *types, struct memory_pages *pages)
{
    *reader = (struct task_reader){ .types = types, .pages = pages };
}

void task_reader_done(struct task_reader *reader)
{
    for (size_t i = 1; i < reader->kind_count; i++)
        if (reader->kinds[i].role == ROLE_TASK)
            async_type_done(&reader->kinds[i].async);
    free(reader->kinds);
    id_map_done(&reader->kind_ids);
}

/* Types. */

static bool is_called(const char *name, const char *wanted)
{
    size_t size = strlen(wanted);
    return strncmp(name, wanted, size) == 0 && (name[size] == 0 || name[size] == '[' || name[size] == '`');
}

/* A task of which all that it continues must end before it does. */
static bool is_promise_of_all(const char *name)
{
    return is_called(name, TASKS "UnwrapPromise") || is_called(name, TASKS "Task+WhenAllPromise");
}

static void read_kind(struct task_reader *r, struct task_type *kind)
{
    const struct loaded_type *type = loaded_types_find(r->types, kind->table);
    const char *name = type && type->name ? type->name : NULL;
    if (!name)
        return;
    if (strcmp(name, TASKS "Task+SetOnInvokeMres") == 0 ||
        strcmp(name, TASKS "Task+SetOnCountdownMres") == 0) {
        kind->role = ROLE_EVENT;
        kind->field = type_fields_in_object(r->types, type_fields_base(r->types, kind->table), "m_lock");
    } else if (strcmp(name, "System.Threading.CancellationTokenSource+CallbackNode") == 0) {
        kind->role = ROLE_CANCELLATION;
        kind->field = type_fields_in_object(r->types, kind->table, "CallbackState");
    } else if (async_type_read(r->types, kind->table, &kind->async)) {
        kind->role = ROLE_TASK;
        kind->ends_after = kind->async.kind == ASYNC_METHOD || is_promise_of_all(kind->async.name);
    } else {
        async_link_read(r->types, kind->table, &kind->link);
        kind->role =
            kind->link.next != ASYNC_NO_FIELD || kind->link.items != ASYNC_NO_FIELD ? ROLE_LINK : ROLE_NONE;
    }
}

static bool is_kind(const void *kinds, uint32_t id, const void *table)
{
    return ((const struct task_type *)kinds)[id].table == *(const uint64_t *)table;
}

/* The kind of what is at an address, any word. Valid until the next call. */
static const struct task_type *kind_of(struct task_reader *r, uint64_t addr)
{
    static const struct task_type none;
    uint64_t table = managed_object_at(r->pages, addr);
    if (!table)
        return &none;
    uint64_t hash = hash_pair(table, 0);
    uint32_t id = id_map_find(&r->kind_ids, hash, is_kind, r->kinds, &table);
    if (id)
        return &r->kinds[id];
    if (r->kind_count == 0)
        r->kind_count = 1;
    if (r->kind_count > KINDS_MAX)
        return &none;
    struct task_type kind = { .table = table };
    read_kind(r, &kind);
    r->kinds = mem_grow(r->kinds, &r->kind_capacity, r->kind_count + 1, sizeof *r->kinds);
    r->kinds[r->kind_count] = kind;
    id_map_add(&r->kind_ids, hash, (uint32_t)r->kind_count);
    return &r->kinds[r->kind_count++];
}

/* Who runs what. */

static uint32_t flags_of(struct task_reader *r, uint64_t task, const struct async_type *type)
{
    return type->flags != ASYNC_NO_FIELD ? memory_pages_u32(r->pages, task + type->flags) : 0;
}

/* Where a method's state machine is. */
static uint64_t machine_of(struct task_reader *r, uint64_t task, const struct async_type *type)
{
    uint64_t place = task + type->machine;
    return type->by_reference ? memory_pages_u64(r->pages, place) : place;
}

void task_want(struct task_reader *r, uint64_t addr)
{
    if (managed_object_may_be_at(r->pages, addr))
        memory_pages_want(r->pages, addr, sizeof addr);
}

bool task_is_running(struct task_reader *r, uint64_t addr)
{
    const struct task_type *kind = kind_of(r, addr);
    const struct async_type *type = &kind->async;
    if (kind->role != ROLE_TASK || !type->is_task)
        return false;
    uint32_t flags = flags_of(r, addr, type);
    if (flags & ASYNC_TASK_DONE)
        return false;
    if (type->kind == ASYNC_TASK)
        return (flags & DELEGATE_RUNS) && !(flags & CHILDREN_RUN);
    if (type->kind != ASYNC_METHOD || type->state == ASYNC_NO_FIELD)
        return false;
    uint64_t machine = machine_of(r, addr, type);
    return machine && (int32_t)memory_pages_u32(r->pages, machine + type->state) == ASYNC_STATE_RUNNING;
}

static uint64_t stack_word(struct span stack, size_t i)
{
    return load_u64le(stack.data + 8 * i);
}

static bool holds(struct span stack, uint64_t word)
{
    for (size_t i = 0; i < stack.size / 8; i++)
        if (stack_word(stack, i) == word)
            return true;
    return false;
}

/* Who runs a delegate keeps, in one frame, the task and where the thread's current task is noted. */
static bool notes_current(struct task_reader *r, uint64_t task, struct span stack)
{
    size_t words = stack.size / 8;
    for (size_t i = 0; i < words; i++) {
        if (stack_word(stack, i) != task)
            continue;
        size_t end = i + NEAR_WORDS < words ? i + NEAR_WORDS : words;
        for (size_t k = i > NEAR_WORDS ? i - NEAR_WORDS : 0; k < end; k++) {
            uint64_t place = stack_word(stack, k);
            if (place && place % 8 == 0 && memory_pages_u64(r->pages, place) == task)
                return true;
        }
    }
    return false;
}

bool task_runs_on(struct task_reader *r, uint64_t task, struct span stack, bool executes)
{
    const struct task_type *kind = kind_of(r, task);
    if (kind->role != ROLE_TASK)
        return false;
    return kind->async.kind == ASYNC_METHOD
               ? holds(stack, task) && holds(stack, machine_of(r, task, &kind->async))
               : executes && notes_current(r, task, stack);
}

/* Who waits. */

struct search {
    struct task_reader *reader;
    uint64_t tasks[TASKS_MAX]; /* none of which can end before the first */
    size_t count;
    task_wait_fn *emit;
    void *user;
};

static void add_task(struct search *s, uint64_t task)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->tasks[i] == task)
            return;
    if (s->count < TASKS_MAX)
        s->tasks[s->count++] = task;
}

/* Whether a method's state machine awaits the task itself. */
static bool awaits(struct task_reader *r, uint64_t object, const struct async_type *type, uint64_t task)
{
    uint64_t machine = type->kind == ASYNC_METHOD ? machine_of(r, object, type) : 0;
    for (unsigned i = 0; machine && i < type->awaiter_count; i++)
        if (memory_pages_u64(r->pages, machine + type->awaiters[i]) == task)
            return true;
    return false;
}

/* What goes on when `task` ends. What only leads to a method can be anybody's: the method must say that it
 * awaits the task. */
static void follow(struct search *s, uint64_t task, uint64_t object)
{
    struct task_reader *r = s->reader;
    for (unsigned hops = 0; hops < HOPS_MAX; hops++) {
        struct task_type kind = *kind_of(r, object);
        if (kind.role == ROLE_EVENT && hops == 0 && kind.field != ASYNC_NO_FIELD)
            s->emit(s->user,
                    &(struct task_wait){ task, object, memory_pages_u64(r->pages, object + kind.field) });
        if (kind.role == ROLE_TASK && kind.ends_after && kind.async.is_task &&
            (hops == 0 || awaits(r, object, &kind.async, task)))
            add_task(s, object);
        if (kind.role != ROLE_LINK || kind.link.next == ASYNC_NO_FIELD)
            return;
        object = memory_pages_u64(r->pages, object + kind.link.next);
    }
}

static void follow_all(struct search *s, uint64_t task)
{
    struct task_reader *r = s->reader;
    struct task_type kind = *kind_of(r, task);
    if (kind.role != ROLE_TASK || kind.async.continuation == ASYNC_NO_FIELD ||
        (flags_of(r, task, &kind.async) & ASYNC_TASK_DONE))
        return;
    uint64_t object = memory_pages_u64(r->pages, task + kind.async.continuation);
    struct task_type next = *kind_of(r, object);
    if (next.role != ROLE_LINK || next.link.items == ASYNC_NO_FIELD || next.link.size == ASYNC_NO_FIELD) {
        follow(s, task, object);
        return;
    }
    uint64_t items = memory_pages_u64(r->pages, object + next.link.items);
    uint32_t count = memory_pages_u32(r->pages, object + next.link.size);
    for (uint32_t i = 0; i < count && i < LIST_ITEMS_MAX; i++)
        follow(s, task, memory_pages_u64(r->pages, items + ASYNC_ARRAY_ITEMS + 8 * (uint64_t)i));
}

void task_waits_find(struct task_reader *reader, uint64_t task, task_wait_fn *emit, void *user)
{
    AUTO_FREE struct search *s = mem_alloc(1, sizeof *s);
    *s = (struct search){ .reader = reader, .emit = emit, .user = user };
    add_task(s, task);
    for (size_t i = 0; i < s->count; i++)
        follow_all(s, s->tasks[i]);
}

bool task_wait_is_cancellable(struct task_reader *reader, const struct task_wait *wait, struct span stack)
{
    for (size_t i = 0; i < stack.size / 8; i++) {
        uint64_t object = stack_word(stack, i);
        const struct task_type *kind = kind_of(reader, object);
        if (kind->role == ROLE_CANCELLATION && kind->field != ASYNC_NO_FIELD &&
            memory_pages_u64(reader->pages, object + kind->field) == wait->event)
            return true;
    }
    return false;
}
