#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "elf_fixture.h"
#include "symbolize/kernel_boot.h"
#include "symbolize/kernel_list.h"
#include "symbolize/kernel_list_writer.h"
#include "temp_folder.h"

#define BOOT_ID "0f0e0d0c-1234-4567-89ab-0123456789ab\n"

static const uint64_t core_start = 0xffffffff81000000, module_start = 0xffffffffc0100000;
static const char modules[] = "nf_tables 65536 3 nft_ct,nft_nat, Live 0xffffffffc0100000 (E)\n"
                              "zz 4096 0 - Live 0xffffffffc0200000\n";

enum { CORE_SYMBOLS = 3000, MODULE_SYMBOLS = 900, ADDRS = 4000 };

struct fixture {
    char folder[256];
    struct buffer list; /* as the kernel prints it */
    struct kernel_boot boot;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Some share an address, 4096 bytes and more are between some, some are no code. */
static uint64_t append_core(struct buffer *list)
{
    static const char types[] = "TtTtTtWDtR";
    uint64_t random = 1, addr = core_start;
    for (unsigned i = 0; i < CORE_SYMBOLS; i++) {
        if (i % 7)
            addr += next_random(&random) % 512;
        buffer_format(list, "%016lx %c %sfunction_%u\n", addr, types[next_random(&random) % 10],
                      i % 11 == 0 ? "__ia32_" : "", i);
    }
    return addr;
}

/* In no order, as modules have theirs; what a module left behind; programs of bpf. */
static void append_modules(struct buffer *list)
{
    uint64_t random = 2;
    for (unsigned i = 0; i < MODULE_SYMBOLS; i++)
        buffer_format(list, "%016lx %c nft_%u\t[nf_tables]\n", module_start + next_random(&random) % 0x8000,
                      i % 5 ? 't' : 'T', i);
    buffer_string(list, "ffffffffc0300000 d table\t[nf_tables]\n"
                        "ffffffffc0200000 t zz_first\t[zz]\n"
                        "ffffffffc0200100 t zz_last\t[zz]\n"
                        "ffffffffc0180000 t nft_init\t[nf_tables]\n"
                        "ffffffffc0108100 t bpf_prog_0123456789abcdef_run\t[bpf]\n"
                        "ffffffffc0200180 t bpf_prog_0123456789abcdef_filter\t[bpf]\n"
                        "ffffffffc0400000 t ftrace_trampoline\t[__builtin__ftrace]\n");
}

static struct kernel_boot boot_of(const char *id, const char *text)
{
    struct kernel_boot boot;
    assert_true(kernel_boot_parse(span_of(id, strlen(id)), span_of(text, strlen(text)), -1, &boot));
    return boot;
}

static int list_file(const struct fixture *f)
{
    return elf_fixture_file(f->list.data, f->list.size);
}

static void unseen(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    (void)user, (void)index, (void)name, (void)module, (void)start;
}

/* Reads the list as the first recording of a boot does. */
static void write_list(const struct fixture *f, bool whole)
{
    struct kernel_list_writer *w = kernel_list_writer_begin(f->folder, &f->boot);
    const struct kernel_lines_reader also = { kernel_list_writer_take, w };
    struct kernel_symbols_result result;
    AUTO_FD int live = list_file(f);
    assert_non_null(w);
    assert_true(kernel_symbols_resolve(live, NULL, 0, &also, unseen, NULL, &result, NULL));
    kernel_list_writer_end(w, whole);
}

static void remove_list(const struct fixture *f)
{
    AUTO_FREE char *path = mem_format("%s/" KERNEL_LIST_NAME, f->folder);
    unlink(path);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(1, sizeof *f);
    assert_true(temp_folder_make(f->folder, sizeof f->folder));
    buffer_init(&f->list, 8 << 20);
    append_core(&f->list);
    append_modules(&f->list);
    f->boot = boot_of(BOOT_ID, modules);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    remove_list(f);
    bool empty = rmdir(f->folder) == 0; /* nothing else was left */
    kernel_boot_done(&f->boot);
    buffer_done(&f->list);
    free(f);
    return empty ? 0 : -1;
}

struct answer {
    char name[64], module[64];
    uint64_t start;
};

static void keep(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    struct answer *a = (struct answer *)user + index;
    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->module, sizeof a->module, "%s", module);
    a->start = start;
}

static enum kernel_list_answer ask(const struct fixture *f, const uint64_t *addrs, size_t count,
                                   struct answer *out)
{
    struct kernel_symbols_result result;
    AUTO_FD int live = list_file(f);
    AUTO_FD int fd = kernel_list_open(f->folder);
    return fd < 0 ? KERNEL_LIST_BAD
                  : kernel_list_resolve(fd, live, &f->boot, addrs, count, keep, out, &result);
}

