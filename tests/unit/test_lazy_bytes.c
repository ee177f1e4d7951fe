#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lazy_bytes.h"

enum {
    PIECES = 80,
    PART_OFFSET = 100,
    PART_BYTES = PIECES * LAZY_PIECE_BYTES - 1000,
    FILE_BYTES = PART_OFFSET + PART_BYTES
};

static uint8_t byte_at(size_t file_off)
{
    return (uint8_t)(file_off * 7 + file_off / 251 + 1);
}

/* A file whose bytes are known. */
static int make_file(size_t size)
{
    int fd = memfd_create("lazy", MFD_CLOEXEC);
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(write(fd, bytes, size), size);
    free(bytes);
    return fd;
}

static struct lazy_bytes *open_part(int fd, uint64_t offset, uint64_t size, struct error *err)
{
    struct source file;
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, err));
    return lazy_bytes_open(&file, offset, size, 1 << 30, err);
}

static unsigned pieces_read(const struct lazy_bytes *lazy)
{
    unsigned count = 0;
    for (size_t i = 0; i < PIECES; i++)
        count += lazy->is_read[i / 64] >> i % 64 & 1;
    return count;
}

static void check_bytes(struct lazy_bytes *lazy, size_t from, size_t size)
{
    lazy_bytes_need(lazy, lazy->bytes + from, size);
    for (size_t i = from; i < from + size; i++)
        assert_int_equal(lazy->bytes[i], byte_at(PART_OFFSET + i));
}

static void test_pieces(void **state)
{
    (void)state;
    struct error err;
    int fd = make_file(FILE_BYTES);
    struct lazy_bytes *lazy = open_part(fd, PART_OFFSET, PART_BYTES, &err);
    close(fd); /* it has one of its own */
    assert_non_null(lazy);
    assert_int_equal(lazy_bytes_span(lazy).size, PART_BYTES);
    assert_int_equal(pieces_read(lazy), 0);
    check_bytes(lazy, 5, 10);
    assert_int_equal(pieces_read(lazy), 1);
    check_bytes(lazy, 3 * LAZY_PIECE_BYTES - 1, 2); /* the end of one, the start of the next */
    assert_int_equal(pieces_read(lazy), 3);
    check_bytes(lazy, PART_BYTES - 1, 1); /* the last is shorter */
    lazy_bytes_need(lazy, lazy->bytes + PART_BYTES - 1, SIZE_MAX);
    lazy_bytes_need(lazy, NULL, 0);
    assert_int_equal(pieces_read(lazy), 4);
    check_bytes(lazy, 0, PART_BYTES);
    assert_int_equal(pieces_read(lazy), PIECES);
    lazy_bytes_close(lazy);
}

/* Small parts and memory are read at once, and need nothing more of who gave them. */
static void test_at_once(void **state)
{
    (void)state;
    struct error err;
    int fd = make_file(FILE_BYTES);
    struct lazy_bytes *lazy = open_part(fd, PART_OFFSET, 1000, &err);
    close(fd);
    assert_non_null(lazy);
    assert_null(lazy->is_read);
    check_bytes(lazy, 0, 1000);
    lazy_bytes_close(lazy);

    uint8_t *memory = calloc(FILE_BYTES, 1);
    struct source file = source_over_span(span_of(memory, FILE_BYTES));
    lazy = lazy_bytes_open(&file, 1, FILE_BYTES - 1, FILE_BYTES, &err);
    free(memory);
    assert_non_null(lazy);
    assert_null(lazy->is_read);
    assert_int_equal(lazy->bytes[FILE_BYTES - 2], 0);
    lazy_bytes_close(lazy);
    lazy_bytes_close(NULL);
}

static void test_refused(void **state)
{
    (void)state;
    struct error err = { 0 };
    int fd = make_file(FILE_BYTES);
    assert_null(open_part(fd, PART_OFFSET, PART_BYTES + 1, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_null(open_part(fd, FILE_BYTES + 1, 1, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    struct source file;
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, &err));
    assert_null(lazy_bytes_open(&file, 0, PART_BYTES, PART_BYTES - 1, &err));
    assert_int_equal(err.kind, ERROR_LIMIT);
    close(fd);
}

/* The file becomes shorter under us: what is gone is zero, what was read stays. */
static void test_cut(void **state)
{
    (void)state;
    struct error err;
    int fd = make_file(FILE_BYTES);
    struct lazy_bytes *lazy = open_part(fd, PART_OFFSET, PART_BYTES, &err);
    assert_non_null(lazy);
    check_bytes(lazy, 9 * LAZY_PIECE_BYTES, 1);
    assert_int_equal(ftruncate(fd, PART_OFFSET + 4 * LAZY_PIECE_BYTES), 0);
    check_bytes(lazy, 0, 4 * LAZY_PIECE_BYTES);
    check_bytes(lazy, 9 * LAZY_PIECE_BYTES, LAZY_PIECE_BYTES);
    lazy_bytes_need(lazy, lazy->bytes + 4 * LAZY_PIECE_BYTES, 2 * LAZY_PIECE_BYTES);
    for (size_t i = 4 * LAZY_PIECE_BYTES; i < 6 * LAZY_PIECE_BYTES; i++)
        assert_int_equal(lazy->bytes[i], 0);
    lazy_bytes_close(lazy);
    close(fd);
}

/* Descriptors are left to others. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 700 };
    static struct lazy_bytes *all[MANY];
    struct error err;
    int fd = make_file(FILE_BYTES);
    unsigned later = 0;
    for (int i = 0; i < MANY; i++) {
        all[i] = open_part(fd, PART_OFFSET, PART_BYTES, &err);
        assert_non_null(all[i]);
        later += all[i]->is_read != NULL;
        check_bytes(all[i], PART_BYTES - 1, 1);
    }
    assert_in_range(later, 400, 512);
    for (int i = 0; i < MANY; i++)
        lazy_bytes_close(all[i]);
    int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    assert_true(again <= fd + 1);
    close(again);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_at_once), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut),    cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
