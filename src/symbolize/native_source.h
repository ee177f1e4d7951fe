/*
 * native_source: where native code is in its source, by the DWARF of one ELF file: functions and their lines.
 */
#ifndef CLRPERF_SYMBOLIZE_NATIVE_SOURCE_H
#define CLRPERF_SYMBOLIZE_NATIVE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/elf.h"

enum { SOURCE_FRAMES_MAX = 65 /* at one address */ };

/* A function at an address, and the line it is at there. */
struct source_frame {
    const char *function; /* one that was inlined, as it is shown; NULL for the function whose code it is */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};

/*
 * What is at address `index`, valid during the call: functions that were inlined, each into the next one, and
 * at last, where frames[count - 1] is, the function itself. At most once for an address.
 */
typedef void native_source_fn(void *user, size_t index, const struct source_frame *frames, size_t count);

/* Whether the file tells of source lines at all. */
bool native_source_has(const struct elf *e);
/* Answers `addrs`, as linked, ascending. Says nothing where the file is damaged, or too large. */
void native_source_find(const struct elf *e, const uint64_t *addrs, size_t count, native_source_fn *answer,
                        void *user);

#endif
