/*
 * layout_ways: compares the ways to the layout of a process's runtime with one another.
 *
 * Usage: layout_ways PID, of a process that is stopped. Opens its memory as the product does, and once more
 * with nothing known of its version, so that the layout is derived; then says on stdout, one line each: how
 * each way went, each number of the layout that differs, and how many names are equal. Exit code 1 when a
 * number or a name differs. What nothing in the process speaks for is no difference; it is told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/target_root.h"
#include "clr/code_walk.h"
#include "collect/live_memory.h"
#include "root_files.h"

#define NUMBER(member)                                                                                       \
    {                                                                                                        \
#member, offsetof(struct runtime_layout, member), sizeof(((struct runtime_layout *)0)->member)       \
    }
static const struct {
    const char *name;
    size_t offset, size;
} numbers[] = {
    NUMBER(list),
    NUMBER(constant),
    NUMBER(remainder_bits),
    NUMBER(type_row_bytes),
    NUMBER(section.begin),
    NUMBER(section.end),
    NUMBER(section.next),
    NUMBER(section.flags),
    NUMBER(section.module),
    NUMBER(section.heap),
    NUMBER(section.ranges),
    NUMBER(fragment.next),
    NUMBER(fragment.begin),
    NUMBER(fragment.end),
    NUMBER(fragment.section),
    NUMBER(heap.start),
    NUMBER(heap.end),
    NUMBER(heap.base),
    NUMBER(heap.map),
    NUMBER(header.method),
    NUMBER(header.unwind_count),
    NUMBER(header.unwinds),
    NUMBER(method.remainder),
    NUMBER(method.chunk_index),
    NUMBER(method.flags),
    NUMBER(method.code_data),
    NUMBER(chunk.size),
    NUMBER(chunk.table),
    NUMBER(chunk.length),
    NUMBER(chunk.range),
    NUMBER(generic.count),
    NUMBER(generic.arguments),
    NUMBER(dynamic.signature),
    NUMBER(dynamic.signature_size),
    NUMBER(dynamic.flags),
    NUMBER(dynamic.name),
    NUMBER(dynamic.resolver),
    NUMBER(dynamic.of_program),
    NUMBER(dynamic.of_runtime),
    NUMBER(table.flags),
    NUMBER(table.type_row),
    NUMBER(table.virtuals),
    NUMBER(table.module),
    NUMBER(table.class_or_canonical),
    NUMBER(table.instance),
    NUMBER(class_table),
    NUMBER(module.file),
    NUMBER(module.emitted),
    NUMBER(module.emitted_in_buffer),
    NUMBER(image.flat),
    NUMBER(image.loaded),
    NUMBER(version.state),
    NUMBER(version.first),
    NUMBER(version.code),
    NUMBER(version.next),
    NUMBER(version.tier),
};

static uint32_t number_of(const struct runtime_layout *layout, size_t i)
{
    uint32_t value = 0;
    memcpy(&value, (const char *)layout + numbers[i].offset, numbers[i].size);
    return value;
}

/* How many numbers differ. One that may be missing is only told, with what goes with it. */
static unsigned compare_layouts(const struct runtime_layout *known, const struct runtime_layout *derived)
{
    unsigned differ = 0, equal = 0;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uint32_t want = number_of(known, i), have = number_of(derived, i);
        bool emitted = strncmp(numbers[i].name, "module.emitted", 14) == 0;
        equal += want == have;
        if (want == have)
            continue;
        bool missing = have == LAYOUT_NONE || (emitted && derived->module.emitted == LAYOUT_NONE);
        printf("%s %s: %#x is known, %#x is derived\n", missing ? "missing" : "differs", numbers[i].name,
               want, have);
        differ += !missing;
    }
    printf("numbers: %u of %zu equal, %u differ\n", equal, ARRAY_LEN(numbers), differ);
    return differ;
}

struct named {
    struct code {
        uint64_t begin, end;
        uint8_t kind, tier;
        char *name;
    } * codes;
    size_t count, capacity;
};

static bool note(void *user, const struct found_method *m)
{
    struct named *named = user;
    if (m->kind == FOUND_STUB)
        return true;
    named->codes = mem_grow(named->codes, &named->capacity, named->count + 1, sizeof *named->codes);
    named->codes[named->count++] =
        (struct code){ m->begin, m->end, m->kind, m->tier, mem_copy_string(m->name) };
    return true;
}

static bool list(const struct memory *memory, const struct module_files *files, unsigned ways,
                 struct named *out, struct runtime_layout *out_layout)
{
    struct error err = { 0 };
    struct code_walk *walk;
    uint64_t start_ns = clock_monotonic_ns();
    if (!code_walk_open_by(memory, files, ways, &walk, &err)) {
        printf("error: %s\n", err.what);
        return false;
    }
    const struct code_walk_report *r = code_walk_report(walk);
    double ms = (double)(clock_monotonic_ns() - start_ns) / 1e6;
    code_walk_list(walk, WALK_ALL, note, out);
    printf("way: %s %s, root by %s, %u of %u methods agree, %.1f ms, %" PRIu64 " methods, %" PRIu64
           " dynamic, %" PRIu64 " unnamed\n",
           layout_way_name(r->way), r->layout, runtime_root_way_name(r->root), r->agreed, r->checked, ms,
           r->methods, r->dynamic, r->unnamed);
    *out_layout = *code_walk_layout(walk);
    code_walk_close(walk);
    return true;
}

static bool compare_names(const struct named *known, const struct named *derived)
{
    size_t differ = 0, tiers = 0, unnamed = 0,
           n = known->count < derived->count ? known->count : derived->count;
    for (size_t i = 0; i < n; i++) {
        const struct code *a = &known->codes[i], *b = &derived->codes[i];
        bool same = a->begin == b->begin && a->end == b->end && a->kind == b->kind;
        tiers += a->tier != b->tier;
        unnamed += same && a->name[0] && !b->name[0];
        if (same && (strcmp(a->name, b->name) == 0 || !b->name[0]))
            continue;
        if (differ++ < 5)
            printf("differs %" PRIx64 ": %s, %s\n", a->begin, a->name, b->name);
    }
    printf("names: %zu of %zu and %zu equal, %zu differ, %zu only known, %zu tiers differ\n",
           n - differ - unnamed, known->count, derived->count, differ, unnamed, tiers);
    return differ == 0 && unnamed * 1000 <= n && known->count == derived->count;
}

static void forget(struct named *named)
{
    for (size_t i = 0; i < named->count; i++)
        free(named->codes[i].name);
    free(named->codes);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    struct error err = { 0 };
    struct live_memory *live;
    int root = -1;
    if (!target_root_open(pid, &root, &err) || !live_memory_open(pid, 0, &live, &err)) {
        printf("error: %s\n", err.what);
        return 1;
    }
    struct module_files files = { root_files_open, root_files_close, &root };
    struct named known = { 0 }, derived = { 0 };
    struct runtime_layout known_layout, derived_layout;
    bool ok = list(live_memory_view(live), &files, LAYOUT_ANY_WAY, &known, &known_layout) &&
              list(live_memory_view(live), &files, 1 << LAYOUT_DERIVED, &derived, &derived_layout);
    if (ok) {
        ok = compare_layouts(&known_layout, &derived_layout) == 0;
        ok &= compare_names(&known, &derived);
    }
    forget(&known);
    forget(&derived);
    live_memory_close(live);
    close(root);
    return ok ? 0 : 1;
}
