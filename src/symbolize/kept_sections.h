/*
 * kept_sections: the compressed debug sections of a file, kept unpacked for the next look at the same build.
 *
 * For addresses of which symbolize/kept_lines has no answer. A file "0123....dwarf" in its directory is an
 * ELF file of those sections alone, and of the state of the debug file they are of: it counts for that only.
 */
#ifndef CLRPERF_SYMBOLIZE_KEPT_SECTIONS_H
#define CLRPERF_SYMBOLIZE_KEPT_SECTIONS_H

#include "base/file_stamp.h"
#include "read/elf.h"
#include "symbolize/kept_folder.h"

/* Of one build, of which more is not kept. */
enum { KEPT_SECTIONS_BYTES_MAX = 32 << 20 };

/* An open file to ask in the place of the debug file in that state, which the caller closes; -1: none. */
int kept_sections_find(const struct kept_folder *folder, const struct symbol_id *id,
                       const struct file_stamp *stamp);
/*
 * Keeps those of `e`, a debug file in that state. False when they are too large, not compressed, or cannot be
 * kept: then nothing is.
 */
bool kept_sections_save(const struct kept_folder *folder, const struct symbol_id *id,
                        const struct file_stamp *stamp, const struct elf *e);

#endif
