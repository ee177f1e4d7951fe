/*
 * elf: the parts of an ELF file that name its code.
 *
 * Only 64-bit little-endian files of x86-64 and aarch64. A few sections are read with pread when
 * asked for, since the file may be an attacker's and we may be root: every count bounds a loop, and
 * what unpacks has a ceiling. Specified in the System V ABI and elf(5); build ids and debug links
 * in the GDB manual, "Separate Debug Files"; .gnu_debugdata there in "MiniDebugInfo".
 */
#ifndef CLRPERF_READ_ELF_H
#define CLRPERF_READ_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"

enum {
    ELF_X86_64 = 62,
    ELF_AARCH64 = 183,
    ELF_BUILD_ID_MAX = 64,
    ELF_NAME_MAX = 16 * 1024, /* bytes of a symbol's name that are looked at */
};

enum elf_section_type {
    ELF_SECTION_PROGBITS = 1,
    ELF_SECTION_SYMTAB = 2,
    ELF_SECTION_RELA = 4,
    ELF_SECTION_NOTE = 7,
    ELF_SECTION_NOBITS = 8,
    ELF_SECTION_DYNSYM = 11,
};

enum elf_segment_type { ELF_SEGMENT_LOAD = 1, ELF_SEGMENT_NOTE = 4 };

enum elf_symbol_type { ELF_SYMBOL_UNTYPED, ELF_SYMBOL_OBJECT, ELF_SYMBOL_FUNCTION, ELF_SYMBOL_IFUNC = 10 };
enum elf_symbol_binding { ELF_BINDING_LOCAL, ELF_BINDING_GLOBAL, ELF_BINDING_WEAK };

struct elf_section {
    uint32_t name; /* into the section names; elf_section_name() */
    uint32_t type;
    uint64_t flags;
    uint64_t addr, file_off, size_bytes, entry_bytes;
    uint32_t link, info;
};

struct elf_segment {
    uint32_t type;
    bool executable;
    uint64_t file_off, addr, file_bytes, memory_bytes;
};

struct elf_symbol {
    uint64_t addr, size_bytes;
    uint32_t name; /* offset in the string table that belongs to the symbol table */
    uint32_t section;
    uint8_t type;    /* enum elf_symbol_type */
    uint8_t binding; /* enum elf_symbol_binding */
};

struct elf {
    struct source file; /* its descriptor or memory is borrowed */
    uint16_t machine;
    uint64_t entry;               /* where the kernel or the loader starts it; 0: nowhere */
    struct elf_section *sections; /* [0] is the null section; none in a file without section headers */
    size_t section_count;
    struct elf_segment *segments;
    size_t segment_count;
    struct buffer section_names;
};

/* Reads the headers. Fails with ERROR_UNSUPPORTED for another class, byte order or machine. */
bool elf_open(const struct source *file, struct elf *out, struct error *err);
void elf_done(struct elf *e);

/* "" when the name lies outside of the table. */
const char *elf_section_name(const struct elf *e, const struct elf_section *section);
/* NULL when there is none with bytes in the file. */
const struct elf_section *elf_section_named(const struct elf *e, const char *name);
const struct elf_section *elf_section_of_type(const struct elf *e, enum elf_section_type type);
/* The section that holds `addr` when loaded, or NULL. */
const struct elf_section *elf_section_at(const struct elf *e, uint64_t addr);

/*
 * The bytes of a section as they lie in the file, and how many they are when they are unpacked. *out_packed:
 * they are a zlib stream.
 */
bool elf_section_stored(const struct elf *e, const struct elf_section *section, struct source *out,
                        bool *out_packed, uint64_t *out_size, struct error *err);
/*
 * The bytes of a section as a source: the file's own, or, for a compressed section (zlib),
 * `unpacked`, which the caller initialises with a ceiling and keeps as long as the source.
 */
bool elf_section_source(const struct elf *e, const struct elf_section *section, struct buffer *unpacked,
                        struct source *out, struct error *err);
/* Replaces the content of `out` by the section's bytes, decompressed. */
bool elf_section_load(const struct elf *e, const struct elf_section *section, struct buffer *out,
                      struct error *err);

/* By the loaded segments, executable ones first. False when none covers it. */
bool elf_addr_of_file_off(const struct elf *e, uint64_t file_off, uint64_t *out_addr);
bool elf_file_off_of_addr(const struct elf *e, uint64_t addr, uint64_t *out_file_off);
/* The lowest address of a loaded segment; 0 without segments. */
uint64_t elf_base_addr(const struct elf *e);

/* The GNU build id. False when there is none, or it is longer than ELF_BUILD_ID_MAX. */
bool elf_build_id(const struct elf *e, uint8_t id[ELF_BUILD_ID_MAX], size_t *out_size);
/*
 * The file name in .gnu_debuglink and the CRC-32 of that file. False when there is none, or when it
 * is not a plain file name.
 */
bool elf_debug_link(const struct elf *e, char name[256], uint32_t *out_crc);

/* Return false to stop. */
typedef bool elf_symbol_fn(void *user, const struct elf_symbol *symbol);
/*
 * Streams the symbols of a table, undefined ones left out. `table` is the content of a SYMTAB or
 * DYNSYM section (elf_section_source()). ERROR_LIMIT beyond 16 M entries.
 */
bool elf_symbols(const struct source *table, elf_symbol_fn *emit, void *user, struct error *err);
/* Reads the NUL-ended string at `offset` of a string table. False when it does not end inside, or is too
 * long. */
bool elf_string(const struct source *strings, uint64_t offset, struct buffer *out);

struct elf_relocation {
    uint64_t addr; /* the place */
    uint32_t type, symbol;
    uint64_t addend;
};
/* Whether the loader writes the addend there, as an address of the image. */
bool elf_relocation_is_relative(const struct elf *e, const struct elf_relocation *relocation);
typedef bool elf_relocation_fn(void *user, const struct elf_relocation *relocation);
/* Streams the entries of a RELA section. ERROR_LIMIT beyond 16 M. */
bool elf_relocations(const struct source *table, elf_relocation_fn *emit, void *user, struct error *err);

/* Unpacks .gnu_debugdata (xz), itself an ELF file, into `out`. */
bool elf_unpack_debugdata(const struct elf *e, struct buffer *out, struct error *err);

#endif
