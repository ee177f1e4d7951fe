#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "unwind/callchain.h"

/* Code is 0x1000..0x1fff; threads begin in 0x1f00..0x1fff. */
static bool is_code(void *user, uint64_t addr)
{
    (void)user;
    return addr >= 0x1000 && addr < 0x2000;
}

static bool is_root(void *user, uint64_t addr)
{
    (void)user;
    return addr >= 0x1f00 && addr < 0x2000;
}

static const struct {
    const char *name;
    uint64_t frames[4];
    size_t count;
    bool is_cut;
    size_t kept;
    enum callchain_end end;
} cases[] = {
    { "reaches its root", { 0x1001, 0x1002, 0x1f00 }, 3, false, 3, CALLCHAIN_WHOLE },
    { "ends in the middle", { 0x1001, 0x1002 }, 2, false, 2, CALLCHAIN_BROKEN },
    { "text where a frame pointer was", { 0x1001, 0x72656b726f57, 0x1f00 }, 3, false, 1, CALLCHAIN_BROKEN },
    { "a null caller", { 0x1001, 0 }, 2, false, 1, CALLCHAIN_BROKEN },
    { "too deep", { 0x1001, 0x1002 }, 2, true, 2, CALLCHAIN_TRUNCATED },
    { "a leaf in no code", { 0x5, 0x1001 }, 2, false, 1, CALLCHAIN_BROKEN },
    { "nothing", { 0 }, 0, false, 0, CALLCHAIN_BROKEN },
};

static void test_frames(void **state)
{
    (void)state;
    struct callchain_space space = { .is_code = is_code, .is_root = is_root };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct callchain chain = { .frames = cases[i].frames,
                                   .count = cases[i].count,
                                   .is_cut = cases[i].is_cut };
        enum callchain_end end;
        size_t kept = callchain_frames(&chain, &space, &end);
        if (kept != cases[i].kept || end != cases[i].end)
            fail_msg("%s: %zu frames, end %d", cases[i].name, kept, (int)end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_frames) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
