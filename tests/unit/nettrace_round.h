/*
 * nettrace_round: a capture as a nettrace file, and what is read from it again.
 */
#ifndef CLRPERF_TESTS_NETTRACE_ROUND_H
#define CLRPERF_TESTS_NETTRACE_ROUND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import/nettrace_import.h"
#include "render/nettrace.h"

/* The caller ends *b. */
static inline void import_bytes(struct trace_builder *b, struct span file)
{
    static const struct import_options everything;
    struct byte_stream stream;
    struct error err;
    trace_builder_init(b, 64);
    byte_stream_over(&stream, file, 1 << 20);
    if (!nettrace_import(&stream, &everything, b, &err))
        fail_msg("%s", err.what);
    byte_stream_close(&stream);
}

/* The caller ends *file. */
static inline void write_trace(const struct trace *t, struct buffer *file)
{
    struct output out;
    struct error err;
    buffer_init(file, 64 << 20);
    output_over_buffer(&out, file);
    if (!nettrace_write(t, &out, &err))
        fail_msg("%s", err.what);
    assert_true(output_close(&out, &err));
}

static inline const char *frame_name(const struct trace *t, uint32_t stack)
{
    const struct trace_location *row = &t->locations.rows[t->stacks.rows[stack].location];
    return trace_string(t, t->functions.rows[row->function].name);
}

static inline void check_stacks(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
    for (; x >= STACK_ROOTS && y >= STACK_ROOTS; x = a->stacks.rows[x].parent, y = b->stacks.rows[y].parent)
        assert_string_equal(frame_name(a, x), frame_name(b, y));
    assert_int_equal(x, y);
}

#endif
