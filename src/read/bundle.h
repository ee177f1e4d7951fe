/*
 * bundle: the directory of a single-file .NET program, which carries its assemblies in its executable.
 *
 * Specified by dotnet/runtime src/native/corehost/bundle/ and docs/design/features/bundler.md; read for
 * versions 1 (.NET Core 3), 2 (.NET 5) and 6 (.NET 6 and later).
 */
#ifndef CLRPERF_READ_BUNDLE_H
#define CLRPERF_READ_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"

enum bundle_kind {
    BUNDLE_UNKNOWN,
    BUNDLE_ASSEMBLY,
    BUNDLE_NATIVE,
    BUNDLE_DEPS_JSON,
    BUNDLE_RUNTIME_CONFIG,
    BUNDLE_SYMBOLS
};

struct bundle_entry {
    const char *path;          /* relative, with '/'; owned by the bundle */
    uint64_t file_off;         /* of its first byte in the executable */
    uint64_t size_bytes;       /* of the file that was put in */
    uint64_t compressed_bytes; /* what it takes in the executable when compressed; 0: stored as it is */
    enum bundle_kind kind;
};

struct bundle; /* immutable once open */

/* Reads the directory. ERROR_UNSUPPORTED when `file` is no single-file program. */
bool bundle_open(const struct source *file, struct bundle **out, struct error *err);
void bundle_close(struct bundle *bundle);

size_t bundle_count(const struct bundle *bundle);
/* Entries in the order of their offsets. */
const struct bundle_entry *bundle_at(const struct bundle *bundle, size_t index);
/* The entry that holds a byte of the executable, or NULL. */
const struct bundle_entry *bundle_find(const struct bundle *bundle, uint64_t file_off);
/* The entry of a relative path, or NULL. */
const struct bundle_entry *bundle_find_path(const struct bundle *bundle, const char *path);

/* The first bytes of an entry into `out`, unpacked: as many as its ceiling allows. `file`: the executable. */
bool bundle_entry_head(const struct source *file, const struct bundle_entry *entry, struct buffer *out,
                       struct error *err);
/*
 * A copy of an entry, unpacked, in a file of its own that has no name: the caller closes *out_fd.
 * ERROR_LIMIT past UNPACK_BYTES_MAX.
 */
bool bundle_entry_copy(const struct source *file, const struct bundle_entry *entry, int *out_fd,
                       struct error *err);
/* The bytes of an entry, unpacked if they are packed: the caller closes out->fd. `file` is over one, too. */
bool bundle_entry_open(const struct source *file, const struct bundle_entry *entry, struct source *out,
                       struct error *err);

#endif
