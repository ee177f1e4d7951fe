/*
 * pe: the headers of a PE file, as .NET uses it for assemblies on every system.
 *
 * Layout: Microsoft "PE Format"; what is special on Linux (machine number, raw alignment) is in
 * dotnet/runtime docs/design/specs/PE-COFF.md. Only headers are read; callers load the parts they
 * want by RVA.
 */
#ifndef CLRPERF_READ_PE_H
#define CLRPERF_READ_PE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/lazy_bytes.h"
#include "base/source.h"

enum {
    PE_SECTIONS_MAX = 96,
    PE_DIRECTORIES = 16,
    PE_DIRECTORY_EXPORT = 0,
    PE_DIRECTORY_DEBUG = 6,
    PE_DIRECTORY_CLI = 14,
};

enum pe_machine { PE_MACHINE_OTHER, PE_MACHINE_X86, PE_MACHINE_X64, PE_MACHINE_ARM64 };

struct pe_range {
    uint32_t rva, size; /* bytes */
};

struct pe_section {
    uint32_t rva, virtual_size; /* bytes */
    uint32_t file_off, file_size;
    bool executable;
};

struct pe {
    enum pe_machine machine; /* without the operating system's mark */
    bool is_64;              /* PE32+ */
    uint32_t image_size;
    uint32_t section_count;
    struct pe_section sections[PE_SECTIONS_MAX];
    struct pe_range directories[PE_DIRECTORIES]; /* zero when absent */
};

/* The CLI ("COR20") header; zeroed ranges are absent. */
struct pe_cli {
    struct pe_range metadata;
    struct pe_range native_header; /* ReadyToRun's */
    uint32_t flags;                /* PE_CLI_... */
    uint32_t entry_point;          /* a token, or 0 */
};

enum { PE_CLI_IL_ONLY = 1, PE_CLI_IL_LIBRARY = 4 };

/* Reads the headers at the start of `file`. ERROR_INPUT when it is not a PE file. */
bool pe_read(const struct source *file, struct pe *out, struct error *err);
/* ERROR_UNSUPPORTED when the image has no CLI header. */
bool pe_read_cli(const struct source *file, const struct pe *pe, struct pe_cli *out, struct error *err);
/* The RVA of an exported name; ERROR_UNSUPPORTED when there is none of that name. */
bool pe_find_export(const struct source *file, const struct pe *pe, const char *name, uint32_t *out_rva,
                    struct error *err);

/* False when [rva, rva+size) is not wholly inside the file's part of one section. */
bool pe_file_offset(const struct pe *pe, uint32_t rva, uint32_t size, uint64_t *out_file_off);
/* The RVA of a byte of an executable section; false for any other file offset. */
bool pe_code_rva(const struct pe *pe, uint64_t file_off, uint32_t *out_rva);
/* Replaces the content of `out` by the bytes of `range`. */
/* As lazy_bytes_open(). */
struct lazy_bytes *pe_load_lazily(const struct source *file, const struct pe *pe, struct pe_range range,
                                  uint64_t ceiling, struct error *err);
bool pe_load(const struct source *file, const struct pe *pe, struct pe_range range, struct buffer *out,
             struct error *err);

#endif
