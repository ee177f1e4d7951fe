#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/x64_instruction.h"

static const struct {
    const char *name;
    uint8_t code[X64_INSTRUCTION_MAX + 1];
    uint8_t size; /* 0: it is none */
    enum x64_kind kind;
    int64_t value;
} cases[] = {
    { "ret", { 0xc3 }, 1, X64_RETURN, 0 },
    { "rep ret", { 0xf3, 0xc3 }, 2, X64_RETURN, 0 },
    { "ret 16", { 0xc2, 16, 0 }, 3, X64_RETURN, 16 },
    { "push rbp", { 0x55 }, 1, X64_PUSH_RBP, 0 },
    { "push r13", { 0x41, 0x55 }, 2, X64_PUSH, 0 },
    { "push 0x12345678", { 0x68, 0x78, 0x56, 0x34, 0x12 }, 5, X64_PUSH, 0 },
    { "push [rip+1]", { 0xff, 0x35, 1, 0, 0, 0 }, 6, X64_PUSH, 0 },
    { "pop rbp", { 0x5d }, 1, X64_POP_RBP, 0 },
    { "pop r13", { 0x41, 0x5d }, 2, X64_POP, 0 },
    { "pop rsp", { 0x5c }, 1, X64_RSP_LOST, 0 },
    { "pop r12", { 0x41, 0x5c }, 2, X64_POP, 0 },
    { "add rsp, 40", { 0x48, 0x83, 0xc4, 40 }, 4, X64_RSP_OF_RSP, 40 },
    { "sub rsp, 0x1000", { 0x48, 0x81, 0xec, 0, 0x10, 0, 0 }, 7, X64_RSP_OF_RSP, -0x1000 },
    { "add r12, 40", { 0x49, 0x83, 0xc4, 40 }, 4, X64_PLAIN, 0 },
    { "cmp rsp, 40", { 0x48, 0x83, 0xfc, 40 }, 4, X64_PLAIN, 0 },
    { "and rsp, -16", { 0x48, 0x83, 0xe4, 0xf0 }, 4, X64_RSP_LOST, 0 },
    { "sub rsp, rax", { 0x48, 0x29, 0xc4 }, 3, X64_RSP_LOST, 0 },
    { "sub rsp, [rax]", { 0x48, 0x2b, 0x20 }, 3, X64_RSP_LOST, 0 },
    { "lea rsp, [rsp+8]", { 0x48, 0x8d, 0x64, 0x24, 8 }, 5, X64_RSP_OF_RSP, 8 },
    { "lea rsp, [rbp-40]", { 0x48, 0x8d, 0x65, 0xd8 }, 4, X64_RSP_OF_RBP, -40 },
    { "lea rsp, [rbp+rax-40]", { 0x48, 0x8d, 0x64, 0x05, 0xd8 }, 5, X64_RSP_LOST, 0 },
    { "lea rsp, [r10-8]", { 0x49, 0x8d, 0x62, 0xf8 }, 4, X64_RSP_LOST, 0 },
    { "lea rbp, [rsp+0x80]", { 0x48, 0x8d, 0xac, 0x24, 0x80, 0, 0, 0 }, 8, X64_RBP_OF_RSP, 0x80 },
    { "lea rax, [rip+1]", { 0x48, 0x8d, 0x05, 1, 0, 0, 0 }, 7, X64_ADDRESS_OF, 1 },
    { "mov rbp, rsp", { 0x48, 0x89, 0xe5 }, 3, X64_RBP_OF_RSP, 0 },
    { "mov rbp, rsp, the other way", { 0x48, 0x8b, 0xec }, 3, X64_RBP_OF_RSP, 0 },
    { "mov rsp, rbp", { 0x48, 0x89, 0xec }, 3, X64_RSP_OF_RBP, 0 },
    { "mov rsp, rax", { 0x48, 0x89, 0xc4 }, 3, X64_RSP_LOST, 0 },
    { "mov [rsp+8], rbp", { 0x48, 0x89, 0x6c, 0x24, 8 }, 5, X64_SAVE_RBP, 8 },
    { "mov [rsp+rax+8], rbp", { 0x48, 0x89, 0x6c, 0x04, 8 }, 5, X64_PLAIN, 0 },
    { "mov rbp, [rsp+8]", { 0x48, 0x8b, 0x6c, 0x24, 8 }, 5, X64_LOAD_RBP, 8 },
    { "mov r13, [rsp+8]", { 0x4c, 0x8b, 0x6c, 0x24, 8 }, 5, X64_PLAIN, 0 },
    { "leave", { 0xc9 }, 1, X64_LEAVE, 0 },
    { "jmp +16", { 0xeb, 16 }, 2, X64_JUMP, 16 },
    { "jmp -2", { 0xe9, 0xfe, 0xff, 0xff, 0xff }, 5, X64_JUMP, -2 },
    { "je -2", { 0x74, 0xfe }, 2, X64_BRANCH, -2 },
    { "jne +0x100", { 0x0f, 0x85, 0, 1, 0, 0 }, 6, X64_BRANCH, 0x100 },
    { "bnd jmp", { 0xf2, 0xe9, 4, 0, 0, 0 }, 6, X64_JUMP, 4 },
    { "jmp rax", { 0xff, 0xe0 }, 2, X64_JUMP_AWAY, 0 },
    { "notrack jmp [rax]", { 0x3e, 0xff, 0x20 }, 3, X64_JUMP_AWAY, 0 },
    { "call", { 0xe8, 0xf0, 0xff, 0xff, 0xff }, 5, X64_CALL, -16 },
    { "call [rax+8]", { 0xff, 0x50, 8 }, 3, X64_PLAIN, 0 },
    { "ud2", { 0x0f, 0x0b }, 2, X64_STOP, 0 },
    { "int3", { 0xcc }, 1, X64_STOP, 0 },
    { "endbr64", { 0xf3, 0x0f, 0x1e, 0xfa }, 4, X64_PLAIN, 0 },
    { "nop of 10 bytes", { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 }, 10, X64_PLAIN, 0 },
    { "mov rax, fs:[0x28]", { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0 }, 9, X64_PLAIN, 0 },
    { "movabs rax", { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, X64_PLAIN, 0 },
    { "mov ax, 1", { 0x66, 0xb8, 1, 0 }, 4, X64_PLAIN, 0 },
    { "test eax, [rbx]: no number", { 0x85, 0x03 }, 2, X64_PLAIN, 0 },
    { "test byte [rbx], 1", { 0xf6, 0x03, 1 }, 3, X64_PLAIN, 0 },
    { "not byte [rbx]", { 0xf6, 0x13 }, 2, X64_PLAIN, 0 },
    { "test ecx, 1", { 0xf7, 0xc1, 1, 0, 0, 0 }, 6, X64_PLAIN, 0 },
    { "pinsrw xmm0, eax, 1", { 0x66, 0x0f, 0xc4, 0xc0, 1 }, 5, X64_PLAIN, 0 },
    { "pshufb", { 0x66, 0x0f, 0x38, 0x00, 0xc1 }, 5, X64_PLAIN, 0 },
    { "palignr", { 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8 }, 6, X64_PLAIN, 0 },
    { "vzeroupper", { 0xc5, 0xf8, 0x77 }, 3, X64_PLAIN, 0 },
    { "vpaddd ymm0, ymm1, [rsp+32]", { 0xc5, 0xf5, 0xfe, 0x44, 0x24, 32 }, 6, X64_PLAIN, 0 },
    { "vinserti128", { 0xc4, 0xe3, 0x7d, 0x38, 0xc1, 1 }, 6, X64_PLAIN, 0 },
    { "vpshufb ymm", { 0xc4, 0xe2, 0x7d, 0x00, 0xc1 }, 5, X64_PLAIN, 0 },
    { "vpternlogd zmm0, zmm1, [rax], 7", { 0x62, 0xf3, 0x75, 0x48, 0x25, 0x00, 7 }, 7, X64_PLAIN, 0 },
    { "push es", { 0x06 }, 0, X64_PLAIN, 0 },
    { "more prefixes than an instruction can have",
      { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 },
      0,
      X64_PLAIN,
      0 },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct x64_instruction read;
        bool known = x64_instruction_read(span_of(cases[i].code, sizeof cases[i].code), &read);
        if (known != (cases[i].size != 0))
            fail_msg("%s: %s", cases[i].name, known ? "was read" : "is not known");
        if (known &&
            (read.size != cases[i].size || read.kind != cases[i].kind || read.value != cases[i].value))
            fail_msg("%s: %u bytes, kind %d, value %lld", cases[i].name, read.size, read.kind,
                     (long long)read.value);
    }
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t size = 0; size < cases[i].size; size++) {
            struct x64_instruction read;
            if (x64_instruction_read(span_of(cases[i].code, size), &read))
                fail_msg("%s: read of %zu bytes", cases[i].name, size);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_cut) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
