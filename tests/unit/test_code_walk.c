#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../followed_memory.h"
#include "base/mem.h"
#include "base/memory_snapshot.h"
#include "base/own.h"
#include "base/source.h"
#include "clr/code_walk.h"
#include "clr/nibble_map.h"
#include "read/ecma_metadata.h"
#include "runtime_fixture.h"

enum { SNAPSHOT_BYTES_MAX = 1 << 20 };

static struct runtime_fixture fixture;
static struct buffer assembly, snapshot_bytes;

static int load_assembly(void **state)
{
    (void)state;
    AUTO_FD int fd = open(GOLDEN_DIR "/r2r/tiny/tiny.dll", O_RDONLY | O_CLOEXEC);
    struct source file;
    buffer_init(&assembly, 1 << 16);
    buffer_init(&snapshot_bytes, SNAPSHOT_BYTES_MAX);
    return fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, &file, NULL) &&
                   source_load(&file, 0, file.size, &assembly, NULL)
               ? 0
               : -1;
}

static int free_assembly(void **state)
{
    (void)state;
    buffer_done(&assembly);
    buffer_done(&snapshot_bytes);
    return 0;
}

struct seen {
    unsigned methods, named, dynamic, stubs;
    uint64_t last_begin;
    char first[512], made[512], generic[512], own[512];
};

static bool note(void *user, const struct found_method *m)
{
    struct seen *seen = user;
    assert_true(m->begin > seen->last_begin);
    seen->last_begin = m->begin;
    seen->methods += m->kind == FOUND_METHOD;
    seen->dynamic += m->kind == FOUND_DYNAMIC;
    seen->stubs += m->kind == FOUND_STUB;
    seen->named += m->name[0] != 0;
    if (m->kind == FOUND_METHOD && !seen->first[0])
        snprintf(seen->first, sizeof seen->first, "%s", m->name);
    if (m->generic)
        snprintf(seen->own, sizeof seen->own, "%s", m->name);
    if (m->kind == FOUND_METHOD && strstr(m->name, "Outer`1+Inner`1["))
        snprintf(seen->generic, sizeof seen->generic, "%s", m->name);
    if (m->kind == FOUND_DYNAMIC)
        snprintf(seen->made, sizeof seen->made, "%s", m->name);
    return true;
}

/* The walk over the fixture as it is now; NULL when it is refused. */
static struct code_walk *open_walk(struct memory_snapshot *snapshot, struct error *err)
{
    struct code_walk *walk = NULL;
    buffer_clear(&snapshot_bytes);
    runtime_fixture_write(&fixture, &snapshot_bytes);
    if (!memory_snapshot_open(buffer_span(&snapshot_bytes), snapshot, err))
        fail_msg("%s", err->what);
    if (!code_walk_open(&snapshot->memory, NULL, &walk, err))
        return NULL;
    return walk;
}

static struct code_walk *open_exported(struct memory_snapshot *snapshot)
{
    struct error err;
    runtime_fixture_build(&fixture, &runtime_layouts[1], buffer_span(&assembly), true);
    struct code_walk *walk = open_walk(snapshot, &err);
    assert_non_null(walk);
    return walk;
}

/* The byte that the snapshot has for an address. */
static uint8_t *held_byte(const struct memory_snapshot *snapshot, uint64_t addr)
{
    for (size_t i = 0; i < snapshot->run_count; i++) {
        struct span bytes = snapshot->runs[i].bytes;
        if (addr >= snapshot->runs[i].addr && addr - snapshot->runs[i].addr < bytes.size)
            return snapshot_bytes.data + (bytes.data - snapshot_bytes.data) + (addr - snapshot->runs[i].addr);
    }
    fail_msg("nothing at the address");
    return NULL;
}

