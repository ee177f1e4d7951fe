#include "symbolize/vdso_names.h"

/* In struct pvclock_vcpu_time_info (Linux, arch/x86/include/asm/pvclock-abi.h), and a bit of it. */
enum { PVCLOCK_FLAGS_OFF = 0x1d, PVCLOCK_TSC_STABLE = 1 };

static bool has_pair(struct span code, uint8_t first, uint8_t second)
{
    for (size_t i = 0; i + 1 < code.size; i++)
        if (code.data[i] == first && code.data[i + 1] == second)
            return true;
    return false;
}

/* rdtsc, or rdtscp, whose last byte decides nothing. */
static bool reads_counter(struct span code)
{
    return has_pair(code, 0x0f, 0x31) || has_pair(code, 0x01, 0xf9);
}

/* testb $1, 0x1d(%register) */
static bool looks_for_stable_clock(struct span code)
{
    for (size_t i = 0; i + 3 < code.size; i++) {
        const uint8_t *at = code.data + i;
        if (at[0] == 0xf6 && (at[1] & 0xf8) == 0x40 && at[2] == PVCLOCK_FLAGS_OFF &&
            at[3] == PVCLOCK_TSC_STABLE)
            return true;
    }
    return false;
}

const char *vdso_name_of(struct span code)
{
    return reads_counter(code) && looks_for_stable_clock(code) ? "vread_pvclock" : NULL;
}
