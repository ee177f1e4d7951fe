#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/stub_kinds.h"
#include "trace/builder.h"

enum { HEAP = 0x7f0000000000, STUB_AT = 0x100, METHOD_AT = 0x400, HEAP_BYTES = 0x1000, SAMPLES = 300 };

/* A heap with a fixup precode at STUB_AT and a prolog at METHOD_AT. */
struct heap {
    struct memory memory;
    uint8_t bytes[HEAP_BYTES];
    bool gone;
    size_t reads;
};

static void read_heap(void *user, struct memory_piece *pieces, size_t count)
{
    struct heap *heap = user;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = pieces[i].addr - HEAP;
        heap->reads += pieces[i].size != 0;
        pieces[i].got = heap->gone || at >= HEAP_BYTES ? 0 : pieces[i].size;
        if (pieces[i].got > HEAP_BYTES - at)
            pieces[i].got = HEAP_BYTES - at;
        if (pieces[i].got)
            memcpy(pieces[i].into, heap->bytes + at, pieces[i].got);
    }
}

static void heap_init(struct heap *heap)
{
    static const uint8_t precode[] = { 0xff, 0x25, 0xfa, 0x3f, 0,    0,    0x4c, 0x8b, 0x15, 0xfb,
                                       0x3f, 0,    0,    0xff, 0x25, 0xfd, 0x3f, 0,    0,    0x90 };
    static const uint8_t prolog[] = { 0x55, 0x48, 0x89, 0xe5, 0x90 };
    *heap = (struct heap){ 0 };
    heap->memory = (struct memory){ .read = read_heap, .user = heap };
    memset(heap->bytes, 0xcc, sizeof heap->bytes);
    memcpy(heap->bytes, precode, sizeof precode); /* nothing can be read before it */
    memcpy(heap->bytes + STUB_AT, precode, sizeof precode);
    memcpy(heap->bytes + METHOD_AT, prolog, sizeof prolog);
}

/* A process whose heap is mapped; its row. */
static uint32_t start(struct trace_builder *b, enum image_kind kind)
{
    static const char path[] = "/memfd:doublemapper (deleted)";
    trace_builder_init(b, 64);
    uint32_t process = trace_builder_process_start(b, 7, 1);
    uint32_t image = trace_builder_image(b, span_of(path, sizeof path - 1), kind, 0, 0, 0);
    trace_builder_mapping(b, process, HEAP, HEAP_BYTES, 0, image, 1);
    return process;
}

static uint32_t leaf_location(struct trace_builder *b, uint64_t addr)
{
    struct raw_sample raw = {
        .time_ns = 2, .weight = 1, .user = &addr, .user_count = 1, .pid = 7, .tid = 7, .end = STACK_WHOLE
    };
    uint32_t stack = trace_builder_sample(b, &raw);
    return b->trace.stacks.rows[stack].location;
}

static const char *stub_of(const struct trace_builder *b, uint32_t location)
{
    return trace_string(&b->trace, b->trace.locations.rows[location].stub);
}

static void test_stub_is_kept_when_its_process_ends(void **state)
{
    (void)state;
    struct heap heap;
    struct trace_builder b;
    heap_init(&heap);
    uint32_t process = start(&b, IMAGE_JIT);
    uint32_t stub = leaf_location(&b, HEAP + STUB_AT + 6), method = leaf_location(&b, HEAP + METHOD_AT);
    struct stub_kinds *kinds = stub_kinds_new(&b.trace);
    stub_kinds_update(kinds, process, &heap.memory);
    heap.gone = true;
    uint32_t late = leaf_location(&b, HEAP + STUB_AT);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_string_equal(stub_of(&b, stub), "[fixup precode]");
    assert_string_equal(stub_of(&b, method), "");
    assert_string_equal(stub_of(&b, late), "");
    stub_kinds_free(kinds);
    trace_builder_done(&b);
}

/* Its page is there, the one before it is not. */
static void test_first_stub_of_a_heap(void **state)
{
    (void)state;
    struct heap heap;
    struct trace_builder b;
    heap_init(&heap);
    uint32_t process = start(&b, IMAGE_JIT);
    uint32_t first = leaf_location(&b, HEAP + 6);
    struct stub_kinds *kinds = stub_kinds_new(&b.trace);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_string_equal(stub_of(&b, first), "[fixup precode]");
    stub_kinds_free(kinds);
    trace_builder_done(&b);
}

/* What was looked at when it was sampled needs not be there when its location is made. */
static void test_stub_is_gone_before_its_location(void **state)
{
    (void)state;
    struct heap heap;
    struct trace_builder b;
    heap_init(&heap);
    uint32_t process = start(&b, IMAGE_JIT);
    struct stub_kinds *kinds = stub_kinds_new(&b.trace);
    assert_true(stub_kinds_look(kinds, process, HEAP + STUB_AT + 6, &heap.memory));
    assert_true(stub_kinds_look(kinds, process, HEAP + METHOD_AT, &heap.memory));
    size_t reads = heap.reads;
    assert_true(stub_kinds_look(kinds, process, HEAP + STUB_AT + 6, &heap.memory));
    assert_int_equal(heap.reads, reads);
    heap.gone = true;
    assert_false(stub_kinds_look(kinds, process, HEAP + STUB_AT, &heap.memory));
    assert_true(stub_kinds_look(kinds, process, 5, &heap.memory)); /* nothing can be before it */
    uint32_t stub = leaf_location(&b, HEAP + STUB_AT + 6), method = leaf_location(&b, HEAP + METHOD_AT);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_string_equal(stub_of(&b, stub), "[fixup precode]");
    assert_string_equal(stub_of(&b, method), "");
    stub_kinds_free(kinds);
    trace_builder_done(&b);
}

/* Cut off before the instruction in question: nothing is told. */
static void test_code_at_the_end_of_a_heap(void **state)
{
    (void)state;
    struct heap heap;
    struct trace_builder b;
    heap_init(&heap);
    uint32_t process = start(&b, IMAGE_JIT);
    uint32_t last = leaf_location(&b, HEAP + HEAP_BYTES - 1);
    struct stub_kinds *kinds = stub_kinds_new(&b.trace);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_string_equal(stub_of(&b, last), "");
    stub_kinds_free(kinds);
    trace_builder_done(&b);
}

static void test_only_generated_code_and_each_once(void **state)
{
    (void)state;
    struct heap heap;
    struct trace_builder b;
    heap_init(&heap);
    uint32_t process = start(&b, IMAGE_ELF);
    leaf_location(&b, HEAP + STUB_AT);
    struct stub_kinds *kinds = stub_kinds_new(&b.trace);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_int_equal(heap.reads, 0);
    stub_kinds_free(kinds);
    trace_builder_done(&b);

    process = start(&b, IMAGE_ANON);
    for (uint64_t i = 0; i < SAMPLES; i++) /* more than one batch */
        leaf_location(&b, HEAP + METHOD_AT + i);
    kinds = stub_kinds_new(&b.trace);
    stub_kinds_update(kinds, process, &heap.memory);
    stub_kinds_update(kinds, process, &heap.memory);
    assert_int_equal(heap.reads, SAMPLES);
    stub_kinds_free(kinds);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stub_is_kept_when_its_process_ends),
        cmocka_unit_test(test_first_stub_of_a_heap),
        cmocka_unit_test(test_stub_is_gone_before_its_location),
        cmocka_unit_test(test_code_at_the_end_of_a_heap),
        cmocka_unit_test(test_only_generated_code_and_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
