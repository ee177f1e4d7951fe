#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "read/unwind_info.h"
#include "unwind/x64_code.h"
#include "unwind/x64_flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, as code. */
static size_t read_input(void *user, uint64_t addr, uint8_t *into, size_t size)
{
    const struct span *input = user;
    size_t left = addr < input->size ? input->size - (size_t)addr : 0, part = left < size ? left : size;
    if (part)
        memcpy(into, input->data + addr, part);
    return part;
}

static bool accept_some(void *user, const struct frame_rule *rule)
{
    (void)user;
    if (rule->cfa != FRAME_CFA_OFFSET || rule->ra != FRAME_AT_CFA || rule->ra_off != -8)
        __builtin_trap();
    return rule->cfa_off % 3 == 0;
}

static void follow(struct span input)
{
    struct code_flow flow = { read_input, accept_some, &input };
    struct frame_rule rule;
    for (uint64_t addr = 0; addr < 100; addr += 9) {
        x64_flow_rule(&flow, addr, &rule);
        x64_flow_rule_from(&flow, 0, addr, &rule);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_rule rule;
    for (uint32_t off = 0; off < 300; off += 7)
        if (unwind_info_rule(span_of(data, size), off, &rule) &&
            (rule.cfa != FRAME_CFA_OFFSET || rule.ra != FRAME_AT_CFA || rule.ra_off != -8))
            __builtin_trap();
    if (x64_epilog(span_of(data, size), 0x1800, 0x1000, 0x2000, &rule) && rule.ra_off != -8)
        __builtin_trap();
    x64_is_after_call(span_of(data, size));
    x64_is_thread_exit(span_of(data, size));
    x64_bare_depth(span_of(data, size / 2), span_of(data + size / 2, size - size / 2));
    follow(span_of(data, size));
    return 0;
}
