/*
 * eh_frame_rows: the call frame information of an ELF image, compiled to a table that is fast to ask.
 *
 * The instructions of every FDE are run once. What comes out is one row for each address where the rule
 * changes, eight bytes long: the rules themselves repeat (61 different ones in the 96,000 rows of libcoreclr)
 * and are kept once. Specified in DWARF 5, 6.4.2, and the Linux Standard Base, "Exception Frames". x86-64 and
 * aarch64.
 */
#ifndef CLRPERF_READ_EH_FRAME_ROWS_H
#define CLRPERF_READ_EH_FRAME_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/elf.h"
#include "read/frame_rule.h"

enum {
    EH_ROWS_MAX = 8 << 20,
    EH_RULES_MAX = 1 << 20,
};

struct eh_row {
    uint32_t start;                   /* from the table's base; the row counts up to the next one's */
    uint32_t rule : 31, function : 1; /* index into the rules; whether a function starts here */
};

/* Immutable once compiled: any thread may ask. */
struct eh_rows {
    uint64_t base;       /* the image's lowest address, as linked */
    struct eh_row *rows; /* sorted */
    size_t count;
    struct frame_rule *rules; /* [0] is FRAME_CFA_NONE */
    size_t rule_count;
    uint64_t skipped; /* functions that overlap others, or whose description is damaged */
};

/*
 * `section` is the content of .eh_frame, linked at `section_addr`; `machine` as in an ELF header. Damaged
 * parts are skipped and counted. Fails with ERROR_LIMIT past EH_ROWS_MAX. On success the caller ends with
 * eh_rows_done().
 */
bool eh_rows_compile(struct span section, uint64_t section_addr, uint64_t base, uint16_t machine,
                     struct eh_rows *out, struct error *err);
/* The rows of one function only, whose FDE lies at that offset of the section; no rows when it is damaged. */
void eh_rows_compile_at(struct span section, uint64_t section_addr, uint64_t fde_off, uint64_t base,
                        uint16_t machine, struct eh_rows *out);
/* The same with the register of that DWARF number in the place of the frame pointer, in all rules. */
void eh_rows_compile_register_at(struct span section, uint64_t section_addr, uint64_t fde_off, uint64_t base,
                                 uint16_t machine, uint8_t number, struct eh_rows *out);
/* All of an image. Fails as eh_frame_load() does, too. */
bool eh_rows_read(const struct elf *e, struct eh_rows *out, struct error *err);
void eh_rows_done(struct eh_rows *rows);

/* The rule at an address as linked; its cfa is FRAME_CFA_NONE where no function is. Never NULL. */
const struct frame_rule *eh_rows_find(const struct eh_rows *rows, uint64_t addr);
/* The function around an address as linked; false when there is none. */
bool eh_rows_function(const struct eh_rows *rows, uint64_t addr, uint64_t *out_start, uint64_t *out_end);

#endif
