/*
 * kernel_symbols: names of kernel addresses from /proc/kallsyms.
 *
 * The list has 120,000 lines and more, and a profile needs few of them: it is streamed once against
 * the addresses seen, and only their names are kept. Specified in proc(5).
 */
#ifndef CLRPERF_SYMBOLIZE_KERNEL_SYMBOLS_H
#define CLRPERF_SYMBOLIZE_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What an unnamed kernel function is shown as, and the module of the kernel proper. */
#define KERNEL_MODULE "[kernel]"

/*
 * `index` is the address's place in the list. `start` is the function's first address, 0 when no
 * name is known: `name` is then "[kernel]". `module` is "[kernel]", or as in "[nf_tables]". Texts are
 * valid during the call.
 */
typedef void kernel_symbol_fn(void *user, size_t index, const char *name, const char *module, uint64_t start);

struct kernel_symbols_result {
    size_t named;
    bool hidden; /* the kernel shows no addresses to us (kernel.kptr_restrict, kernel.perf_event_paranoid) */
};

/*
 * Reads the list from `fd`, from where it stands, and calls `emit` once for each of the `count`
 * addresses, which are sorted. Of several symbols at one address a global one wins, then the first.
 * Fails when the list cannot be read; then nothing was emitted.
 */
bool kernel_symbols_resolve(int fd, const uint64_t *addrs, size_t count, kernel_symbol_fn *emit, void *user,
                            struct kernel_symbols_result *out, struct error *err);

#endif