static void test_all_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * runtime_layout_count; i++) {
        const struct runtime_layout *layout = &runtime_layouts[i / 2];
        struct memory_snapshot snapshot;
        struct error err;
        bool exported = i % 2 && !layout->list;
        runtime_fixture_build(&fixture, layout, buffer_span(&assembly), exported);
        struct code_walk *walk = open_walk(&snapshot, &err);
        if (!walk)
            fail_msg("%s: %s", layout->name, err.what);
        const struct code_walk_report *report = code_walk_report(walk);
        assert_string_equal(report->layout, layout->name);
        assert_int_equal(report->root, exported ? ROOT_BY_DAC_TABLE : ROOT_BY_SCAN);
        assert_int_equal(report->checked, report->agreed);
        struct seen seen = { 0 };
        assert_true(code_walk_list(walk, WALK_ALL, note, &seen));
        assert_int_equal(seen.methods, FIXTURE_BODIES);
        assert_int_equal(seen.dynamic, 1);
        assert_int_equal(seen.stubs, 1);
        assert_int_equal(seen.named, FIXTURE_BODIES + 2);
        assert_string_equal(seen.made, "dynamicClass::Made(int32)");
        assert_non_null(strstr(seen.first, "::"));
        assert_non_null(strchr(seen.generic, ']'));
        assert_non_null(strstr(seen.own, "]("));
        assert_int_equal(report->broken, 0);
        assert_false(report->cut);
        code_walk_close(walk);
        memory_snapshot_done(&snapshot);
    }
}

static void test_find(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        struct memory_snapshot snapshot;
        struct found_method found;
        struct error err;
        runtime_fixture_build(&fixture, &runtime_layouts[i], buffer_span(&assembly), true);
        struct code_walk *walk = open_walk(&snapshot, &err);
        assert_non_null(walk);
        assert_true(code_walk_find(walk, fixture.first_body, &found));
        assert_int_equal(found.begin, fixture.first_body);
        assert_int_equal(found.end, fixture.first_body + 0x29);
        assert_int_equal(found.token, 0x06000001);
        assert_string_equal(found.module, "tiny");
        assert_string_equal(found.path, "/app/tiny.dll");
        assert_true(code_walk_find(walk, fixture.first_body + 0x28, &found));
        assert_false(code_walk_find(walk, fixture.first_body + 0x29, &found));
        assert_false(code_walk_find(walk, fixture.first_body - 1, &found));
        assert_true(code_walk_find(walk, fixture.dynamic_body + 5, &found));
        assert_string_equal(found.name, "dynamicClass::Made(int32)");
        assert_false(code_walk_find(walk, 0, &found));
        assert_false(code_walk_find(walk, UINT64_MAX, &found));
        code_walk_close(walk);
        memory_snapshot_done(&snapshot);
    }
}

enum { BODY_TIERED, BODY_ONCE, BODY_UNCOUNTED, BODY_NOTED = 4, BODY_DYNAMIC, BODIES };

/* The tiers of some bodies, one by one and as they are listed, which has to be the same. */
struct tiers {
    uint64_t begin[BODIES];
    uint8_t tier[BODIES];
};

static bool note_tier(void *user, const struct found_method *m)
{
    struct tiers *t = user;
    for (size_t i = 0; i < BODIES; i++)
        if (m->begin == t->begin[i])
            t->tier[i] = m->tier;
    return true;
}

static struct tiers find_tiers(const struct memory *memory)
{
    enum { STEP = 0x40 };
    struct tiers listed = { 0 };
    struct code_walk *walk;
    struct error err;
    assert_true(code_walk_open(memory, NULL, &walk, &err));
    for (size_t i = 0; i < BODIES; i++)
        listed.begin[i] = i == BODY_DYNAMIC ? fixture.dynamic_body : fixture.first_body + STEP * i;
    assert_true(code_walk_list(walk, WALK_ALL, note_tier, &listed));
    for (size_t i = 0; i < BODIES; i++) {
        struct found_method found;
        code_walk_renew(walk);
        assert_true(code_walk_find(walk, listed.begin[i], &found));
        assert_int_equal(found.begin, listed.begin[i]);
        assert_int_equal(found.tier, listed.tier[i]);
    }
    code_walk_close(walk);
    return listed;
}

static struct tiers tiers_now(void)
{
    struct memory_snapshot snapshot;
    struct error err;
    buffer_clear(&snapshot_bytes);
    runtime_fixture_write(&fixture, &snapshot_bytes);
    assert_true(memory_snapshot_open(buffer_span(&snapshot_bytes), &snapshot, &err));
    struct tiers tiers = find_tiers(&snapshot.memory);
    memory_snapshot_done(&snapshot);
    return tiers;
}

