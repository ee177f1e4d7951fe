/*
 * kernel_lookup: the kernel's names of some addresses, looked up by a thread of its own.
 *
 * Reading /proc/kallsyms takes the kernel 40 ms or more, whatever one asks; once for each boot, as the list
 * is kept (symbolize/kernel_list.h). At the end of a recording the addresses are known while runtimes are
 * still telling their methods: the time is spent then. Where no thread can be had, it is read at once.
 */
#ifndef CLRPERF_SYMBOLIZE_KERNEL_LOOKUP_H
#define CLRPERF_SYMBOLIZE_KERNEL_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/kernel_symbols.h"

struct kernel_lookup;

/*
 * Begins to look up `count` sorted addresses, which are copied; of the running kernel. `kept` is the
 * directory of the kept list (symbolize/kernel_list.h), absolute and borrowed, or NULL: then it is read anew.
 */
struct kernel_lookup *kernel_lookup_start(const char *kept, const uint64_t *addrs, size_t count);
/*
 * Waits for the thread and calls `emit` as kernel_symbols_resolve() does. False when these are not the
 * addresses that were looked up, or the list could not be read; then nothing was emitted.
 */
bool kernel_lookup_answer(struct kernel_lookup *lookup, const uint64_t *addrs, size_t count,
                          kernel_symbol_fn *emit, void *user, struct kernel_symbols_result *out);
/* Waits for the thread. */
void kernel_lookup_free(struct kernel_lookup *lookup);

#endif
