#include "clr/managed_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/loaded_symbol.h"

enum {
    SLOTS_TRIED = 40, /* the store has been in slots 15 and 16 */
    LOOKS_MAX = 4,
    TID_MAX = 1 << 22,
    LINKS_AHEAD = MEMORY_PATH_STEPS_MAX / 2,
    ITEM_KIND = 0x10,
    ITEM_TIMEOUT = 0x14,
    ITEM_BYTES = 0x18,
    KIND_ENTER = 0,
    KIND_WAIT = 1,
};

static const struct {
    unsigned major;
    struct managed_thread_offsets offsets;
} known[] = {
    { 10, { 0x58, 0x70, 0x128, 0x10, 0x70, 0x2a0, 0x20, 0x08 } },
    { 9, { 0xa0, 0x70, 0x128, 0x10, 0x70, 0x408, 0x20, 0x00 } },
    { 8, { 0xa0, 0xe8, 0x1a8, 0x20, 0xe8, 0x4a8, 0, 0x58 } },
};

bool managed_thread_offsets_of(unsigned major, struct managed_thread_offsets *out)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].major == major) {
            *out = known[i].offsets;
            return true;
        }
    return false;
}

/* As the runtime describes them. */
static bool find_described(const struct contract_descriptor *d, struct managed_thread_offsets *out)
{
    struct managed_thread_offsets o = { 0 };
    uint16_t allocation, collector, pointer;
    if (!d || !contract_descriptor_field(d, "ThreadStore", "FirstThreadLink", &o.first) ||
        !contract_descriptor_field(d, "Thread", "LinkNext", &o.link) ||
        !contract_descriptor_field(d, "Thread", "OSId", &o.tid) ||
        !contract_descriptor_field(d, "Thread", "Id", &o.managed_id) ||
        !contract_descriptor_field(d, "Thread", "RuntimeThreadLocals", &o.runtime_local) ||
        !contract_descriptor_field(d, "RuntimeThreadLocals", "AllocContext", &allocation) ||
        !contract_descriptor_field(d, "EEAllocContext", "GCAllocationContext", &collector) ||
        !contract_descriptor_field(d, "GCAllocContext", "Pointer", &pointer))
        return false;
    o.context = (uint16_t)(allocation + collector + pointer);
    *out = o;
    return true;
}

static void read_blocking(struct memory_pages *pages, const struct managed_thread_offsets *o,
                          struct managed_thread *thread)
{
    uint64_t item = o->blocking ? memory_pages_u64(pages, thread->addr + o->blocking) : 0;
    if (item == 0 || item % 8 != 0)
        return;
    uint32_t kind = memory_pages_u32(pages, item + ITEM_KIND);
    uint64_t sync_block = memory_pages_u64(pages, item);
    if (sync_block == 0 || sync_block % 8 != 0 || kind > KIND_WAIT)
        return;
    thread->blocking = kind == KIND_ENTER ? BLOCKING_ENTER : BLOCKING_WAIT;
    thread->sync_block = sync_block;
    thread->timeout_ms = (int32_t)memory_pages_u32(pages, item + ITEM_TIMEOUT);
}

static void read_context(struct memory_pages *pages, const struct managed_thread_offsets *o,
                         struct managed_thread *thread)
{
    uint64_t base =
        o->runtime_local ? memory_pages_u64(pages, thread->addr + o->runtime_local) : thread->addr;
    if (base == 0 || base % 8 != 0)
        return;
    thread->allocates_from = memory_pages_u64(pages, base + o->context);
    thread->allocates_to = memory_pages_u64(pages, base + o->context + 8);
}

/* Reads ahead from one link to the next, and what each thread points to. */
static void follow_links(struct memory_pages *pages, const struct managed_thread_offsets *o, uint64_t link)
{
    struct memory_path path = { .start = link };
    uint8_t at = 0;
    for (unsigned i = 0; i < LINKS_AHEAD; i++) {
        if (o->runtime_local)
            memory_path_add_pointer(&path, at, (int32_t)o->runtime_local - o->linked);
        at = memory_path_add_pointer(&path, at, o->link - o->linked);
    }
    memory_pages_follow(pages, 0, &path);
}

/* False when the list is none: it runs in circles, or has numbers that no thread can have. */
static bool read_list(struct managed_threads *t, struct memory_pages *pages, uint64_t store)
{
    const struct managed_thread_offsets *o = &t->offsets;
    t->count = 0;
    for (uint64_t link = memory_pages_u64(pages, store + o->first); link;) {
        if (link % 8 != 0 || t->count == MANAGED_THREADS_MAX)
            return false;
        if (t->count % LINKS_AHEAD == 0)
            follow_links(pages, o, link);
        struct managed_thread thread = { .addr = link - o->linked };
        uint32_t tid = memory_pages_u32(pages, thread.addr + o->tid);
        thread.managed_id = memory_pages_u32(pages, thread.addr + o->managed_id);
        if (thread.managed_id == 0 || thread.managed_id >= MANAGED_THREADS_MAX * 16u)
            return false;
        thread.tid = tid < TID_MAX ? (pid_t)tid : 0; /* others say that there is none yet */
        read_blocking(pages, o, &thread);
        read_context(pages, o, &thread);
        t->items = mem_grow(t->items, &t->capacity, t->count + 1, sizeof *t->items);
        t->items[t->count++] = thread;
        link = memory_pages_u64(pages, thread.addr + o->link);
    }
    return t->count > 0;
}

