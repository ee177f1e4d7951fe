/* A GC's heap as .NET 8, 9 and 10 lay it out, made by hand: regions, segments, server GC; and made wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/clock.h"
#include "base/own.h"
#include "clr/heap_walk.h"

enum {
    BASE = 0x10000,
    BYTES = 0x20000,
    DAC_TABLE = BASE + 0x100,
    VARS_VARIABLE = BASE + 0x300,
    VARS = BASE + 0x400,
    COUNTER = BASE + 0x600,
    EPHEMERAL = BASE + 0x608,
    ALLOCATED = BASE + 0x610,
    HEAP_COUNT = BASE + 0x618,
    HEAP_TABLE = BASE + 0x620,
    HEAP_FIELDS = BASE + 0x700,
    GENERATION_FIELDS = BASE + 0x780,
    GENERATIONS = BASE + 0x1000, /* of the workstation GC; 0x100 each */
    HEAPS = BASE + 0x2000,       /* of the server GC; 0x1000 each, generations at 0x200 */
    SEGMENTS = BASE + 0x6000,    /* 0x100 each */
    TYPES = BASE + 0x8000,
    OBJECTS = BASE + 0x10000, /* 0x1000 a segment */
    GENERATION_BYTES = 0x100,
};

/* Types: one of 24 bytes, an array of 4-byte elements, free room. */
enum { PLAIN = TYPES, ARRAY = TYPES + 0x100, FREE = TYPES + 0x200, CLASSES = TYPES + 0x800 };

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

static void build_type(uint64_t table, uint32_t base, uint16_t component, uint64_t eeclass)
{
    put32(table, component ? 0x80000000 | component : 0);
    put32(table + 4, base);
    put64(table + 0x28, eeclass);
    if (eeclass)
        put64(eeclass + 0x10, table);
}

/* A plain object, free room of 40 bytes, an array of 3: 24 + 40 + 40 bytes. */
enum { FEW_BYTES = 104 };
static uint64_t build_objects(uint64_t at)
{
    put64(at, PLAIN | 1); /* marked by a GC */
    put64(at + 24, FREE);
    put32(at + 32, 40 - 24);
    put64(at + 64, ARRAY);
    put32(at + 72, 3);
    return at + FEW_BYTES;
}

static uint64_t segment_at(unsigned i)
{
    return SEGMENTS + 0x100u * i;
}

static uint64_t objects_at(unsigned i)
{
    return OBJECTS + 0x1000u * i;
}

static void build_segment(unsigned i, uint64_t next, uint32_t flags)
{
    put64(segment_at(i) + 0x20, objects_at(i));
    put64(segment_at(i), build_objects(objects_at(i)));
    put64(segment_at(i) + 0x28, flags);
    put64(segment_at(i) + 0x30, next);
}

static void build_vars(bool regions)
{
    put64(DAC_TABLE + 8 * 19, VARS_VARIABLE);
    put64(VARS_VARIABLE, VARS);
    put32(VARS, 0x0402); /* 2.4 */
    put64(VARS + 0x08, GENERATION_BYTES);
    put64(VARS + 0x10, HEAP_GENERATIONS);
    put64(VARS + 0x30, GENERATIONS);
    put64(VARS + 0x50, EPHEMERAL);
    put64(VARS + 0x78, ALLOCATED);
    put64(VARS + 0xb0, HEAP_COUNT);
    put64(VARS + 0xb8, HEAP_TABLE);
    put64(VARS + 0xc0, COUNTER);
    put64(VARS + 0xf0, HEAP_FIELDS);
    put64(VARS + 0xf8, GENERATION_FIELDS);
    put32(GENERATION_FIELDS + 4, 0x38);
    put32(GENERATION_FIELDS + 8, regions ? UINT32_MAX : 0x40);
    put32(HEAP_FIELDS, 0x10);
    put32(HEAP_FIELDS + 4, 0x18);
    put32(HEAP_FIELDS + 4 * 18, 0x200);
}

/* Generations 0 to 4 have segments 0 to 4; one more behind the third, which is frozen. */
static void build_regions(uint64_t generations)
{
    for (unsigned g = 0; g < HEAP_GENERATIONS; g++) {
        put64(generations + (uint64_t)GENERATION_BYTES * g + 0x38, segment_at(g));
        build_segment(g, g == 2 ? segment_at(5) : 0, 0);
    }
    build_segment(5, 0, 1);
}

