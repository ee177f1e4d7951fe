#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/source.h"
#include "read/x64_instruction.h"
#include "unwind/elf_unwind.h"
#include "unwind/x64_flow.h"

#ifdef __x86_64__
enum { IS_X86_64 = 1 };
#else
enum { IS_X86_64 = 0 };
#endif

struct code {
    uint64_t addr;
    struct span bytes;
    int32_t refuse; /* a rule with this offset */
};

static size_t code_read(void *user, uint64_t addr, uint8_t *into, size_t size)
{
    const struct code *code = user;
    if (addr < code->addr || addr - code->addr >= code->bytes.size)
        return 0;
    size_t off = (size_t)(addr - code->addr), left = code->bytes.size - off, part = left < size ? left : size;
    memcpy(into, code->bytes.data + off, part);
    return part;
}

static bool code_accept(void *user, const struct frame_rule *rule)
{
    const struct code *code = user;
    return rule->cfa_off != code->refuse;
}

struct flow_case {
    const char *name;
    uint8_t code[40];
    size_t size;
    int32_t number; /* of the rule that is refused, or of the byte to come to */
    bool found;
    uint32_t cfa_register;
    int32_t cfa_off;
    uint32_t fp;
    int32_t fp_off;
};

static const struct flow_case cases[] = {
    { "ret", { 0xc3 }, 1, 0, true, FRAME_REGISTER_SP, 8, FRAME_SAME, 0 },
    { "call; add rsp, 24; pop rbx; pop rbp; ret",
      { 0xe8, 1, 2, 3, 4, 0x48, 0x83, 0xc4, 24, 0x5b, 0x5d, 0xc3 },
      12,
      0,
      true,
      FRAME_REGISTER_SP,
      48,
      FRAME_AT_SP,
      32 },
    { "lea rsp, [rbp-16]; pop rbx; pop r12; pop rbp; ret",
      { 0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3 },
      9,
      0,
      true,
      FRAME_REGISTER_FP,
      16,
      FRAME_AT_FP,
      0 },
    { "leave; ret", { 0xc9, 0xc3 }, 2, 0, true, FRAME_REGISTER_FP, 16, FRAME_AT_FP, 0 },
    { "a prolog: push rbp; mov rbp, rsp; push rbx; pop rbx; pop rbp; ret",
      { 0x55, 0x48, 0x89, 0xe5, 0x53, 0x5b, 0x5d, 0xc3 },
      8,
      0,
      true,
      FRAME_REGISTER_SP,
      8,
      FRAME_SAME,
      0 },
    { "push rbp; mov rbp, rsp; and rsp, -32; leave; ret",
      { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0xc9, 0xc3 },
      10,
      0,
      true,
      FRAME_REGISTER_SP,
      8,
      FRAME_SAME,
      0 },
    { "mov rbp, [rsp+8]; add rsp, 24; ret",
      { 0x48, 0x8b, 0x6c, 0x24, 8, 0x48, 0x83, 0xc4, 24, 0xc3 },
      10,
      0,
      true,
      FRAME_REGISTER_SP,
      32,
      FRAME_AT_SP,
      8 },
    { "a loop: je out; jmp back; out: pop rbx; ret",
      { 0x74, 2, 0xeb, 0xfc, 0x5b, 0xc3 },
      6,
      0,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "je cold; ud2; cold: add rsp, 8; ret",
      { 0x74, 2, 0x0f, 0x0b, 0x48, 0x83, 0xc4, 8, 0xc3 },
      9,
      0,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "je out; call of what ends the thread; another function's ret; out: pop rbx; ret",
      { 0x74, 6, 0xe8, 0, 0, 0, 0, 0xc3, 0x5b, 0xc3 },
      10,
      8, /* that ret's */
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "add rsp, 8; jmp rax",
      { 0x48, 0x83, 0xc4, 8, 0xff, 0xe0 },
      6,
      0,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "mov rsp, rbp; pop rbp; jmp to a function that pops more: its frame is gone before it",
      { 0x48, 0x89, 0xec, 0x5d, 0xeb, 0x01, 0x90, 0x58, 0x58, 0x58, 0xc3 },
      11,
      0,
      true,
      FRAME_REGISTER_FP,
      16,
      FRAME_AT_FP,
      0 },
    { "pop rbp; jmp to the rest of the function: pop rbx; ret",
      { 0x5d, 0xeb, 0x01, 0x90, 0x5b, 0xc3 },
      6,
      0,
      true,
      FRAME_REGISTER_SP,
      24,
      FRAME_AT_SP,
      0 },
    { "it ends below the stack: push rbx; ret", { 0x53, 0xc3 }, 2, 0, false, 0, 0, 0, 0 },
    { "an endless loop", { 0xeb, 0xfe }, 2, 0, false, 0, 0, 0, 0 },
    { "the code ends", { 0x90, 0x90 }, 2, 0, false, 0, 0, 0, 0 },
    { "mov rsp, rax; ret", { 0x48, 0x89, 0xc4, 0xc3 }, 4, 0, false, 0, 0, 0, 0 },
    { "add rsp, 0x7fffffff; add rsp, 0x7fffffff; ret",
      { 0x48, 0x81, 0xc4, 0xff, 0xff, 0xff, 0x7f, 0x48, 0x81, 0xc4, 0xff, 0xff, 0xff, 0x7f, 0xc3 },
      15,
      0,
      false,
      0,
      0,
      0,
      0 },
};

