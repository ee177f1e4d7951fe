/* Threads, monitors and their objects as .NET 8 to 11 lay them out, made by hand; and made wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "clr/managed_lock.h"

enum {
    BASE = 0x10000,
    BYTES = 0x10000,
    STORE = BASE + 0x100,
    DAC_TABLE = BASE + 0x400,
    SYNC_VARIABLE = BASE + 0x900,
    SYNC_TABLE = BASE + 0x1000,
    BLOCK = BASE + 0x2000, /* 0x100 each */
    ITEM = BASE + 0x3000,
    OBJECT = BASE + 0x4000,
    THREAD = BASE + 0x8000, /* 0x1000 each */
    TYPE = BASE + 0x7000,
};

static uint8_t bytes[BYTES];
static struct flat_memory flat = { BASE, bytes, BYTES };

static void put64(uint64_t addr, uint64_t value)
{
    flat_memory_put64(&flat, addr, value);
}

static void put32(uint64_t addr, uint32_t value)
{
    flat_memory_put32(&flat, addr, value);
}

static const struct layout {
    unsigned major;
    uint16_t first, link, tid, managed_id, blocking;
} layouts[] = {
    { 10, 0x58, 0x70, 0x128, 0x10, 0x2a0 },
    { 9, 0xa0, 0x70, 0x128, 0x10, 0x408 },
    { 8, 0xa0, 0xe8, 0x1a8, 0x20, 0x4a8 },
};

static uint64_t thread_at(unsigned i)
{
    return THREAD + 0x1000u * i;
}

/* Thread i has tid 100 + i and managed id 1 + i; 0 and 1 each hold what the other waits for. */
static void build(const struct layout *l)
{
    memset(bytes, 0, sizeof bytes);
    flat.size = BYTES;
    put64(STORE + l->first, thread_at(0) + l->link);
    for (unsigned i = 0; i < 3; i++) {
        put64(thread_at(i) + l->link, i < 2 ? thread_at(i + 1) + l->link : 0);
        put32(thread_at(i) + l->tid, i == 2 ? 0xbaadf00d : 100 + i); /* the third has not started */
        put32(thread_at(i) + l->managed_id, 1 + i);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t block = BLOCK + 0x100u * i, item = ITEM + 0x100u * i, object = OBJECT + 0x100u * i;
        put32(block, 1 | 1 << 6); /* held, one waits */
        put32(block + 4, 2);
        put64(block + 8, l->major >= 10 ? 1 + i : thread_at(i));
        put32(block + 0x10, 100 + i);
        put64(thread_at(1 - i) + l->blocking, item);
        put64(item, block);
        put32(item + 0x14, UINT32_MAX);
        put64(SYNC_TABLE + 16 * (5 + i), block);
        put64(SYNC_TABLE + 16 * (5 + i) + 8, object);
        put32(object - 4, 1u << 27 | (5 + i));
        put64(object, TYPE | 1); /* marked by a GC */
    }
    /* an entry that was left behind: its object says otherwise */
    put64(SYNC_TABLE + 16, BLOCK);
    put64(SYNC_TABLE + 24, OBJECT + 0x100);
    put64(DAC_TABLE + 8 * 79, STORE);
    put64(DAC_TABLE + 8 * 80, SYNC_VARIABLE);
    put64(SYNC_VARIABLE, SYNC_TABLE);
}

struct fixture {
    struct memory_mapping mapping;
    struct memory memory;
    struct memory_pages pages;
    struct managed_threads threads;
};

static void open_fixture(struct fixture *f, unsigned major)
{
    f->mapping = (struct memory_mapping){
        .start = BASE, .end = BASE + BYTES, .readable = true, .writable = true, .path = ""
    };
    f->memory = (struct memory){ flat_memory_read, &flat, &f->mapping, 1, false };
    memory_pages_init(&f->pages, &f->memory, 1 << 20);
    f->threads = (struct managed_threads){ .major = major, .table = DAC_TABLE, .store = STORE };
    assert_true(managed_thread_offsets_of(major, &f->threads.offsets));
}

static void close_fixture(struct fixture *f)
{
    managed_threads_done(&f->threads);
    memory_pages_done(&f->pages);
}

static void test_versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct fixture f;
        struct managed_lock lock;
        build(&layouts[i]);
        open_fixture(&f, layouts[i].major);
        assert_true(managed_threads_read(&f.threads, &f.pages));
        assert_int_equal(f.threads.count, 3);
        const struct managed_thread *first = managed_threads_by_tid(&f.threads, 100);
        assert_int_equal(first->managed_id, 1);
        assert_int_equal(first->blocking, BLOCKING_ENTER);
        assert_int_equal(first->sync_block, BLOCK + 0x100);
        assert_int_equal(first->timeout_ms, -1);
        assert_null(managed_threads_by_tid(&f.threads, 0));
        assert_true(managed_lock_read_monitor(&f.pages, &f.threads, BLOCK, &lock));
        assert_int_equal(lock.owner, 100);
        assert_int_equal(lock.recursion, 2);
        assert_int_equal(lock.object, OBJECT); /* not the one that was left behind */
        assert_int_equal(lock.table, TYPE);
        assert_int_equal(f.threads.sync_table, SYNC_VARIABLE);
        close_fixture(&f);
    }
}