static void build(bool regions)
{
    memset(bytes, 0, sizeof bytes);
    flat.size = BYTES;
    build_type(PLAIN, 24, 0, CLASSES);
    build_type(ARRAY, 24, 4, CLASSES + 0x100);
    build_type(FREE, 24, 1, 0);
    build_vars(regions);
    build_regions(GENERATIONS);
}

struct fixture {
    struct memory_mapping mapping;
    struct memory memory;
    struct memory_pages pages;
    struct managed_threads threads;
    struct managed_thread thread;
    struct loaded_types types;
    struct heap_map map;
    struct heap_walk_result result;
    uint64_t visited, sum;
};

static bool want_plain(void *user, uint32_t number, const struct heap_type *type)
{
    (void)user;
    (void)number;
    return type->table == PLAIN;
}

static void visit(void *user, const struct heap_object *object)
{
    struct fixture *f = user;
    f->visited++;
    f->sum += object->addr;
    assert_int_equal(object->bytes.size, object->size_bytes);
    assert_true(object->addr >= OBJECTS && object->addr < BASE + BYTES);
}

/* False when no map is found. */
static bool walk(struct fixture *f)
{
    *f = (struct fixture){ .mapping = { .start = BASE, .end = BASE + BYTES, .writable = true, .path = "" },
                           .thread = f->thread };
    f->memory = (struct memory){ flat_memory_read, &flat, &f->mapping, 1, false };
    memory_pages_init(&f->pages, &f->memory, 1 << 20);
    f->threads = (struct managed_threads){ .table = DAC_TABLE, .items = &f->thread, .count = 1 };
    loaded_types_init(&f->types, &f->pages, &runtime_layouts[0], NULL);
    bool found = heap_map_open(&f->pages, &f->threads, &f->map, NULL) &&
                 heap_map_read(&f->map, &f->pages, &f->threads, NULL);
    if (found) {
        struct heap_visitor visitor = { want_plain, visit, f };
        heap_walk_run(&f->types, &f->map, &visitor, clock_monotonic_ns() + UINT64_C(1000000000), &f->result);
    }
    return found;
}

static void done(struct fixture *f)
{
    heap_map_done(&f->map);
    loaded_types_done(&f->types);
    memory_pages_done(&f->pages);
}

static void test_regions(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    build(true);
    assert_true(walk(&f));
    assert_true(heap_map_is_walkable(&f.map, &f.memory));
    assert_true(f.map.regions && !f.map.heaps && !f.map.cut);
    assert_int_equal(f.map.segment_count, 6);
    assert_int_equal(f.map.segments[4].generation, HEAP_GENERATION_PINNED);
    assert_true(f.map.segments[5].frozen && f.map.segments[5].generation == 2);
    assert_int_equal(f.result.objects, 12);
    assert_int_equal(f.result.free_bytes, 6 * 40);
    assert_int_equal(f.result.bytes, 6 * 64);
    assert_int_equal(f.visited, 6);
    assert_int_equal(heap_map_bytes(&f.map), 6 * FEW_BYTES);
    done(&f);
    put32(COUNTER, 1);
    assert_true(walk(&f));
    assert_false(heap_map_is_walkable(&f.map, &f.memory));
    done(&f);
}

static void test_segments(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    build(false);
    put64(EPHEMERAL, segment_at(2)); /* ends where is allocated, whatever it says itself */
    put64(ALLOCATED, objects_at(2) + 64);
    assert_true(walk(&f));
    assert_false(f.map.regions);
    assert_int_equal(f.map.segment_count, 4); /* 0 to 2 are in the list of the third */
    assert_int_equal(f.result.objects, 7);
    done(&f);
}

static void test_server(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    build(true);
    put32(HEAP_COUNT, 2);
    put64(HEAP_TABLE, HEAPS + 0x800);
    for (unsigned i = 0; i < 2; i++) {
        put64(HEAPS + 0x800 + 8 * i, HEAPS + 0x1000u * (i + 1));
        put64(HEAPS + 0x1000u * (i + 1) + 0x200 + 0x38, segment_at(i));
    }
    put64(HEAPS + 0x1000 + 0x18, segment_at(0));
    put64(HEAPS + 0x1000 + 0x10, objects_at(0) + 24);
    assert_true(walk(&f));
    assert_int_equal(f.map.heaps, 2);
    assert_int_equal(f.map.segment_count, 2);
    assert_int_equal(f.result.objects, 3);
    done(&f);
}

