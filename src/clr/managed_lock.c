#include "clr/managed_lock.h"

enum {
    LOCKS_IN_MONITORS_MAJOR = 11,
    /* of the table of sync blocks: 78 to 82 so far, which are looked at first */
    SLOT_LIKELY = 78,
    SLOT_LIKELY_END = 83,
    SLOT_FIRST = 60,
    SLOT_END = 110,
    ENTRY_BYTES = 16,
    ENTRIES_MAX = 1 << 18,
    FETCH_BYTES = 32 << 10,
    ENTRIES_HOLLOW = 4096, /* so many without an object: the end of what is in use */
    BLOCK_STATE = 0,
    BLOCK_RECURSION = 4,
    BLOCK_OWNER = 8,
    BLOCK_OWNER_TID = 0x10,
    STATE_HELD = 1,
    HEADER_HAS_INDEX = 1 << 27,
    HEADER_IS_HASH = 1 << 26,
    INDEX_MASK = (1 << 26) - 1,
    BLOCK_LOCK = 0,    /* from 11 on: a handle of it */
    LOCK_OWNER = 0x10, /* up to 10 the thread's number of the system's, then .NET's own */
    LOCK_STATE = 0x14,
    LOCK_RECURSION = 0x18,
};

static bool owner_agrees(const struct managed_thread *thread, unsigned major, struct memory_pages *pages,
                         uint64_t sync_block)
{
    return major >= 10 ? thread->managed_id == memory_pages_u32(pages, sync_block + BLOCK_OWNER)
                       : thread->addr == memory_pages_u64(pages, sync_block + BLOCK_OWNER);
}

/* Does the object say that the table's entry `index` is its own? */
static bool points_back(struct memory_pages *pages, uint64_t object, uint32_t index)
{
    if (object < 16 || object % 8 != 0)
        return false;
    uint32_t header = memory_pages_u32(pages, object - 4);
    return (header & (HEADER_HAS_INDEX | HEADER_IS_HASH)) == HEADER_HAS_INDEX &&
           (header & INDEX_MASK) == index;
}

/* What a sync block is known by. */
struct wanted_block {
    uint64_t addr, lock; /* one of them */
};

static bool is_wanted(struct memory_pages *pages, uint64_t block, const struct wanted_block *wanted)
{
    if (wanted->addr)
        return block == wanted->addr;
    uint64_t handle = block && block % 8 == 0 ? memory_pages_u64(pages, block + BLOCK_LOCK) : 0;
    return handle && handle % 8 == 0 && memory_pages_u64(pages, handle) == wanted->lock;
}

/* The object of a sync block. Entries that are not in use may hold anything. */
static uint64_t find_in_table(struct memory_pages *pages, uint64_t variable,
                              const struct wanted_block *wanted)
{
    uint64_t table = variable && variable % 8 == 0 ? memory_pages_u64(pages, variable) : 0;
    const struct memory_mapping *m = table && table % 8 == 0 ? memory_mapping_at(pages->memory, table) : NULL;
    if (!m || !m->writable)
        return 0;
    uint32_t hollow = 0;
    for (uint32_t i = 1; i < ENTRIES_MAX && hollow < ENTRIES_HOLLOW; i++) {
        uint64_t entry = table + (uint64_t)ENTRY_BYTES * i;
        if (entry + ENTRY_BYTES > m->end)
            return 0;
        if (entry % FETCH_BYTES < ENTRY_BYTES) {
            memory_pages_want(pages, entry, FETCH_BYTES);
            memory_pages_fetch(pages);
        }
        uint64_t block = memory_pages_u64(pages, entry);
        hollow = block ? 0 : hollow + 1;
        if (!is_wanted(pages, block, wanted))
            continue;
        uint64_t object = memory_pages_u64(pages, entry + 8);
        if (points_back(pages, object, i))
            return object;
    }
    return 0;
}

static uint64_t find_in_slots(struct memory_pages *pages, struct managed_threads *threads, unsigned first,
                              unsigned end, const struct wanted_block *wanted)
{
    for (unsigned slot = first; slot < end; slot++) {
        uint64_t variable = memory_pages_u64(pages, threads->table + 8 * slot);
        uint64_t object = find_in_table(pages, variable, wanted);
        if (object) {
            threads->sync_table = variable;
            return object;
        }
    }
    return 0;
}