/* What the list itself says is what is said, or nothing. */
static bool ask_as_live(const struct fixture *f, const uint64_t *addrs, size_t count)
{
    struct answer *kept = mem_alloc(count, sizeof *kept), *live = mem_alloc(count, sizeof *live);
    struct kernel_symbols_result result;
    AUTO_FD int fd = list_file(f);
    assert_true(kernel_symbols_resolve(fd, addrs, count, NULL, keep, live, &result, NULL));
    enum kernel_list_answer answered = ask(f, addrs, count, kept);
    assert_int_not_equal(answered, KERNEL_LIST_BAD);
    for (size_t i = 0; i < count && answered == KERNEL_LIST_ANSWERED; i++)
        if (strcmp(kept[i].name, live[i].name) != 0 || strcmp(kept[i].module, live[i].module) != 0 ||
            kept[i].start != live[i].start)
            fail_msg("0x%lx: %s %s, not %s %s", (unsigned long)addrs[i], kept[i].name, kept[i].module,
                     live[i].name, live[i].module);
    free(kept);
    free(live);
    return answered == KERNEL_LIST_ANSWERED;
}

static int compare_addrs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every symbol's first address, the one before it and a few others. */
static size_t gather_addrs(const struct fixture *f, uint64_t *out, size_t room)
{
    size_t count = 0;
    for (const char *line = (const char *)f->list.data, *end = line + f->list.size; line < end;
         line = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
        uint64_t addr = strtoull(line, NULL, 16);
        for (uint64_t offset = 0; offset < 3 && count < room; offset++)
            out[count++] = addr + offset - 1;
    }
    qsort(out, count, sizeof *out, compare_addrs);
    return count;
}

static void test_as_live(void **state)
{
    const struct fixture *f = *state;
    enum { ROOM = 3 * (CORE_SYMBOLS + MODULE_SYMBOLS + 16) };
    AUTO_FREE uint64_t *addrs = mem_alloc(ROOM, sizeof *addrs);
    size_t count = gather_addrs(f, addrs, ROOM), answered = 0;
    write_list(f, true);
    for (size_t i = 0; i < count; i++) { /* few at a time, as one that is not there sends all to the list */
        size_t few = i % 4 + 1 < count - i ? i % 4 + 1 : count - i;
        answered += ask_as_live(f, addrs + i, few);
        i += i % 16 ? 97 : 0;
    }
    assert_true(answered > 100);
    size_t first = 0, last = count - 1;
    while (addrs[first] < core_start)
        first++;
    while (addrs[last] >= 0xffffffff82000000)
        last--;
    assert_true(ask_as_live(f, addrs + first, last - first - 8)); /* all of the kernel proper */
}

static void test_what_is_kept(void **state)
{
    static const struct {
        uint64_t addr;
        bool answered;
    } cases[] = {
        { 0, false },
        { 0xffffffff80ffffff, false }, /* before all */
        { 0xffffffff81000000, true },  /* the first */
        { 0xffffffff83000000, false }, /* behind the kernel proper */
        { 0xffffffffc0104000, true },  /* of a module */
        { 0xffffffffc0108110, false }, /* a program of bpf behind the module's code, within its size */
        { 0xffffffffc0180010, false }, /* code that is gone */
        { 0xffffffffc0200080, true },
        { 0xffffffffc0200100, false }, /* the last of a module */
        { 0xffffffffc0200190, false }, /* bpf */
        { 0xffffffffc0300010, false }, /* data of a module */
        { UINT64_MAX, false },
    };
    const struct fixture *f = *state;
    write_list(f, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (ask_as_live(f, &cases[i].addr, 1) != cases[i].answered)
            fail_msg("0x%lx", (unsigned long)cases[i].addr);
    uint64_t both[] = { core_start, 0xffffffffc0200190 };
    assert_false(ask_as_live(f, both, 2));
    assert_true(ask_as_live(f, NULL, 0));
}

/* Another boot, another module, a kernel that lies elsewhere or hides its addresses. */
static void test_other_state(void **state)
{
    struct fixture *f = *state;
    struct answer answer;
    write_list(f, true);
    struct fixture other = *f;
    other.boot = boot_of("1f0e0d0c-1234-4567-89ab-0123456789ab\n", modules);
    assert_int_equal(ask(&other, &core_start, 1, &answer), KERNEL_LIST_BAD);
    kernel_boot_done(&other.boot);
    other.boot = boot_of(BOOT_ID, "nf_tables 65536 3 - Live 0xffffffffc0100000\n");
    assert_int_equal(ask(&other, &core_start, 1, &answer), KERNEL_LIST_BAD);
    kernel_boot_done(&other.boot);
    other.boot = boot_of(BOOT_ID, "nf_tables 65536 9 - Live 0xffffffffc0100000 (E)\n"
                                  "zz 4096 1 nft_nat, Live 0xffffffffc0200000\n");
    assert_int_equal(ask(&other, &core_start, 1, &answer), KERNEL_LIST_ANSWERED); /* only the users differ */
    kernel_boot_done(&other.boot);
    AUTO_FD int moved = elf_fixture_file("ffffffff91000000 T function_0\n", 30);
    AUTO_FD int hidden = elf_fixture_file("0000000000000000 T function_0\n", 30);
    AUTO_FD int fd = kernel_list_open(f->folder);
    struct kernel_symbols_result result;
    assert_int_equal(kernel_list_resolve(fd, moved, &f->boot, &core_start, 1, keep, &answer, &result),
                     KERNEL_LIST_BAD);
    assert_int_equal(kernel_list_resolve(fd, hidden, &f->boot, &core_start, 1, keep, &answer, &result),
                     KERNEL_LIST_BAD);
}

static void test_not_kept(void **state)
{
    static const char *const lists[] = {
        "0000000000000000 T hidden\n0000000000000000 t too\n",
        "ffffffff81000200 T unsorted\nffffffff81000100 t first\nffffffff81000300 t last\n",
        "ffffffff81000100 T core\nffffffffc0200000 t zz\t[zz]\nffffffffc0300000 t core_again\n",
        "",
        "nothing\n",
    };
    struct fixture *f = *state;
    write_list(f, false);
    assert_int_equal(kernel_list_open(f->folder), -1);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        buffer_clear(&f->list);
        buffer_string(&f->list, lists[i]);
        write_list(f, true);
        assert_int_equal(kernel_list_open(f->folder), -1);
    }
    assert_null(kernel_list_writer_begin("/proc/none", &f->boot));
    assert_null(kernel_list_writer_begin("/dev/null", &f->boot));
}