/* Where a thread allocates nothing is; nor where an object is being made, or memory is cleared. */
static void test_gaps(void **state)
{
    (void)state;
    struct fixture f = { .thread = { .allocates_from = objects_at(0) + 24,
                                     .allocates_to = objects_at(0) + 64 } };
    build(true);
    memset(bytes + (objects_at(0) - BASE) + 24, 0xee, 64);
    build_objects(objects_at(0) + 88); /* 24 bytes behind the end are kept free */
    put64(segment_at(0), objects_at(0) + 88 + FEW_BYTES);
    /* zeroes, then an object that is known for one by what follows it */
    put64(segment_at(3), build_objects(objects_at(3) + FEW_BYTES + 800));
    /* zeroes to the end */
    put64(segment_at(1), objects_at(1) + 0x800);
    /* an object being made, ahead of where its thread allocates */
    assert_true(walk(&f));
    assert_int_equal(f.result.objects, 1 + 2 + 2 + 2 + 2 + 2 + 2 + 2);
    assert_int_equal(f.result.unexplained_bytes, 0);
    assert_int_equal(f.result.unused_bytes, 64 + 800 + (0x800 - FEW_BYTES));
    done(&f);
}

static const struct {
    const char *name;
    uint64_t addr, value;
    bool found; /* a map */
    uint64_t objects, unexplained, unreadable;
} wrong[] = {
    { "no generations", VARS + 0x10, 4, false, 0, 0, 0 },
    { "generations of no size", VARS + 0x08, 0, false, 0, 0, 0 },
    { "the counter is nowhere", VARS + 0xc0, 0x100, false, 0, 0, 0 },
    { "a list in a circle", SEGMENTS + 0x530, SEGMENTS + 0x200, true, 12, 0, 0 },
    { "a segment that ends before it begins", SEGMENTS + 0x100, OBJECTS, true, 10, 0, 0 },
    { "a segment that is not aligned", SEGMENTS + 0x120, OBJECTS + 0x1001, true, 10, 0, 0 },
    { "segments that overlap", SEGMENTS + 0x120, OBJECTS + 0x2008, true, 10, 0, 0 },
    { "a segment that ends nowhere", SEGMENTS + 0x500, UINT64_C(1) << 60, true, 12, 0,
      (UINT64_C(1) << 60) - OBJECTS - 0x5000 - FEW_BYTES },
    { "no MethodTable", OBJECTS + 0x2000, 0x4141414141414140, true, 11, 24, 0 },
    { "an array longer than its segment", OBJECTS + 0x2000 + 72, 0xffffffff, true, 11, 40, 0 },
    { "a heap count of the moon", HEAP_COUNT, UINT64_C(0xffffffff), true, 12, 0, 0 },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct fixture f = { 0 };
        build(true);
        put64(HEAP_TABLE, HEAPS);
        put64(wrong[i].addr, wrong[i].value);
        if (walk(&f) != wrong[i].found)
            fail_msg("%s: the map", wrong[i].name);
        if (f.result.objects != wrong[i].objects || f.result.unexplained_bytes != wrong[i].unexplained ||
            f.result.unreadable_bytes != wrong[i].unreadable)
            fail_msg("%s: %lu objects, %lu unexplained, %lu unreadable", wrong[i].name,
                     (unsigned long)f.result.objects, (unsigned long)f.result.unexplained_bytes,
                     (unsigned long)f.result.unreadable_bytes);
        done(&f);
    }
}

/* Types that the JIT makes for continuations have one class, which names one of them. */
static void test_shared_class(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    enum { OTHER = TYPES + 0x300 };
    build(true);
    build_type(OTHER, 32, 0, CLASSES);
    assert_true(walk(&f));
    assert_int_equal(f.visited, 6);
    done(&f);
    put64(OTHER + 0x28, CLASSES + 0x200); /* that one has another class: PLAIN is no type */
    assert_true(walk(&f));
    assert_int_equal(f.visited, 0);
    assert_true(f.result.unexplained_bytes > 0);
    done(&f);
}

/* Memory that ends anywhere: less is found, and what is missing is said. */
static void test_cut(void **state)
{
    (void)state;
    build(true);
    for (flat.size = 0; flat.size < BYTES; flat.size += 0x80) {
        struct fixture f = { 0 };
        if (walk(&f))
            assert_true(f.result.objects == 12 ||
                        f.result.unreadable_bytes + f.result.unexplained_bytes > 0 || f.map.cut ||
                        f.map.segment_count < 6);
        done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),      cmocka_unit_test(test_segments), cmocka_unit_test(test_server),
        cmocka_unit_test(test_gaps),         cmocka_unit_test(test_wrong),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_shared_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
