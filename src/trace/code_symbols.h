/*
 * code_symbols: named ranges of a process's code, by address.
 */
#ifndef CLRPERF_TRACE_CODE_SYMBOLS_H
#define CLRPERF_TRACE_CODE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/*
 * The first line of a perf map that we write, by which we know it again: a symbol where no code can be.
 */
#define CODE_SYMBOLS_MARK "0 1 [clrperf map]\n"

struct code_symbol {
    uint64_t addr, size_bytes;
    uint32_t name; /* string of the trace */
    uint32_t rank; /* of two at one place the lower stays */
};

struct code_symbols {
    struct code_symbol *rows; /* owned */
    size_t count, capacity;
};

void code_symbols_done(struct code_symbols *symbols);
/* A range that is empty, or reaches past the end of the address space, is left out. */
void code_symbols_add(struct code_symbols *symbols, struct code_symbol symbol);
/* Sorts; afterwards no two overlap: one ends where the next begins. */
void code_symbols_settle(struct code_symbols *symbols);
/* Settled: the row of the first that begins at or behind `addr`, or the count. */
size_t code_symbols_from(const struct code_symbols *symbols, uint64_t addr);

#endif
