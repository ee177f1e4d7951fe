/*
 * core_file: a core dump, as the kernel, gcore and createdump write them.
 *
 * An ELF file of type ET_CORE: PT_LOAD segments hold memory, notes tell threads (NT_PRSTATUS), the process
 * (NT_PRPSINFO), what ended it (NT_SIGINFO) and which files were mapped where (NT_FILE). Specified in elf(5)
 * and core(5); the notes in the Linux source, include/uapi/linux/elfcore.h and fs/binfmt_elf.c; createdump in
 * dotnet/runtime, src/coreclr/debug/createdump. What kind of dump it is decides what memory is there: what is
 * in no segment's bytes cannot be read. 64-bit little-endian, x86-64 and arm64.
 */
#ifndef CLRPERF_READ_CORE_FILE_H
#define CLRPERF_READ_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/source.h"

enum {
    CORE_SEGMENTS_MAX = 1 << 20,
    CORE_FILES_MAX = 1 << 18,
    CORE_THREADS_MAX = 1 << 16,
    CORE_USER_REGS_BYTES_MAX = 34 * 8,
    CORE_AUXILIARY_BYTES_MAX = 1024,
};

/* Entries of the auxiliary vector, by elf.h's AT_ numbers. */
enum core_auxiliary {
    CORE_AUXILIARY_ENTRY = 9, /* where the program begins */
    CORE_AUXILIARY_PLATFORM = 15,
    CORE_AUXILIARY_RANDOM = 25,
};

struct core_thread {
    pid_t tid;
    uint16_t signal; /* that it died of or was stopped by; 0: none. The kernel tells
                        it of all threads, the one that it was sent to is the first */
    uint8_t user_regs[CORE_USER_REGS_BYTES_MAX]; /* struct user_regs_struct of its machine, see sys/user.h */
};

/* What the signal that ended the process was about. */
struct core_fault {
    uint16_t signal; /* 0: not told */
    bool has_addr;   /* it is of an address that was used */
    uint64_t addr;
};

struct core_load {
    uint64_t start, end; /* virtual; the bytes that are in the file */
    uint64_t file_off;   /* in the dump */
};

struct core_file {
    /* What the dump itself holds; mappings are its segments and the files of NT_FILE. */
    struct memory memory;
    uint16_t machine;                            /* ELF_X86_64 or ELF_AARCH64 */
    pid_t pid;                                   /* 0: not told */
    char name[17];                               /* of the executable, "" when not told; untrusted */
    char command_line[81];                       /* its beginning, if at all; untrusted */
    uint8_t auxiliary[CORE_AUXILIARY_BYTES_MAX]; /* the auxiliary vector, entries of two u64; untrusted */
    size_t auxiliary_bytes;
    struct core_thread *threads;
    size_t thread_count, thread_capacity;
    struct core_fault fault;
    bool has_files;      /* it tells which files were mapped */
    uint64_t lost_bytes; /* of segments that lie behind the end of the file: it was cut */
    /* its own */
    struct source file;
    struct core_load *loads; /* by address */
    size_t load_count, load_capacity;
    struct memory_mapping *mappings;
    size_t mapping_count, mapping_capacity;
    struct arena names;
};

/* Whether a file begins like a core dump. */
bool core_file_recognises(struct span start);
/*
 * `file` is copied, what it reads from borrowed for as long as `out`. ERROR_INPUT: not a core dump, or one
 * without threads; ERROR_UNSUPPORTED: of another machine; ERROR_LIMIT. Undo with core_file_close().
 */
bool core_file_open(const struct source *file, struct core_file *out, struct error *err);
void core_file_close(struct core_file *core);

/* What the auxiliary vector says, or 0. */
uint64_t core_file_auxiliary(const struct core_file *core, enum core_auxiliary type);
/* The size of its entries, that of its end left out. */
size_t core_file_auxiliary_bytes(const struct core_file *core);

#endif