static void check_case(const struct flow_case *c, bool found, const struct frame_rule *rule)
{
    if (found != c->found)
        fail_msg("%s: %s", c->name, found ? "has a rule" : "has no rule");
    if (rule->cfa_register != c->cfa_register || rule->cfa_off != c->cfa_off || rule->fp != c->fp ||
        rule->fp_off != c->fp_off)
        fail_msg("%s: CFA %#x%+d, fp %u %+d", c->name, rule->cfa_register, rule->cfa_off, rule->fp,
                 rule->fp_off);
    assert_true(!found || (rule->cfa == FRAME_CFA_OFFSET && rule->ra == FRAME_AT_CFA && rule->ra_off == -8));
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct code code = { 0x1000, span_of(cases[i].code, cases[i].size), cases[i].number };
        struct code_flow flow = { code_read, code_accept, &code };
        struct frame_rule rule = { 0 };
        bool found = x64_flow_rule(&flow, 0x1000, &rule);
        check_case(&cases[i], found, &rule);
    }
}

/* From the first instruction to the one at `at`. */
static const struct flow_case ways_in[] = {
    { "at the start", { 0xc3 }, 1, 0, true, FRAME_REGISTER_SP, 8, FRAME_SAME, 0 },
    { "push r13; push rbp; sub rsp, 8; call rbx; call of what ends the thread",
      { 0x41, 0x55, 0x55, 0x48, 0x83, 0xec, 8, 0xff, 0xd3, 0xe8, 0, 0, 0, 0 },
      14,
      9,
      true,
      FRAME_REGISTER_SP,
      32,
      FRAME_AT_CFA,
      -24 },
    { "behind such a call: the next function is not mixed in",
      { 0x53, 0xe8, 0, 0, 0, 0, 0x55, 0x5d, 0xc3 },
      9,
      6,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "push rbp; lea rbp, [rax]; what is computed there is not the caller's",
      { 0x55, 0x48, 0x8d, 0x28, 0x90, 0x5d, 0xc3 },
      7,
      4,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_AT_CFA,
      -16 },
    { "push rbp; sub rsp, 16; mov [rsp + 8], rbp: a second save is of something else",
      { 0x55, 0x48, 0x83, 0xec, 16, 0x48, 0x89, 0x6c, 0x24, 8, 0x90 },
      11,
      10,
      true,
      FRAME_REGISTER_SP,
      32,
      FRAME_AT_CFA,
      -16 },
    { "push rbp; nop; pop rbp; it is back",
      { 0x55, 0x90, 0x5d, 0xc3 },
      4,
      3,
      true,
      FRAME_REGISTER_SP,
      8,
      FRAME_SAME,
      0 },
    { "push rbp; mov rbp, rsp; mov rsp, rax: by RBP",
      { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xc4, 0x90 },
      8,
      7,
      true,
      FRAME_REGISTER_FP,
      16,
      FRAME_AT_CFA,
      -16 },
    { "je over; ret; over: push rbx",
      { 0x74, 1, 0xc3, 0x53, 0xc3 },
      5,
      4,
      true,
      FRAME_REGISTER_SP,
      16,
      FRAME_SAME,
      0 },
    { "no way leads there: push rbx; ret; nop", { 0x53, 0xc3, 0x90 }, 3, 2, false, 0, 0, 0, 0 },
    { "into an instruction: sub rsp, 8", { 0x48, 0x83, 0xec, 8, 0xc3 }, 5, 2, false, 0, 0, 0, 0 },
    { "below the stack: pop rax", { 0x58, 0xc3 }, 2, 1, false, 0, 0, 0, 0 },
    { "mov rsp, rax without a frame pointer", { 0x48, 0x89, 0xc4, 0xc3 }, 4, 3, false, 0, 0, 0, 0 },
};

static void test_from_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways_in); i++) {
        struct code code = { 0x1000, span_of(ways_in[i].code, ways_in[i].size), INT32_MIN };
        struct code_flow flow = { code_read, code_accept, &code };
        struct frame_rule rule = { 0 };
        bool found = x64_flow_rule_from(&flow, 0x1000, 0x1000 + (uint64_t)ways_in[i].number, &rule);
        check_case(&ways_in[i], found, &rule);
    }
}

