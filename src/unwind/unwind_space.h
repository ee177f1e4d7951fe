/*
 * unwind_space: what the unwinder asks about one process's memory.
 *
 * Answered by whoever knows the process: unwind/process_code for a running one, a table in tests.
 */
#ifndef CLRPERF_UNWIND_UNWIND_SPACE_H
#define CLRPERF_UNWIND_UNWIND_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf_unwind.h"
#include "unwind/jit_unwind.h"
#include "unwind/machine.h"
#include "unwind/pe_unwind.h"

enum unwind_code_kind {
    UNWIND_CODE_NONE, /* nothing executable is there */
    UNWIND_CODE_ELF,  /* the vdso too */
    UNWIND_CODE_PE,   /* precompiled .NET code */
    UNWIND_CODE_JITTED,
    UNWIND_CODE_OTHER, /* executable, nothing more is known: stubs, freed methods, other people's jits */
};

/* What lies at an address. What is pointed to stays valid until the space changes (see unwinder_forget()). */
struct unwind_code {
    enum unwind_code_kind kind;
    uint64_t bias; /* ELF, PE: the target's address less this is the image's (as linked, RVA) */
    const struct elf_unwind *elf;
    const struct pe_unwind *pe;
    const struct jit_unwind *jit;
};

struct unwind_space {
    const struct machine *machine;
    struct unwind_code (*find)(void *user, uint64_t addr);
    /* Code bytes of the target, exactly `size`. Asked at leaves, and where nothing else tells, some 100
     * bytes. */
    unwind_read_fn *read_code;
    void *user;
};

#endif
