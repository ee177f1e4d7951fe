/*
 * kept_lines: answers about source lines, kept for the next look at the same code.
 *
 * Debug files are compressed, and to unpack libc's takes longer than all the rest of a look at a process. A
 * file "0123....lines" has answers of the build with that id (symbolize/source_answers.h); it counts for the
 * same state of the same debug file only.
 */
#ifndef CLRPERF_SYMBOLIZE_KEPT_LINES_H
#define CLRPERF_SYMBOLIZE_KEPT_LINES_H

#include "symbolize/kept_folder.h"
#include "symbolize/source_answers.h"

/* What is kept of the build; no rows when that is nothing. The caller ends *out. */
void kept_lines_load(const struct kept_folder *folder, const struct symbol_id *id,
                     const struct file_stamp *stamp, struct source_answers *out);
/* Keeps sorted answers in the place of what is there. Fails where nothing can be kept. */
bool kept_lines_save(const struct kept_folder *folder, const struct symbol_id *id,
                     const struct file_stamp *stamp, const struct source_answers *answers, struct error *err);

#endif