static struct buffer load(const struct fixture *f)
{
    struct buffer bytes;
    struct source file;
    AUTO_FD int fd = kernel_list_open(f->folder);
    buffer_init(&bytes, 8 << 20);
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, NULL) &&
                source_load(&file, 0, file.size, &bytes, NULL));
    return bytes;
}

static enum kernel_list_answer ask_bytes(const struct fixture *f, const void *bytes, size_t size)
{
    uint64_t addr = core_start + 100;
    struct answer answer = { 0 };
    struct kernel_symbols_result result;
    AUTO_FD int live = list_file(f);
    AUTO_FD int fd = elf_fixture_file(bytes, size);
    return kernel_list_resolve(fd, live, &f->boot, &addr, 1, keep, &answer, &result);
}

static void test_damaged(void **state)
{
    const struct fixture *f = *state;
    write_list(f, true);
    struct buffer bytes = load(f);
    assert_int_equal(ask_bytes(f, bytes.data, bytes.size), KERNEL_LIST_ANSWERED);
    for (size_t size = 0; size < bytes.size; size += size < 600 || size + 600 > bytes.size ? 1 : 1009)
        assert_int_equal(ask_bytes(f, bytes.data, size), KERNEL_LIST_BAD);
    for (size_t i = 0; i < KERNEL_LIST_HEAD_BYTES + 200; i++) { /* the head, and what is compared */
        bytes.data[i] ^= 4;
        assert_int_equal(ask_bytes(f, bytes.data, bytes.size), KERNEL_LIST_BAD);
        bytes.data[i] ^= 4;
    }
    bytes.data[bytes.size - 1] ^= 1; /* the index */
    assert_int_equal(ask_bytes(f, bytes.data, bytes.size), KERNEL_LIST_BAD);
    buffer_done(&bytes);
}

static void test_not_ours(void **state)
{
    const struct fixture *f = *state;
    write_list(f, true);
    AUTO_FREE char *path = mem_format("%s/" KERNEL_LIST_NAME, f->folder);
    AUTO_FREE char *moved = mem_format("%s/moved", f->folder);
    struct stat st;
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_int_equal(chmod(path, 0620), 0);
    assert_int_equal(kernel_list_open(f->folder), -1);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(kernel_list_open(f->folder), -1);
        assert_int_equal(chown(path, 0, 0), 0);
    }
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_int_equal(kernel_list_open(f->folder), -1);
    assert_int_equal(unlink(moved), 0);
    assert_int_equal(chmod(f->folder, 0777), 0);
    assert_null(kernel_list_writer_begin(f->folder, &f->boot));
}

static void test_boot(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "nf_tables\n",
        "nf_tables 12 3 - Loading 0xffffffffc0100000\n",
        "nf_tables 12 3 - Live\n",
        "nf_tables 12 3 - Live 0xffffffffc01000zz\n",
        "nf_tables 18446744073709551615 3 - Live 0xffffffffc0100000\n",
        "../fs 12 3 - Live 0xffffffffc0100000\n",
        "\n",
    };
    struct span id = span_of(BOOT_ID, sizeof BOOT_ID - 1);
    struct kernel_boot boot;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (kernel_boot_parse(id, span_of(bad[i], strlen(bad[i])), -1, &boot))
            fail_msg("%s", bad[i]);
    assert_false(kernel_boot_parse(span_of("0f0e", 4), (struct span){ 0 }, -1, &boot));
    assert_true(kernel_boot_parse(id, (struct span){ 0 }, -1, &boot)); /* a kernel without modules */
    kernel_boot_done(&boot);
    boot = boot_of(BOOT_ID, modules);
    assert_int_equal(boot.module_count, 2);
    assert_string_equal(boot.modules[1].name, "zz");
    assert_true(boot.modules[1].start == 0xffffffffc0200000 && boot.modules[1].end == 0xffffffffc0201000);
    kernel_boot_done(&boot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_as_live, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
        cmocka_unit_test(test_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