/* The runtime notes that the body of a method is of tier 1. */
static void add_note(const struct runtime_layout *l, uint64_t method, uint64_t body)
{
    uint64_t data = FIXTURE_DATA + fixture.used, state = data + 0x20, version = data + 0x40;
    fixture.used += 0x80;
    runtime_fixture_put(&fixture, method + l->method.code_data, data, 8);
    runtime_fixture_put(&fixture, data + l->version.state, state, 8);
    runtime_fixture_put(&fixture, state + l->version.first, version, 8);
    runtime_fixture_put(&fixture, version + l->version.code, body, 8);
    runtime_fixture_put(&fixture, version + l->version.tier, 1, 4);
}

static void test_tiers(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        const struct runtime_layout *l = &runtime_layouts[i];
        bool notes = l->version.first != LAYOUT_NONE, told = l->tiered_bit;
        runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
        if (notes) {
            add_note(l, fixture.methods[BODY_NOTED], fixture.first_body + UINT64_C(0x40) * BODY_NOTED);
            runtime_fixture_put(&fixture, fixture.stages[BODY_UNCOUNTED], 4, 1);
        }
        struct tiers t = tiers_now();
        assert_int_equal(told, !l->list);
        assert_int_equal(t.tier[BODY_TIERED], notes ? FOUND_TIER_0 : FOUND_TIER_UNKNOWN);
        assert_int_equal(t.tier[BODY_NOTED], notes ? FOUND_TIER_1 : FOUND_TIER_UNKNOWN);
        assert_int_equal(t.tier[BODY_UNCOUNTED], notes ? FOUND_TIER_OPTIMIZED : FOUND_TIER_UNKNOWN);
        assert_int_equal(t.tier[BODY_ONCE], told ? FOUND_TIER_OPTIMIZED : FOUND_TIER_UNKNOWN);
        assert_int_equal(t.tier[BODY_DYNAMIC], told ? FOUND_TIER_OPTIMIZED : FOUND_TIER_UNKNOWN);
    }
}

/* A debugger wants the module's code as it is written. */
static void test_module_is_not_optimized(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        const struct runtime_layout *l = &runtime_layouts[i];
        runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
        if (l->module.flags != LAYOUT_NONE)
            runtime_fixture_put(&fixture, fixture.module + l->module.flags, 0x9011, 4);
        struct tiers t = tiers_now();
        uint8_t expected = l->tiered_bit ? FOUND_TIER_0 : FOUND_TIER_UNKNOWN;
        assert_int_equal(t.tier[BODY_ONCE], expected);
        assert_int_equal(t.tier[BODY_DYNAMIC], expected);
    }
}

/* MethodImplOptions.NoOptimization of one method, in the file's metadata. */
static void test_method_is_not_optimized(void **state)
{
    (void)state;
    struct ecma_metadata md;
    const uint8_t *root = memmem(assembly.data, assembly.size, "BSJB", 4);
    assert_non_null(root);
    size_t at = (size_t)(root - assembly.data);
    assert_true(ecma_metadata_open(span_of(root, assembly.size - at), &md, NULL));
    const struct ecma_table *methods = &md.tables[ECMA_METHOD_DEF];
    size_t step = ecma_rows(&md, ECMA_METHOD_DEF) / 118 | 1;
    uint8_t *flags = assembly.data + (methods->rows - assembly.data) + step * methods->row_size +
                     methods->offsets[ECMA_METHOD_DEF_IMPL_FLAGS];
    *flags ^= 0x40;
    runtime_fixture_build(&fixture, &runtime_layouts[0], buffer_span(&assembly), true);
    struct tiers t = tiers_now();
    *flags ^= 0x40;
    assert_int_equal(t.tier[BODY_ONCE], FOUND_TIER_0);
    assert_int_equal(t.tier[BODY_DYNAMIC], FOUND_TIER_OPTIMIZED);
}

