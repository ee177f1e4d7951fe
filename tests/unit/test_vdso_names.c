#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/vdso_names.h"

/* testb $1, 0x1d(%rsi); je; lfence; rdtsc; shl $32, %rdx */
static const uint8_t reads_clock[] = { 0xf6, 0x46, 0x1d, 0x01, 0x74, 0x63, 0x0f, 0xae,
                                       0xe8, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20 };

static void test_clock(void **state)
{
    (void)state;
    const char *name = vdso_name_of(span_of(reads_clock, sizeof reads_clock));
    assert_non_null(name);
    assert_string_equal(name, "vread_pvclock");
    uint8_t by_rdtscp[sizeof reads_clock + 1];
    memcpy(by_rdtscp, reads_clock, sizeof reads_clock);
    memcpy(by_rdtscp + 9, "\x0f\x01\xf9", 3);
    assert_non_null(vdso_name_of(span_of(by_rdtscp, sizeof by_rdtscp)));
}

/* Neither half of it is enough, nor one that is cut. */
static void test_others(void **state)
{
    (void)state;
    uint8_t other[sizeof reads_clock];
    for (size_t at = 0; at < 4; at++) {
        memcpy(other, reads_clock, sizeof other);
        other[at] ^= 0x80;
        assert_null(vdso_name_of(span_of(other, sizeof other)));
    }
    for (size_t size = 0; size < 11; size++)
        assert_null(vdso_name_of(span_of(reads_clock, size)));
    assert_null(vdso_name_of(span_of(reads_clock + 4, sizeof reads_clock - 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
