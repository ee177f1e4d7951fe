/*
 * unwind_format: how the frames of compiled .NET code are described, on one machine.
 *
 * A table has an entry for each function (a method's body or a funclet), which leads to what is known of its
 * frame. Entries and frames are written as on Windows: Microsoft, "PE Format", section .pdata.
 */
#ifndef CLRPERF_READ_UNWIND_FORMAT_H
#define CLRPERF_READ_UNWIND_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"
#include "read/pe.h"

enum {
    UNWIND_FORMAT_ENTRY_BYTES_MAX = 12,
    UNWIND_FORMAT_HEADER_BYTES_MAX = 8,
    UNWIND_FORMAT_INFO_BYTES_MAX = 8192,
};

struct unwind_format {
    uint32_t entry_bytes;    /* of the table; the first word of an entry is where its function begins */
    uint32_t header_bytes;   /* of an info, after which its length is known */
    uint32_t info_bytes_max; /* at most UNWIND_FORMAT_INFO_BYTES_MAX */
    /* Where a function's info is, counted as its beginning is; 0 when it has none. */
    uint32_t (*info_at)(const uint8_t *entry);
    /* The length of an info as its header tells; 0 when it is damaged. */
    uint32_t (*info_bytes)(const uint8_t *header);
    /* Where a function ends; `header` may be NULL when it has no info. */
    uint32_t (*function_end)(const uint8_t *entry, const uint8_t *header);
    /* The rule `code_off` bytes behind a function's start. False when the info is not understood. */
    bool (*rule)(struct span info, uint32_t code_off, struct frame_rule *out);
};

extern const struct unwind_format unwind_format_x64, unwind_format_arm64;

/* NULL for other machines than x64 and arm64. */
const struct unwind_format *unwind_format_of(enum pe_machine machine);

#endif
