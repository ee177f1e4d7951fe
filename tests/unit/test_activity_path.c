#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/activity_path.h"

/* As .NET 8, 9 and 10 gave them out, with the process's number in the checksum. */
static const struct {
    const char *name;
    uint8_t id[ACTIVITY_ID_BYTES];
    uint8_t parent[ACTIVITY_PATH_BYTES];
} paths[] = {
    { "1/1", { 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb6, 0x9d, 0x59 }, { 0x10 } },
    { "1/1/1", { 0x11, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xad, 0x99, 0x59 }, { 0x11 } },
    { "1/1/1/1", { 0x11, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xae, 0x99, 0x59 }, { 0x11, 0x10 } },
    { "1/16: a byte of its own", { 0x1c, 0x10 }, { 0x10 } },
    { "1/1/16: a byte behind a code alone", { 0x11, 0xc0, 0x10 }, { 0x11 } },
    { "1/1/300: four bits with the code", { 0x11, 0xc1, 0x2c }, { 0x11 } },
    { "1/1/300/2: of which a byte is empty", { 0x11, 0xc1, 0x2c, 0, 0x20 }, { 0x11, 0xc1, 0x2c } },
    { "1/70000/1", { 0x1e, 0x70, 0x11, 0x01, 0x10 }, { 0x1e, 0x70, 0x11, 0x01 } },
    { "1/1/overflow 5", { 0x11, 0xbc, 0x05 }, { 0x11 } },
    { "to the last byte",
      { 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11 },
      { 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x10 } },
    { "a number that is cut off",
      { 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0xf0 },
      { 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11 } },
};

static void set_checksum(uint8_t id[ACTIVITY_ID_BYTES], uint32_t pid)
{
    uint32_t sum = 0x599d99ad;
    for (unsigned i = 0; i < ACTIVITY_PATH_BYTES; i += 4)
        sum += (uint32_t)id[i] | (uint32_t)id[i + 1] << 8 | (uint32_t)id[i + 2] << 16 |
               (uint32_t)id[i + 3] << 24;
    sum ^= pid;
    for (unsigned i = 0; i < 4; i++)
        id[ACTIVITY_PATH_BYTES + i] = (uint8_t)(sum >> 8 * i);
}

static void test_parents(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        uint8_t id[ACTIVITY_ID_BYTES];
        struct activity_path path, parent;
        memcpy(id, paths[i].id, sizeof id);
        set_checksum(id, i % 2 ? 4711 : 0);
        assert_true(activity_path_read(id, &path));
        assert_false(activity_path_is_none(&path));
        parent = activity_path_parent(&path);
        if (memcmp(parent.bytes, paths[i].parent, sizeof parent.bytes) != 0)
            fail_msg("the parent of %s", paths[i].name);
    }
}

/* An id of the program's own, none, and one with another checksum. */
static void test_others(void **state)
{
    (void)state;
    static const uint8_t ids[][ACTIVITY_ID_BYTES] = {
        { 0 },
        { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
        { 0x11, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xad, 0x99, 0xd9 },
        { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xad, 0x99, 0x9d, 0x59 },
    };
    struct activity_path path;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        assert_false(activity_path_read(ids[i], &path));
}

/* Whatever the bytes are, there is an end. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        struct activity_path path;
        for (unsigned i = 0; i < sizeof path.bytes; i++) {
            random = random * 1664525 + 1013904223;
            path.bytes[i] = (uint8_t)(random >> 24);
        }
        unsigned steps = 0;
        for (; !activity_path_is_none(&path) && steps < 100; steps++)
            path = activity_path_parent(&path);
        assert_true(steps <= 2 * ACTIVITY_PATH_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parents),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