static uint64_t find_object(struct memory_pages *pages, struct managed_threads *threads, uint64_t sync_block)
{
    const struct wanted_block wanted = { .addr = sync_block };
    if (threads->sync_table)
        return find_in_table(pages, threads->sync_table, &wanted);
    uint64_t object = find_in_slots(pages, threads, SLOT_LIKELY, SLOT_LIKELY_END, &wanted);
    if (!object)
        object = find_in_slots(pages, threads, SLOT_FIRST, SLOT_LIKELY, &wanted);
    return object ? object : find_in_slots(pages, threads, SLOT_LIKELY_END, SLOT_END, &wanted);
}

uint64_t managed_object_table(struct memory_pages *pages, uint64_t object)
{
    return object && object % 8 == 0 ? memory_pages_u64(pages, object) & ~UINT64_C(7) : 0;
}

bool managed_object_may_be_at(const struct memory_pages *pages, uint64_t addr)
{
    const struct memory_mapping *m = addr % 8 == 0 ? memory_mapping_at(pages->memory, addr) : NULL;
    return m && m->writable && !m->path[0];
}

uint64_t managed_object_at(struct memory_pages *pages, uint64_t addr)
{
    uint64_t table = managed_object_may_be_at(pages, addr) ? managed_object_table(pages, addr) : 0;
    const struct memory_mapping *there = table ? memory_mapping_at(pages->memory, table) : NULL;
    /* of a dump the rights of memory that has the name of a file, as /memfd:doublemapper, can be a
     * neighbour's */
    return there && (there->writable || pages->memory->partial) ? table : 0;
}

bool managed_lock_read_monitor(struct memory_pages *pages, struct managed_threads *threads,
                               uint64_t sync_block, struct managed_lock *out)
{
    struct managed_lock lock = { 0 };
    uint32_t state = memory_pages_u32(pages, sync_block + BLOCK_STATE);
    if (state & STATE_HELD) {
        lock.owner = (pid_t)memory_pages_u32(pages, sync_block + BLOCK_OWNER_TID);
        lock.recursion = memory_pages_u32(pages, sync_block + BLOCK_RECURSION);
        const struct managed_thread *owner = managed_threads_by_tid(threads, lock.owner);
        lock.abandoned = !owner || !owner_agrees(owner, threads->major, pages, sync_block);
    }
    lock.object = find_object(pages, threads, sync_block);
    if (lock.abandoned && !lock.object)
        return false;
    if (lock.owner < 0) /* it had ended before anybody waited */
        lock.owner = 0;
    lock.table = managed_object_table(pages, lock.object);
    *out = lock;
    return true;
}

bool managed_lock_read_object(struct memory_pages *pages, const struct managed_threads *threads,
                              uint64_t object, struct managed_lock *out)
{
    struct managed_lock lock = { .object = object, .table = managed_object_table(pages, object) };
    uint32_t number = memory_pages_u32(pages, object + LOCK_OWNER);
    const struct managed_thread *owner = managed_lock_in_monitors(threads)
                                             ? managed_threads_by_id(threads, number)
                                             : managed_threads_by_tid(threads, (pid_t)number);
    if (!owner || !owner->tid || !(memory_pages_u32(pages, object + LOCK_STATE) & STATE_HELD))
        return false;
    lock.owner = owner->tid;
    lock.recursion = memory_pages_u32(pages, object + LOCK_RECURSION);
    *out = lock;
    return true;
}

bool managed_lock_in_monitors(const struct managed_threads *threads)
{
    return threads->major >= LOCKS_IN_MONITORS_MAJOR;
}

uint64_t managed_lock_monitor_of(struct memory_pages *pages, const struct managed_threads *threads,
                                 uint64_t lock)
{
    const struct wanted_block wanted = { .lock = lock };
    return threads->sync_table ? find_in_table(pages, threads->sync_table, &wanted) : 0;
}