struct tally {
    unsigned equal, differ, none;
};

/* What the tables of the C library tell of its code, and what the code itself tells. */
struct comparison {
    struct elf_unwind *image;
    struct eh_rows rows; /* all of the image */
    struct code code;
    struct tally to_return, from_start;
};

static void compare_rules(struct tally *tally, bool found, const struct frame_rule *told,
                          const struct frame_rule *rule, bool with_fp)
{
    bool same_cfa = found && (rule->cfa_register == FRAME_REGISTER_FP || rule->cfa_off == told->cfa_off);
    /* what was popped is still where it was, below the stack */
    bool popped =
        found && rule->fp == FRAME_SAME && told->fp == FRAME_AT_CFA && told->cfa_off + told->fp_off < 0;
    bool same_fp = found && (popped || (rule->fp == told->fp && rule->fp_off == told->fp_off));
    if (!found)
        tally->none++;
    else if (same_cfa && (same_fp || !with_fp))
        tally->equal++;
    else
        tally->differ++;
}

static void compare_at(struct comparison *c, uint64_t begin, uint64_t addr)
{
    struct code_flow flow = { code_read, code_accept, &c->code };
    const struct frame_rule *told = eh_rows_find(&c->rows, addr);
    struct frame_rule rule;
    if (told->cfa != FRAME_CFA_OFFSET || told->cfa_register != FRAME_REGISTER_SP || told->ra != FRAME_AT_CFA)
        return;
    bool found = x64_flow_rule(&flow, addr, &rule);
    compare_rules(&c->to_return, found, told, &rule, false);
    found = x64_flow_rule_from(&flow, begin, addr, &rule);
    compare_rules(&c->from_start, found, told, &rule, true);
}

static void compare_function(struct comparison *c, uint64_t begin, uint64_t end)
{
    for (uint64_t addr = begin; addr < end;) {
        uint8_t bytes[X64_INSTRUCTION_MAX];
        struct x64_instruction instruction;
        size_t size = code_read(&c->code, addr, bytes, sizeof bytes);
        if (!x64_instruction_read(span_of(bytes, size), &instruction))
            return;
        compare_at(c, begin, addr);
        addr += instruction.size;
    }
}

static void check_tally(const char *way, const struct tally *tally, unsigned percent)
{
    unsigned all = tally->equal + tally->differ + tally->none;
    print_message("%s: of %u places %u equal, %u differ, %u without a rule\n", way, all, tally->equal,
                  tally->differ, tally->none);
    assert_true(all > 1000);
    assert_true(tally->equal * 100 > all * percent); /* without a stack to judge by */
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    char **path = user;
    if (strstr(info->dlpi_name, "/libc.so"))
        *path = strdup(info->dlpi_name);
    return *path != NULL;
}

static void test_real_code(void **state)
{
    (void)state;
    AUTO_FREE char *path = NULL;
    dl_iterate_phdr(find_libc, &path);
    if (!path || !IS_X86_64)
        skip();
    struct buffer bytes;
    buffer_init(&bytes, 64 << 20);
    struct comparison c = { 0 };
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    struct source file;
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    assert_true(source_over_fd(fd, 0, (uint64_t)status.st_size, &file, NULL));
    assert_true(source_load(&file, 0, (uint64_t)status.st_size, &bytes, NULL));
    struct elf e;
    assert_true(elf_unwind_open(&file, &c.image, NULL));
    assert_true(elf_open(&file, &e, NULL));
    assert_true(eh_rows_read(&e, &c.rows, NULL));
    elf_done(&e);
    for (size_t i = 0; i < c.image->segment_count; i++)
        if (c.image->segments[i].executable) {
            const struct elf_segment *s = &c.image->segments[i];
            c.code.addr = s->addr;
            c.code.bytes = span_part(buffer_span(&bytes), (size_t)s->file_off, (size_t)s->file_bytes);
        }
    for (size_t i = 0; i < c.rows.count; i += 37) {
        uint64_t begin, end, other_begin, other_end, addr = c.rows.base + c.rows.rows[i].start;
        bool is = eh_rows_function(&c.rows, addr, &begin, &end);
        assert_int_equal(elf_unwind_function(c.image, addr, &other_begin, &other_end), is);
        if (!is)
            continue;
        assert_int_equal(other_begin, begin);
        assert_int_equal(other_end, end);
        compare_function(&c, begin, end);
    }
    check_tally("to a return", &c.to_return, 90); /* what follows a call of abort() misleads */
    check_tally("from the start", &c.from_start, 93);
    elf_unwind_close(c.image);
    eh_rows_done(&c.rows);
    buffer_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_from_start),
                                        cmocka_unit_test(test_real_code) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
