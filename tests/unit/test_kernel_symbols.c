#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "elf_fixture.h"
#include "symbolize/kernel_symbols.h"

static const char list[] = "ffffffff81000000 t quiet_start\n"
                           "ffffffff81000000 T _stext\n"
                           "ffffffff81000100 T do_read\n"
                           "ffffffff81000180 t helper\n"
                           "ffffffff81000200 t __do_sys_yield\n"
                           "ffffffff81000200 T __ia32_sys_yield\n"
                           "ffffffff81000200 T __x64_sys_yield\n"
                           "ffffffff81000300 T __x64_sys_pause\n"
                           "ffffffff81000300 T __ia32_sys_pause\n"
                           "ffffffff81001000 D table\n"
                           "ffffffffa0005000 t later\t[zz]\n"
                           "ffffffffa0001000 t first\t[nf_tables]\n"
                           "ffffffffa0001000 T first_global\t[nf_tables]\n"
                           "ffffffffa0009000 t bpf_prog_12_name\t[bpf]\n";

struct answer {
    char name[64], module[64];
    uint64_t start;
};

static void keep(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    struct answer *answers = user;
    snprintf(answers[index].name, sizeof answers[index].name, "%s", name);
    snprintf(answers[index].module, sizeof answers[index].module, "%s", module);
    answers[index].start = start;
}

static const struct {
    uint64_t addr;
    const char *name, *module;
    uint64_t start;
} cases[] = {
    { 0xffffffff80000000, "[kernel]", "[kernel]", 0 },
    { 0xffffffff81000000, "_stext", "[kernel]", 0xffffffff81000000 },
    { 0xffffffff8100017f, "do_read", "[kernel]", 0xffffffff81000100 },
    { 0xffffffff81000180, "helper", "[kernel]", 0xffffffff81000180 },
    { 0xffffffff81000190, "helper", "[kernel]", 0xffffffff81000180 },
    { 0xffffffff81000210, "__x64_sys_yield", "[kernel]", 0xffffffff81000200 },
    { 0xffffffff81000310, "__x64_sys_pause", "[kernel]", 0xffffffff81000300 },
    { 0xffffffff81001004, "[kernel]", "[kernel]", 0 }, /* data */
    { 0xffffffffa0001004, "first_global", "[nf_tables]", 0xffffffffa0001000 },
    { 0xffffffffa0005000, "later", "[zz]", 0xffffffffa0005000 },
    { 0xffffffffa0009000, "bpf_prog_12_name", "[bpf]", 0xffffffffa0009000 },
    { 0xfffffffff0000000, "[kernel]", "[kernel]", 0 }, /* too far behind */
};

static void test_resolve(void **state)
{
    (void)state;
    uint64_t addrs[ARRAY_LEN(cases)];
    struct answer answers[ARRAY_LEN(cases)];
    struct kernel_symbols_result result;
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        addrs[i] = cases[i].addr;
    AUTO_FD int fd = elf_fixture_file(list, sizeof list - 1);
    assert_true(kernel_symbols_resolve(fd, addrs, ARRAY_LEN(cases), NULL, keep, answers, &result, &err));
    assert_int_equal(result.named, 9);
    assert_false(result.hidden);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (strcmp(answers[i].name, cases[i].name) != 0 || strcmp(answers[i].module, cases[i].module) != 0 ||
            answers[i].start != cases[i].start)
            fail_msg("0x%lx: %s %s", (unsigned long)cases[i].addr, answers[i].name, answers[i].module);
}

static void test_hidden(void **state)
{
    (void)state;
    static const char zeros[] = "0000000000000000 T _stext\n0000000000000000 t helper\n";
    uint64_t addr = 0xffffffff81000000;
    struct answer answer;
    struct kernel_symbols_result result;
    AUTO_FD int fd = elf_fixture_file(zeros, sizeof zeros - 1);
    assert_true(kernel_symbols_resolve(fd, &addr, 1, NULL, keep, &answer, &result, NULL));
    assert_true(result.hidden);
    assert_string_equal(answer.name, "[kernel]");
    AUTO_FD int empty = elf_fixture_file("", 0);
    assert_true(kernel_symbols_resolve(empty, &addr, 1, NULL, keep, &answer, &result, NULL));
    assert_false(result.hidden);
    assert_true(kernel_symbols_resolve(empty, NULL, 0, NULL, keep, &answer, &result, NULL));
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof list; size++) {
        uint64_t addr = 0xffffffffa0001004;
        struct answer answer = { 0 };
        struct kernel_symbols_result result;
        AUTO_FD int fd = elf_fixture_file(list, size);
        assert_true(kernel_symbols_resolve(fd, &addr, 1, NULL, keep, &answer, &result, NULL));
        assert_int_not_equal(answer.name[0], 0);
    }
}

static void test_unreadable(void **state)
{
    (void)state;
    uint64_t addr = 1;
    struct answer answer = { 0 };
    struct kernel_symbols_result result;
    struct error err;
    AUTO_FD int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_false(kernel_symbols_resolve(folder, &addr, 1, NULL, keep, &answer, &result, &err));
    assert_int_equal(err.kind, ERROR_SYSTEM);
    assert_int_equal(answer.name[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
