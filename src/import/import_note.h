/*
 * import_note: remarks on an imported file that the user must see, collected in FACT_NOTES.
 */
#ifndef CLRPERF_IMPORT_IMPORT_NOTE_H
#define CLRPERF_IMPORT_IMPORT_NOTE_H

#include "trace/trace.h"

/* Appends to what is there. Longer ones than 256 bytes are cut. */
void import_note(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