/* An owner that contradicts itself has ended, and a list that cannot be one is none. */
static const struct {
    const char *name;
    uint64_t addr;
    uint32_t value;
    bool list; /* still there, with an owner that is none of it */
} wrong[] = {
    { "the owner's number is another thread's", BLOCK + 0x10, 101, true },
    { "the owner is nobody's number", BLOCK + 0x10, 4711, true },
    { "the owner is another managed thread", BLOCK + 8, 2, true },
    { "the list runs in a circle", THREAD + 0x2070, THREAD + 0x70, false },
    { "a link is not aligned", THREAD + 0x1070, THREAD + 0x2071, false },
    { "a thread without a number", THREAD + 0x1010, 0, false },
    { "a link leads out of memory", THREAD + 0x1070, 0x7000, false },
    { "an empty list", STORE + 0x58, 0, false },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct fixture f;
        struct managed_lock lock;
        build(&layouts[0]);
        put32(wrong[i].addr, wrong[i].value);
        open_fixture(&f, 10);
        if (managed_threads_read(&f.threads, &f.pages) != wrong[i].list)
            fail_msg("%s: the list", wrong[i].name);
        if (wrong[i].list &&
            (!managed_lock_read_monitor(&f.pages, &f.threads, BLOCK, &lock) || !lock.abandoned))
            fail_msg("%s: the owner", wrong[i].name);
        close_fixture(&f);
    }
}

/* Its number may not be known any more; and what no object has is no monitor that somebody has left so. */
static void test_abandoned(void **state)
{
    (void)state;
    struct fixture f;
    struct managed_lock lock;
    build(&layouts[0]);
    put32(BLOCK + 0x10, UINT32_MAX);
    open_fixture(&f, 10);
    assert_true(managed_threads_read(&f.threads, &f.pages));
    assert_true(managed_lock_read_monitor(&f.pages, &f.threads, BLOCK, &lock));
    assert_true(lock.abandoned);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.object, OBJECT);
    put32(OBJECT - 4, 0);
    memory_pages_drop(&f.pages);
    assert_false(managed_lock_read_monitor(&f.pages, &f.threads, BLOCK, &lock));
    close_fixture(&f);
}

static void test_lock_object(void **state)
{
    (void)state;
    struct fixture f;
    struct managed_lock lock;
    build(&layouts[0]);
    put64(OBJECT, TYPE);
    put32(OBJECT + 0x10, 101);
    put32(OBJECT + 0x14, 0x81);
    open_fixture(&f, 10);
    assert_true(managed_threads_read(&f.threads, &f.pages));
    assert_true(managed_lock_read_object(&f.pages, &f.threads, OBJECT, &lock));
    assert_int_equal(lock.owner, 101);
    put32(OBJECT + 0x14, 0x80); /* somebody waits, nobody holds it */
    memory_pages_drop(&f.pages);
    assert_false(managed_lock_read_object(&f.pages, &f.threads, OBJECT, &lock));
    close_fixture(&f);
}

/* As 11 has it: links lead to Threads, a monitor is a System.Threading.Lock, whose owner is a managed number.
 */
static void test_monitor_is_lock(void **state)
{
    (void)state;
    enum { HANDLE = BASE + 0x5000, LOCK = BASE + 0x6000 };
    struct fixture f;
    struct managed_lock lock;
    build(&layouts[0]);
    put64(STORE + 0x58, thread_at(0));
    for (unsigned i = 0; i < 3; i++)
        put64(thread_at(i) + 0x70, i < 2 ? thread_at(i + 1) : 0);
    put64(BLOCK + 0x100, HANDLE);
    put64(HANDLE, LOCK);
    put64(LOCK, TYPE);
    put32(LOCK + 0x10, 2); /* managed: of the thread with tid 101 */
    put32(LOCK + 0x14, 0x81);
    put32(LOCK + 0x18, 3);
    open_fixture(&f, 10);
    f.threads.major = 11;
    f.threads.offsets.linked = f.threads.offsets.blocking = 0;
    f.threads.sync_table = SYNC_VARIABLE;
    assert_true(managed_threads_read(&f.threads, &f.pages));
    assert_int_equal(f.threads.count, 3);
    assert_int_equal(managed_threads_by_tid(&f.threads, 101)->blocking, BLOCKING_NONE);
    assert_int_equal(managed_threads_by_id(&f.threads, 2)->tid, 101);
    assert_null(managed_threads_by_id(&f.threads, 0));
    assert_true(managed_lock_in_monitors(&f.threads));
    assert_true(managed_lock_read_object(&f.pages, &f.threads, LOCK, &lock));
    assert_int_equal(lock.owner, 101);
    assert_int_equal(lock.recursion, 3);
    assert_int_equal(managed_lock_monitor_of(&f.pages, &f.threads, LOCK), OBJECT + 0x100);
    assert_int_equal(managed_lock_monitor_of(&f.pages, &f.threads, OBJECT), 0);
    put32(LOCK + 0x10, 3); /* one that has not started */
    memory_pages_drop(&f.pages);
    assert_false(managed_lock_read_object(&f.pages, &f.threads, LOCK, &lock));
    close_fixture(&f);
}

/* Memory that ends anywhere: less is found, nothing is made up. */
static void test_cut(void **state)
{
    (void)state;
    build(&layouts[0]);
    for (flat.size = 0; flat.size < BYTES; flat.size += 0x40) {
        struct fixture f;
        struct managed_lock lock;
        open_fixture(&f, 10);
        managed_threads_read(&f.threads, &f.pages);
        if (managed_lock_read_monitor(&f.pages, &f.threads, BLOCK, &lock))
            assert_true(lock.owner == 0 || lock.owner == 100);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_abandoned),       cmocka_unit_test(test_lock_object),
        cmocka_unit_test(test_monitor_is_lock), cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
