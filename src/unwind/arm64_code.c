#include "unwind/arm64_code.h"

enum {
    INSTRUCTION_BYTES = 4,
    PUSHED_BYTES = 16,
};

/* The last instruction of `before`; 0, which is none, when there is no room for one. */
static uint32_t last_instruction(struct span before)
{
    return before.size >= INSTRUCTION_BYTES ? load_u32le(before.data + before.size - INSTRUCTION_BYTES) : 0;
}

bool arm64_is_after_call(struct span before)
{
    uint32_t code = last_instruction(before);
    bool direct = (code & 0xfc000000) == 0x94000000;        /* bl */
    bool indirect = (code & 0xfffffc1f) == 0xd63f0000;      /* blr */
    bool authenticated = (code & 0xfefff800) == 0xd63f0800; /* blraa and its kin */
    return direct || indirect || authenticated;
}

bool arm64_is_direct_call(struct span before, uint64_t ip, uint64_t *out_target)
{
    uint32_t code = last_instruction(before);
    if ((code & 0xfc000000) != 0x94000000) /* bl */
        return false;
    int64_t words = (int64_t)((uint64_t)code << 38) >> 38;
    *out_target = ip - INSTRUCTION_BYTES + (uint64_t)(words * INSTRUCTION_BYTES);
    return true;
}

bool arm64_is_after_syscall(struct span before)
{
    return last_instruction(before) == 0xd4000001; /* svc #0 */
}

bool arm64_is_thread_birth(struct span code)
{
    uint32_t first = code.size >= INSTRUCTION_BYTES ? load_u32le(code.data) : 0;
    return (first & 0xff00001f) == 0xb4000000 || first == 0xf100001f; /* cbz x0; cmp x0, #0 */
}

bool arm64_is_thread_exit(struct span code)
{
    return code.size >= 2 * INSTRUCTION_BYTES && load_u32le(code.data) == 0xd2800ba8 && /* mov x8, #93 */
           load_u32le(code.data + INSTRUCTION_BYTES) == 0xd4000001;                     /* svc #0 */
}

/* It pushes two registers, then loads the resolver's address. */
uint32_t arm64_bare_depth(struct span before, struct span code)
{
    (void)code;
    for (size_t at = 0; at + INSTRUCTION_BYTES <= before.size; at += INSTRUCTION_BYTES)
        if (load_u32le(before.data + at) == 0xa9bf7bf0) /* stp x16, x30, [sp, #-16]! */
            return PUSHED_BYTES;
    return 0;
}

bool arm64_is_signal_return(struct span code)
{
    return code.size >= ARM64_SIGNAL_RETURN_BYTES && load_u32le(code.data) == 0xd2801168 && /* mov x8, #139 */
           load_u32le(code.data + INSTRUCTION_BYTES) == 0xd4000001;                         /* svc #0 */
}
