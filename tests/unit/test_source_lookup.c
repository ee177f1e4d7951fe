#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file_stamp.h"
#include "base/mem.h"
#include "base/own.h"
#include "symbolize/kept_lines.h"
#include "symbolize/kept_sections.h"
#include "symbolize/source_lookup.h"
#include "temp_folder.h"

enum { ANSWERS = 8, TEXT_BYTES = 256 };

/* By index: "NAME FILE:LINE NAME FILE:LINE ...". */
struct answers {
    char texts[ANSWERS][TEXT_BYTES];
};

static void take(void *user, size_t index, const struct source_frame *frames, size_t count)
{
    struct answers *answers = user;
    assert_true(index < ANSWERS && answers->texts[index][0] == 0);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(frames[i].function == NULL, i + 1 == count);
        used += (size_t)snprintf(answers->texts[index] + used, TEXT_BYTES - used, "%s %s:%u ",
                                 frames[i].function ? frames[i].function : "-",
                                 frames[i].file ? frames[i].file : "-", (unsigned)frames[i].line);
        assert_true(used < TEXT_BYTES);
    }
}

static int open_fixture(const char *name)
{
    AUTO_FREE char *path = mem_format("%s/dwarf/inlined/%s.elf", GOLDEN_DIR, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("cannot open %s", path);
    return fd;
}

static const struct source_store nowhere;

static const uint64_t addrs[] = { 0x1000, 0x401000, 0x401020, 0x401040, 0x401080, UINT64_MAX };
static const size_t indexes[] = { 7, 6, 0, 1, 2, 3 };

/* Several at a time, finished in another order; the file may be closed meanwhile. */
static void test_answers(void **state)
{
    (void)state;
    static const char *const names[] = { "gcc5", "gcc5-gz", "gcc5" };
    struct source_lookup *lookups[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FD int fd = open_fixture(names[i]);
        lookups[i] = source_lookup_start(fd, &nowhere, addrs, indexes, ARRAY_LEN(addrs));
        assert_non_null(lookups[i]);
    }
    for (size_t i = ARRAY_LEN(names); i-- > 0;) {
        struct answers *answers = mem_alloc(1, sizeof *answers);
        source_lookup_finish(lookups[i], take, answers);
        assert_string_equal(answers->texts[6], "- /src/shapes.cc:27 ");
        assert_string_equal(answers->texts[0], "shapes::square::area /src/shapes.cc:9 "
                                               "sum<shapes::square> /src/shapes.cc:17 - /src/shapes.cc:29 ");
        assert_string_equal(answers->texts[1], "- /src/shapes.cc:28 ");
        assert_string_equal(answers->texts[2], "twice /src/lib/twice.h:3 - /src/other.cc:5 ");
        assert_string_equal(answers->texts[3], "");
        assert_string_equal(answers->texts[7], "");
        free(answers);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    struct answers *answers = mem_alloc(1, sizeof *answers);
    AUTO_FD int not_elf = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AUTO_FD int fd = open_fixture("gcc5");
    assert_null(source_lookup_start(fd, &nowhere, addrs, indexes, 0));
    assert_null(source_lookup_start(-1, &nowhere, addrs, indexes, ARRAY_LEN(addrs)));
    source_lookup_finish(NULL, take, answers);
    source_lookup_finish(source_lookup_start(not_elf, &nowhere, addrs, indexes, ARRAY_LEN(addrs)), take,
                         answers);
    for (size_t i = 0; i < ANSWERS; i++)
        assert_string_equal(answers->texts[i], "");
    free(answers);
}

/* A cache in a folder that is not there yet. */
struct kept {
    char folder[200];
    struct kept_folder cache;
    struct source_store store;
};

static void kept_make(struct kept *kept)
{
    *kept = (struct kept){ .store = { &kept->cache, { .size = 20, .bytes = { 0xab } } } };
    assert_true(temp_folder_make(kept->folder, sizeof kept->folder));
    AUTO_FREE char *path = mem_format("%s/cache/lines", kept->folder);
    kept_folder_init(&kept->cache, path);
}

static void kept_remove(struct kept *kept)
{
    AUTO_FREE char *command = mem_format("rm -rf '%s'", kept->folder);
    kept_folder_done(&kept->cache);
    assert_int_equal(system(command), 0);
}

static void look(const struct kept *kept, int fd, size_t from, size_t to, struct answers *answers)
{
    memset(answers, 0, sizeof *answers);
    struct source_lookup *lookup =
        source_lookup_start(fd, &kept->store, addrs + from, indexes + from, to - from);
    assert_non_null(lookup);
    source_lookup_finish(lookup, take, answers);
}

/* What was asked before is not asked again, and the rest is added to it. */
static void test_kept(void **state)
{
    (void)state;
    struct kept kept;
    struct stat st;
    struct answers *first = mem_alloc(1, sizeof *first), *second = mem_alloc(1, sizeof *second);
    AUTO_FD int fd = open_fixture("gcc5");
    kept_make(&kept);
    look(&kept, fd, 0, 3, first);
    look(&kept, fd, 0, ARRAY_LEN(addrs), second);
    assert_memory_equal(first->texts[0], second->texts[0], TEXT_BYTES);
    assert_string_equal(second->texts[2], "twice /src/lib/twice.h:3 - /src/other.cc:5 ");
    AUTO_FREE char *path = mem_format("%s/cache/lines/ab%038d.lines", kept.folder, 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct file_stamp stamp = file_stamp_of(fd);
    struct source_answers held;
    kept_lines_load(&kept.cache, &kept.store.id, &stamp, &held);
    assert_int_equal(held.count, ARRAY_LEN(addrs));
    source_answers_done(&held);

    const struct source_frame other = { NULL, "kept.c", 5 };
    source_answers_init(&held);
    source_answers_add(&held, addrs[2], &other, 1);
    assert_true(kept_lines_save(&kept.cache, &kept.store.id, &stamp, &held, NULL));
    source_answers_done(&held);
    look(&kept, fd, 0, ARRAY_LEN(addrs), first);
    assert_string_equal(first->texts[0], "- kept.c:5 ");
    assert_memory_equal(first->texts[1], second->texts[1], TEXT_BYTES);

    assert_int_equal(truncate(path, 50), 0);
    look(&kept, fd, 0, ARRAY_LEN(addrs), first);
    assert_memory_equal(first, second, sizeof *first);
    kept_remove(&kept);
    free(first);
    free(second);
}

/* The state of one that has compressed sections, open for reading. */
static void open_elf(int fd, struct source *file, struct elf *out)
{
    assert_true(source_over_fd(fd, 0, UINT64_MAX, file, NULL));
    assert_true(elf_open(file, out, NULL));
}

static int find_sections(const struct kept *kept, const struct file_stamp *stamp)
{
    return kept_sections_find(&kept->cache, &kept->store.id, stamp);
}

/* Compressed sections are kept when more is asked of them; what is damaged or of another state is not used.
 */
static void test_unpacked(void **state)
{
    (void)state;
    struct kept kept;
    struct stat st;
    struct answers *first = mem_alloc(1, sizeof *first), *second = mem_alloc(1, sizeof *second);
    AUTO_FD int fd = open_fixture("gcc5-gz");
    kept_make(&kept);
    struct file_stamp stamp = file_stamp_of(fd), later = stamp;
    later.changed_ns++;
    AUTO_FREE char *sections = mem_format("%s/cache/lines/ab%038d.dwarf", kept.folder, 0);
    AUTO_FREE char *lines = mem_format("%s/cache/lines/ab%038d.lines", kept.folder, 0);
    look(&kept, fd, 0, 3, first);
    assert_int_equal(stat(sections, &st), -1);
    look(&kept, fd, 0, ARRAY_LEN(addrs), first);
    assert_int_equal(stat(sections, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(find_sections(&kept, &later), -1);

    AUTO_FD int own = find_sections(&kept, &stamp);
    struct source file;
    struct elf elf;
    open_elf(own, &file, &elf);
    assert_int_equal(elf.machine, ELF_X86_64);
    assert_true(native_source_has(&elf));
    assert_false(kept_sections_save(&kept.cache, &kept.store.id, &stamp, &elf)); /* not compressed */
    elf_done(&elf);
    assert_int_equal(unlink(lines), 0);
    look(&kept, fd, 0, ARRAY_LEN(addrs), second);
    assert_memory_equal(first, second, sizeof *first);

    assert_int_equal(truncate(sections, 300), 0);
    assert_int_equal(find_sections(&kept, &stamp), -1);
    assert_int_equal(unlink(lines), 0);
    look(&kept, fd, 0, ARRAY_LEN(addrs), second);
    assert_memory_equal(first, second, sizeof *first);
    kept_remove(&kept);
    free(first);
    free(second);
}

/* Another state of the file, a build without an id, and a folder that others may write into. */
static void test_not_kept(void **state)
{
    (void)state;
    struct kept kept;
    struct answers *answers = mem_alloc(1, sizeof *answers);
    struct source_answers held;
    AUTO_FD int fd = open_fixture("gcc5");
    kept_make(&kept);
    struct file_stamp stamp = file_stamp_of(fd);
    look(&kept, fd, 0, ARRAY_LEN(addrs), answers);
    stamp.changed_ns++;
    kept_lines_load(&kept.cache, &kept.store.id, &stamp, &held);
    assert_int_equal(held.count, 0);
    struct symbol_id none = { 0 };
    assert_false(kept_lines_save(&kept.cache, &none, &stamp, &held, NULL));
    AUTO_FREE char *folder = mem_format("%s/cache/lines", kept.folder);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_false(kept_lines_save(&kept.cache, &kept.store.id, &stamp, &held, NULL));
    source_answers_done(&held);
    stamp = file_stamp_of(fd);
    kept_lines_load(&kept.cache, &kept.store.id, &stamp, &held);
    assert_int_equal(held.count, 0);
    source_answers_done(&held);
    kept_remove(&kept);
    free(answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),  cmocka_unit_test(test_nothing),  cmocka_unit_test(test_kept),
        cmocka_unit_test(test_unpacked), cmocka_unit_test(test_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