static int compare_tids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* Threads end while we look, so not all of them must be there. */
static bool are_of_process(const struct managed_threads *t, const pid_t *tids, size_t tid_count)
{
    size_t started = 0, there = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->items[i].tid == 0)
            continue;
        started++;
        there += bsearch(&t->items[i].tid, tids, tid_count, sizeof *tids, compare_tids) != NULL;
    }
    return there > 0 && there * 4 >= started * 3;
}

/* Reads the list of the ThreadStore that a variable points to, if it is one: t->store is set then. */
static bool is_store(struct managed_threads *t, struct memory_pages *pages, uint64_t variable,
                     const pid_t *tids, size_t tid_count)
{
    t->store = variable && variable % 8 == 0 ? memory_pages_u64(pages, variable) : 0;
    return t->store && t->store % 8 == 0 && read_list(t, pages, t->store) &&
           are_of_process(t, tids, tid_count);
}

/* Where the description says that the store is, or in a slot of g_dacTable. */
static bool find_store(struct managed_threads *t, struct memory_pages *pages, uint64_t told,
                       const pid_t *tids, size_t tid_count)
{
    bool found = is_store(t, pages, told, tids, tid_count);
    for (unsigned slot = 0; !found && slot < SLOTS_TRIED; slot++)
        found = is_store(t, pages, memory_pages_u64(pages, t->table + 8 * slot), tids, tid_count);
    return found;
}

bool managed_threads_open(struct memory_pages *pages, const struct runtime_root *root, const char *layout,
                          const pid_t *tids, size_t tid_count, struct managed_threads *out, struct error *err)
{
    struct loaded_symbol symbol;
    struct managed_threads t = { .major = (unsigned)strtoul(layout, NULL, 10) };
    if (!managed_thread_offsets_of(t.major, &t.offsets) && !find_described(root->descriptor, &t.offsets))
        return error_set(err, ERROR_UNSUPPORTED, "the list of threads of .NET %s is not known", layout);
    if (!loaded_symbol_find(pages, root->base, "g_dacTable", &symbol))
        return error_set(err, ERROR_UNSUPPORTED, "the runtime exports no g_dacTable");
    t.table = symbol.addr;
    uint64_t told = 0;
    if (root->descriptor) {
        contract_descriptor_addr(root->descriptor, "ThreadStore", &told);
        contract_descriptor_addr(root->descriptor, "SyncTableEntries", &t.sync_table);
    }
    bool found = find_store(&t, pages, told, tids, tid_count);
    /* a link may lead to a thread that is newer than the page it lies in, as it was read before */
    for (unsigned looks = 1; !found && looks < LOOKS_MAX; looks++) {
        memory_pages_drop(pages);
        found = find_store(&t, pages, told, tids, tid_count);
    }
    if (found) {
        *out = t;
        return true;
    }
    managed_threads_done(&t);
    return error_set(err, ERROR_UNSUPPORTED, "the runtime's list of threads cannot be found in its memory");
}

void managed_threads_done(struct managed_threads *threads)
{
    free(threads->items);
    threads->items = NULL;
    threads->count = threads->capacity = 0;
}

/* What the list told last time: of nearly all threads that is where they still are. */
static void read_known(const struct managed_threads *t, struct memory_pages *pages)
{
    const struct managed_thread_offsets *o = &t->offsets;
    const uint16_t pointers[] = { o->runtime_local, o->blocking };
    for (size_t i = 0; i < t->count; i++)
        memory_pages_want(pages, t->items[i].addr, MANAGED_THREAD_BYTES);
    memory_pages_fetch(pages);
    for (size_t i = 0; i < 2 * t->count; i++) {
        uint16_t place = pointers[i % 2];
        uint64_t at = place ? memory_pages_u64(pages, t->items[i / 2].addr + place) : 0;
        if (at)
            memory_pages_want(pages, at, i % 2 ? ITEM_BYTES : o->context + 16);
    }
    memory_pages_fetch(pages);
}

bool managed_threads_read(struct managed_threads *threads, struct memory_pages *pages)
{
    read_known(threads, pages);
    return read_list(threads, pages, threads->store);
}

const struct managed_thread *managed_threads_by_tid(const struct managed_threads *threads, pid_t tid)
{
    for (size_t i = 0; tid && i < threads->count; i++)
        if (threads->items[i].tid == tid)
            return &threads->items[i];
    return NULL;
}

const struct managed_thread *managed_threads_by_id(const struct managed_threads *threads, uint32_t managed_id)
{
    for (size_t i = 0; managed_id && i < threads->count; i++)
        if (threads->items[i].managed_id == managed_id)
            return &threads->items[i];
    return NULL;
}

uint64_t managed_handle_object(struct memory_pages *pages, uint64_t handle)
{
    uint64_t object = handle && handle % 8 == 0 ? memory_pages_u64(pages, handle) : 0;
    return object % 8 == 0 ? object : 0;
}
