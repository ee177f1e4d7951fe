/*
 * eh_index: the call frame information of an ELF image, compiled function by function as it is asked for.
 *
 * A look at one process needs a hundred functions of an image that has twenty thousand. .eh_frame_hdr has the
 * starts of all, sorted, and where each one's FDE lies. Specified in the Linux Standard Base, "Exception
 * Frames".
 */
#ifndef CLRPERF_READ_EH_INDEX_H
#define CLRPERF_READ_EH_INDEX_H

#include "read/eh_frame_rows.h"

/* Where each section is linked; their bytes are taken over, also on failure. */
struct eh_sections {
    struct buffer frame, header;
    uint64_t frame_addr, header_addr;
    uint64_t base; /* the image's lowest address, as linked */
    uint16_t machine;
};

/* Belongs to one thread. */
struct eh_index;

/* ERROR_UNSUPPORTED without a table that can be searched, as linkers write it. */
bool eh_index_over(struct eh_sections *sections, struct eh_index **out, struct error *err);
/* The same for an image. Fails as eh_frame_load() does, too. */
bool eh_index_open(const struct elf *e, struct eh_index **out, struct error *err);
/* NULL is fine. */
void eh_index_close(struct eh_index *index);

/*
 * The rows of the function around an address as linked, and of nothing else: what eh_rows_find() and
 * eh_rows_function() say there. NULL when there is none. Valid until as many functions were compiled that all
 * are (EH_INDEX_FUNCTIONS_MAX); then they are all in one.
 */
const struct eh_rows *eh_index_rows(struct eh_index *index, uint64_t addr);

enum { EH_INDEX_FUNCTIONS_MAX = 1024 };

/*
 * The rule at an address as linked, with the register of that DWARF number in the place of the frame pointer.
 * False when no function is there, it is not understood, or all functions were compiled.
 */
bool eh_index_register(const struct eh_index *index, uint64_t addr, uint8_t number, struct frame_rule *out);

/* Functions whose description has these bytes. At most `max`; returns how many there are. */
size_t eh_index_with_bytes(const struct eh_index *index, struct span bytes, uint64_t *out_starts, size_t max);

#endif
