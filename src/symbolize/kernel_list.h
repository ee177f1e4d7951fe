/*
 * kernel_list: the kernel's symbols, kept in a file for as long as the kernel's state is the same.
 *
 * To print them all takes the kernel 50 ms and more; a few are wanted. The file "list" has the lines of the
 * kernel proper and of its modules as they were printed, in parts, each for a range of addresses in which
 * nothing else can lie:
 *
 *   head    8 bytes "clkern1\n", then little-endian: u64 key[2], u64 offset of the index, u32 parts, u32 0,
 *           u64 XXH3 of the head before this and of the index
 *   parts   text, whole lines, at most KERNEL_LIST_PART_BYTES
 *   index   by part: u64 start, end (of its addresses), offset, size, XXH3 of its text
 *
 * All parts with one range make one answer. The file and the directory must be ours alone.
 */
#ifndef CLRPERF_SYMBOLIZE_KERNEL_LIST_H
#define CLRPERF_SYMBOLIZE_KERNEL_LIST_H

#include "symbolize/kernel_boot.h"
#include "symbolize/kernel_symbols.h"

#define KERNEL_LIST_MAGIC "clkern1\n"
#define KERNEL_LIST_NAME  "list"

enum {
    KERNEL_LIST_PART_BYTES = 8 << 10,
    KERNEL_LIST_PARTS_MAX = 8 << 10,
    KERNEL_LIST_HEAD_BYTES = 48,
    KERNEL_LIST_ROW_BYTES = 40,
};

struct kernel_list_part {
    uint64_t start, end; /* addresses [start, end) */
    uint64_t offset, size, hash;
};

uint64_t kernel_list_hash(struct span text);
/* Of the head but for its hash, and of the index. */
uint64_t kernel_list_hash_index(struct span head, struct span index);

/* In the directory at `path`, absolute: an open file that the caller closes, or -1. */
int kernel_list_open(const char *path);

enum kernel_list_answer {
    KERNEL_LIST_ANSWERED,
    KERNEL_LIST_LACKS, /* it is good, and not for all of the addresses */
    KERNEL_LIST_BAD,   /* it is of another state of the kernel, or damaged */
};

/*
 * Answers as kernel_symbols_resolve() does of /proc/kallsyms, which is open at `live_fd`: its beginning is
 * compared, in place. Unless it answered nothing was emitted.
 */
enum kernel_list_answer kernel_list_resolve(int fd, int live_fd, const struct kernel_boot *boot,
                                            const uint64_t *addrs, size_t count, kernel_symbol_fn *emit,
                                            void *user, struct kernel_symbols_result *out);

#endif
