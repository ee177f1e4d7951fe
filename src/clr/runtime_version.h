/*
 * runtime_version: which .NET runtime an ELF file holds.
 *
 * An installed runtime says its version in its path (.../10.0.12/libcoreclr.so). A single-file host
 * has the runtime linked in; there the text "@(#)Version 10.0.1226.42308 @Commit: ..." tells it: the third
 * number is patch*100+year, or the year alone for x.0.0; 4.700 means 3.1.
 */
#ifndef CLRPERF_CLR_RUNTIME_VERSION_H
#define CLRPERF_CLR_RUNTIME_VERSION_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/source.h"

enum runtime_kind {
    RUNTIME_NONE,
    RUNTIME_CORECLR,
    RUNTIME_NATIVEAOT,
    RUNTIME_MONO,
};

struct runtime_version {
    char text[48]; /* "10.0.12", "11.0.0-preview.3.1", or "" when unknown */
};

/* "coreclr" and so on, as the JSON output has it; NULL for RUNTIME_NONE. */
const char *runtime_kind_name(enum runtime_kind kind);
/* What a process's runtime is shown as: its version, "Native AOT" where that is not known, ...; "" when
 * nothing is.
 */
const char *runtime_version_or_kind(enum runtime_kind kind, const struct runtime_version *version);
/* "10.0.12" and the like, of untrusted bytes; false when it is no version. */
bool runtime_version_from_name(struct span name, struct runtime_version *out);
/* From the folder that a runtime file lies in; false when that is no version. */
bool runtime_version_from_path(struct span path, struct runtime_version *out);
/* From "@(#)Version " on; false when no number follows. */
bool runtime_version_from_text(struct span text, struct runtime_version *out);
/*
 * Looks through the loaded parts of an executable for a runtime that is linked in. RUNTIME_NONE when
 * there is none. `file` is untrusted; at most RUNTIME_SCAN_BYTES_MAX of it are read.
 */
enum { RUNTIME_SCAN_BYTES_MAX = 64 << 20 };
bool runtime_version_scan(const struct source *file, enum runtime_kind *out_kind, struct runtime_version *out,
                          struct error *err);

#endif