/* A record that does not agree with metadata has no tier from there. */
static void test_wrong_record_has_no_tier(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct found_method found;
    struct code_walk *walk = open_exported(&snapshot);
    *held_byte(&snapshot, fixture.methods[1]) = (uint8_t)fixture.method_count;
    code_walk_renew(walk);
    assert_true(code_walk_find(walk, fixture.first_body + 0x40, &found));
    assert_string_equal(found.name, "");
    assert_int_equal(found.tier, FOUND_TIER_UNKNOWN);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/* A running process is asked for all that a piece of code leads to at once. */
static void test_follow(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        struct memory_snapshot snapshot;
        struct followed_memory followed;
        struct found_method found, other;
        struct error err;
        runtime_fixture_build(&fixture, &runtime_layouts[i], buffer_span(&assembly), true);
        struct code_walk *walk = open_walk(&snapshot, &err), *ahead;
        followed_memory_init(&followed, &snapshot.memory);
        assert_true(code_walk_open(&followed.memory, NULL, &ahead, &err));
        assert_true(code_walk_find(walk, fixture.first_body, &found));
        assert_true(code_walk_find(ahead, fixture.first_body, &other));
        assert_int_equal(other.begin, found.begin);
        assert_int_equal(other.end, found.end);
        assert_int_equal(other.method_id, found.method_id);
        assert_string_equal(other.name, found.name);
        uint64_t since = code_walk_types(ahead)->pages->reads;
        size_t paths = followed.paths;
        code_walk_follow(ahead, since, fixture.first_body); /* what was read is too old */
        uint8_t word[8];
        assert_int_equal(followed.paths, paths + 1);
        assert_true(memory_pages_read_since(code_walk_types(ahead)->pages, since, fixture.first_body - 8,
                                            word, sizeof word));
        code_walk_close(ahead);
        code_walk_close(walk);
        memory_snapshot_done(&snapshot);
    }
}

static void test_list_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        struct memory_snapshot snapshot;
        struct error err;
        struct seen seen = { 0 };
        runtime_fixture_build(&fixture, &runtime_layouts[i], buffer_span(&assembly), true);
        struct code_walk *walk = open_walk(&snapshot, &err);
        assert_non_null(walk);
        const uint64_t addrs[] = { 0,
                                   fixture.first_body - 1,
                                   fixture.first_body + 1,
                                   fixture.first_body + 2,
                                   fixture.first_body + 0x29, /* behind its end */
                                   fixture.first_body + 0x40,
                                   fixture.dynamic_body + 1,
                                   UINT64_MAX };
        assert_true(code_walk_list_at(walk, addrs, ARRAY_LEN(addrs), note, &seen));
        assert_int_equal(seen.methods, 2);
        assert_int_equal(seen.dynamic, 1);
        assert_int_equal(seen.named, 3);
        code_walk_close(walk);
        memory_snapshot_done(&snapshot);
    }
}

/* Rows that do not belong to the types: the layout is wrong, and no name is told. */
static void test_wrong_layout_is_refused(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct error err;
    runtime_fixture_build(&fixture, &runtime_layouts[0], buffer_span(&assembly), true);
    for (uint32_t i = 0; i < fixture.method_count; i++)
        runtime_fixture_put(&fixture, fixture.methods[i], (i + 7) % fixture.method_count + 1, 2);
    assert_null(open_walk(&snapshot, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.what, "no known layout fits"));
    memory_snapshot_done(&snapshot);
}

