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

#include "base/cursor.h"
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

/* One line of the list. `module` is as written, "[nf_tables]"; empty for the kernel proper. */
struct kernel_symbol_line {
    uint64_t addr;
    char type; /* as nm(1) has it */
    struct span name, module;
};

/* `line` has no newline. False when it is none of the list's; *out is untouched then. */
bool kernel_symbol_line_read(struct span line, struct kernel_symbol_line *out);

/* A search for the symbols at or below some addresses. Belongs to one thread. */
struct kernel_symbols;

/* `addrs` are sorted, and borrowed until the end. */
struct kernel_symbols *kernel_symbols_begin(const uint64_t *addrs, size_t count);
/* Whole lines in the list's order: any of it, as long as those about the addresses are among them. */
void kernel_symbols_take(struct kernel_symbols *s, struct span lines);
/* No address is left without a symbol that a function's size could reach from. */
bool kernel_symbols_reach_all(struct kernel_symbols *s);
/* Calls `emit` once for each address, or not at all where it is NULL (`out` too, then), and frees `s`. */
void kernel_symbols_end(struct kernel_symbols *s, kernel_symbol_fn *emit, void *user,
                        struct kernel_symbols_result *out);

/* Sees the list go by, whole lines at a time. Texts are valid during the call. */
typedef void kernel_lines_fn(void *user, struct span lines);

struct kernel_lines_reader {
    kernel_lines_fn *take;
    void *user;
};

/*
 * Reads the list from `fd`, from where it stands, and calls `emit` once for each of the `count`
 * addresses, which are sorted. Of several symbols at one address a global one wins, then the first.
 * `also` is shown the list, or NULL. Fails when the list cannot be read; then nothing was emitted.
 */
bool kernel_symbols_resolve(int fd, const uint64_t *addrs, size_t count,
                            const struct kernel_lines_reader *also, kernel_symbol_fn *emit, void *user,
                            struct kernel_symbols_result *out, struct error *err);

#endif