/* One record that is wrong among many right ones has no name. */
static void test_wrong_record_has_no_name(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct found_method found;
    struct code_walk *walk = open_exported(&snapshot);
    uint8_t *row = held_byte(&snapshot, fixture.methods[0]);
    *row = (uint8_t)fixture.method_count;
    code_walk_renew(walk);
    assert_true(code_walk_find(walk, fixture.first_body, &found));
    assert_string_equal(found.name, "");
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

static uint64_t built_word(uint64_t addr)
{
    return load_u64le(fixture.data + (addr - FIXTURE_DATA));
}

static bool count_nested(void *user, const struct found_method *m)
{
    assert_null(strstr(m->name, "Outer`1+Inner`1["));
    *(unsigned *)user += strstr(m->name, "Outer`1+Inner`1::") != NULL;
    return true;
}

/* What lay where the record of a region was has become of other use: the record begins elsewhere now. */
static void test_freed_range_hides_no_other(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct found_method found;
    uint64_t second = FIXTURE_CODE + (1 << 17), record = FIXTURE_DATA;
    struct code_walk *walk = open_exported(&snapshot);
    while (built_word(record) != second)
        record += 8;
    *held_byte(&snapshot, record + 4) = (uint8_t)(FIXTURE_DATA >> 32);
    code_walk_renew(walk);
    assert_true(code_walk_find(walk, fixture.first_body, &found));
    assert_string_not_equal(found.name, "");
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/* A small dump has the methods on its stacks, not all types that theirs are of. */
static void test_types_of_which_arguments_are_missing(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct error err;
    unsigned nested = 0;
    const struct runtime_layout *l = &runtime_layouts[1];
    runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
    for (size_t row = 0; row < ARRAY_LEN(fixture.table); row++) {
        uint64_t table = fixture.table[row];
        if (table && (built_word(table + l->table.flags) & 0x30) == 0x10)
            runtime_fixture_put(&fixture, built_word(built_word(table + l->table.instance)), 0x7f5000000000,
                                8);
    }
    struct code_walk *walk = open_walk(&snapshot, &err);
    assert_non_null(walk);
    assert_true(code_walk_list(walk, WALK_ALL, count_nested, &nested));
    assert_true(nested > 0);
    assert_int_equal(code_walk_report(walk)->unnamed, 0);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/* Hot reload gives a type methods that its file does not have. */
static void test_added_method(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct found_method found;
    struct code_walk *walk = open_exported(&snapshot);
    const struct runtime_layout *l = fixture.layout;
    uint64_t method = fixture.methods[0];
    assert_true(code_walk_find(walk, fixture.first_body, &found));
    char wanted[200];
    const char *colon = strstr(found.name, "::");
    assert_non_null(colon);
    snprintf(wanted, sizeof wanted, "%.*s::[added-0x0600%04x]()", (int)(colon - found.name), found.name,
             (1u << l->remainder_bits) - 1);
    held_byte(&snapshot, method + l->method.remainder)[0] = 0xff;
    held_byte(&snapshot, method + l->method.remainder)[1] |= (uint8_t)((1u << (l->remainder_bits - 8)) - 1);
    code_walk_renew(walk);
    assert_true(code_walk_find(walk, fixture.first_body, &found));
    assert_string_equal(found.name, wanted);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/* Every copy in memory of what begins at `from` in the assembly gets other bytes. */
static void replace_held(struct span from, const char *with)
{
    uint8_t *at = snapshot_bytes.data, *end = at + snapshot_bytes.size;
    size_t count = 0;
    while ((at = memmem(at, (size_t)(end - at), from.data, from.size))) {
        memcpy(at, with, from.size);
        count++;
    }
    assert_true(count > 0);
}

/* Another assembly is where one was: it is read when it is asked for, however it was forgotten. */
static void test_module_in_place_of_another(void **state)
{
    (void)state;
    static const char other_mvid[] = "other-assembly!!";
    for (int i = 0; i < 2; i++) {
        struct memory_snapshot snapshot;
        struct found_method found;
        struct ecma_metadata md;
        const uint8_t *root = memmem(assembly.data, assembly.size, "BSJB", 4);
        assert_non_null(root);
        assert_true(
            ecma_metadata_open(span_of(root, assembly.size - (size_t)(root - assembly.data)), &md, NULL));
        struct span mvid = ecma_mvid(&md);
        assert_int_equal(mvid.size, sizeof other_mvid - 1);
        struct code_walk *walk = open_exported(&snapshot);
        void (*forget)(struct code_walk *) = i ? code_walk_forget : code_walk_renew;
        assert_true(code_walk_find(walk, fixture.first_body, &found));
        char *name = mem_copy_string(found.name), *method = strstr(name, "::") + 2;
        size_t length = strcspn(method, "(");
        char wanted[64] = "Xyzzyxyzzyxyzzyxyzzyxyzzyxyzzy";
        assert_in_range(length, 1, 30);
        wanted[length] = 0;
        replace_held(span_of(method, length), wanted);
        forget(walk);
        assert_true(code_walk_find(walk, fixture.first_body, &found));
        assert_string_equal(found.name, name); /* the same, as far as its id tells */
        replace_held(mvid, other_mvid);
        forget(walk);
        assert_true(code_walk_find(walk, fixture.first_body, &found));
        assert_non_null(strstr(found.name, wanted));
        free(name);
        code_walk_close(walk);
        memory_snapshot_done(&snapshot);
    }
}

/* What lies where code was is as before, and its record is that of the next method: it is not told for the
 * old one, though its place was read when that was there. */
static void test_freed_code_has_no_name(void **state)
{
    (void)state;
    struct memory_snapshot snapshot;
    struct found_method found;
    struct code_walk *walk = open_exported(&snapshot);
    assert_true(code_walk_find(walk, fixture.dynamic_body, &found));
    assert_string_equal(found.name, "dynamicClass::Made(int32)");
    memset(held_byte(&snapshot, fixture.dynamic_mark), 0, 4);
    assert_true(code_walk_find(walk, fixture.dynamic_body, &found));
    assert_string_equal(found.name, "");
    code_walk_renew(walk);
    assert_false(code_walk_find(walk, fixture.dynamic_body, &found) && found.kind == FOUND_DYNAMIC);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/* Two more heaps of 2 GiB each: their maps are more than we read, which is said; the rest is still named. */
static void test_huge_heaps(void **state)
{
    (void)state;
    const uint64_t head = FIXTURE_RUNTIME + 0x4800, huge = UINT64_C(1) << 31;
    const struct runtime_layout *l = &runtime_layouts[runtime_layout_count - 1];
    struct memory_snapshot snapshot;
    struct error err;
    assert_true(l->list);
    runtime_fixture_build(&fixture, l, buffer_span(&assembly), false);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t begin = FIXTURE_CODE + (i + 1) * huge, section = FIXTURE_DATA + fixture.used,
                 node = section + 0x60;
        fixture.used += 0xa0;
        runtime_fixture_put(&fixture, section + l->section.begin, begin, 8);
        runtime_fixture_put(&fixture, section + l->section.end, begin + huge, 8);
        runtime_fixture_put(&fixture, section + l->section.flags, 2, 4);
        runtime_fixture_put(&fixture, section + l->section.heap, node, 8);
        runtime_fixture_put(&fixture, section + l->section.next,
                            load_u64le(fixture.runtime + (head - FIXTURE_RUNTIME)), 8);
        runtime_fixture_put(&fixture, node + l->heap.start, begin, 8);
        runtime_fixture_put(&fixture, node + l->heap.end, begin + huge, 8);
        runtime_fixture_put(&fixture, node + l->heap.base, begin, 8);
        runtime_fixture_put(&fixture, node + l->heap.map, FIXTURE_DATA, 8);
        runtime_fixture_put(&fixture, head, section, 8);
    }
    struct code_walk *walk = open_walk(&snapshot, &err);
    if (!walk)
        fail_msg("%s", err.what);
    struct seen seen = { 0 };
    assert_true(code_walk_list(walk, WALK_COLLECTIBLE, note, &seen));
    assert_true(code_walk_report(walk)->cut);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

/*
 * Data made to keep the scan busy: 8192 words that may be a map, each with 16 million blocks of nothing
 * below.
 */
static uint64_t busy_word(uint64_t addr)
{
    enum { BLOCK_BYTES = 0x800, BLOCKS = 3 };
    if (addr < FIXTURE_DATA)
        return addr % BLOCK_BYTES ? 0 : FIXTURE_DATA;
    uint64_t block = (addr - FIXTURE_DATA) / BLOCK_BYTES;
    return block < BLOCKS ? FIXTURE_DATA + (block + 1) * BLOCK_BYTES : 0;
}

static void read_busy(void *user, struct memory_piece *pieces, size_t count)
{
    (void)user;
    for (size_t i = 0; i < count; i++) {
        uint8_t *into = pieces[i].into;
        for (size_t at = 0; at < pieces[i].size; at++)
            into[at] =
                (uint8_t)(busy_word((pieces[i].addr + at) & ~UINT64_C(7)) >> 8 * ((pieces[i].addr + at) % 8));
        pieces[i].got = pieces[i].size;
    }
}

static void test_scan_gives_up(void **state)
{
    (void)state;
    static char path[] = "/a/libcoreclr.so", none[] = "";
    struct memory_mapping mappings[] = {
        { .start = FIXTURE_RUNTIME,
          .end = FIXTURE_RUNTIME + (16 << 20),
          .readable = true,
          .writable = true,
          .inode = 1,
          .path = path },
        { .start = FIXTURE_DATA,
          .end = FIXTURE_DATA + 0x10000,
          .readable = true,
          .writable = true,
          .path = none },
    };
    struct memory memory = { .mappings = mappings, .mapping_count = ARRAY_LEN(mappings), .read = read_busy };
    struct code_walk *walk;
    struct error err;
    clock_t begin = clock();
    assert_false(code_walk_open(&memory, NULL, &walk, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_true(clock() - begin < (clock_t)20 * CLOCKS_PER_SEC);
}

static void test_no_runtime(void **state)
{
    (void)state;
    static const uint8_t empty[] = "CLRPMEM1\0\0\0\0\0\0\0";
    struct memory_snapshot snapshot;
    struct code_walk *walk;
    struct error err;
    assert_true(memory_snapshot_open(span_of(empty, 16), &snapshot, &err));
    assert_false(code_walk_open(&snapshot.memory, NULL, &walk, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    memory_snapshot_done(&snapshot);
}

/* Cut at many places: what is missing is not there, and that is all. */
static void test_cut(void **state)
{
    (void)state;
    struct buffer whole;
    buffer_init(&whole, SNAPSHOT_BYTES_MAX);
    runtime_fixture_build(&fixture, &runtime_layouts[0], buffer_span(&assembly), true);
    runtime_fixture_write(&fixture, &whole);
    for (size_t size = 0; size < whole.size; size += size < 400 ? 1 : 4099) {
        struct memory_snapshot snapshot;
        struct error err;
        assert_false(memory_snapshot_open(span_of(whole.data, size), &snapshot, &err));
    }
    for (size_t keep = 0; keep < 400; keep += 7) { /* memory that ends */
        struct memory_snapshot snapshot;
        struct code_walk *walk;
        struct error err;
        assert_true(memory_snapshot_open(buffer_span(&whole), &snapshot, &err));
        if (keep < snapshot.run_count)
            snapshot.run_count = keep;
        if (code_walk_open(&snapshot.memory, NULL, &walk, &err)) {
            struct seen seen = { 0 };
            code_walk_list(walk, WALK_ALL, note, &seen);
            code_walk_close(walk);
        }
        memory_snapshot_done(&snapshot);
    }
    buffer_done(&whole);
}

static void test_nibble_map(void **state)
{
    (void)state;
    /* a start at byte 4; one at 0x124; a number that a method covers, which began at 0x124 */
    static const uint8_t map[] = { 0, 0, 0, 0x20, 0, 0, 0, 0x02, 0x2a, 0x01, 0, 0, 0, 0, 0, 0 };
    struct span span = span_of(map, sizeof map);
    uint64_t at = 0, start;
    assert_true(nibble_map_next(span, true, &at));
    assert_int_equal(at, 4);
    at++;
    assert_true(nibble_map_next(span, true, &at));
    assert_int_equal(at, 0x124);
    at++;
    assert_false(nibble_map_next(span, true, &at));
    assert_true(nibble_map_is_constant(span));
    assert_false(nibble_map_is_constant(span_part(span, 0, 8)));
    assert_false(nibble_map_find(span, true, 3, &start));
    assert_true(nibble_map_find(span, true, 0x123, &start));
    assert_int_equal(start, 4);
    assert_true(nibble_map_find(span, true, 0x2ff, &start));
    assert_int_equal(start, 0x124);
    assert_true(nibble_map_find(span, true, 0x300, &start));
    assert_int_equal(start, 0x124);
    assert_false(nibble_map_find(span, true, 0x400, &start));
    assert_true(nibble_map_find(span_part(span, 0, 8), false, 0x1ff, &start));
    assert_int_equal(start, 0x124);
    assert_true(nibble_map_starts(0x20000000, 4));
    assert_false(nibble_map_starts(0x20000000, 0));
    assert_false(nibble_map_starts(0x20000000, 0x24));
    assert_true(nibble_map_starts(0x02000000, 0x24));
    assert_false(nibble_map_starts(0x12a, 0xe4)); /* a pointer */
    assert_false(nibble_map_starts(0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_layouts),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_module_is_not_optimized),
        cmocka_unit_test(test_method_is_not_optimized),
        cmocka_unit_test(test_wrong_record_has_no_tier),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_list_at),
        cmocka_unit_test(test_wrong_layout_is_refused),
        cmocka_unit_test(test_wrong_record_has_no_name),
        cmocka_unit_test(test_freed_range_hides_no_other),
        cmocka_unit_test(test_types_of_which_arguments_are_missing),
        cmocka_unit_test(test_added_method),
        cmocka_unit_test(test_module_in_place_of_another),
        cmocka_unit_test(test_freed_code_has_no_name),
        cmocka_unit_test(test_huge_heaps),
        cmocka_unit_test(test_scan_gives_up),
        cmocka_unit_test(test_no_runtime),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_nibble_map),
    };
    return cmocka_run_group_tests(tests, load_assembly, free_assembly);
}
