#include "symbolize/source_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"
#include "read/il_map.h"
#include "read/pe.h"
#include "read/pe_debug.h"
#include "read/portable_pdb.h"

enum { FILE_BYTES_MAX = 8192, METHOD_TABLE = 0x06 };

/* An assembly that was asked for. */
struct assembly_lines {
    char *path;
    bool known;          /* there is a PDB */
    struct buffer bytes; /* the PDB's */
    struct portable_pdb pdb;
};

struct source_lines {
    struct pdb_finder find;
    struct assembly_lines *assemblies;
    size_t count, capacity;
    size_t held_bytes;
    struct buffer file; /* of the last answer */
};

struct source_lines *source_lines_new(const struct pdb_finder *find)
{
    struct source_lines *lines = mem_alloc(1, sizeof *lines);
    lines->find = *find;
    buffer_init(&lines->file, FILE_BYTES_MAX);
    return lines;
}

static void forget_assemblies(struct source_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        free(lines->assemblies[i].path);
        buffer_done(&lines->assemblies[i].bytes);
    }
    lines->count = 0;
    lines->held_bytes = 0;
}

void source_lines_free(struct source_lines *lines)
{
    if (!lines)
        return;
    forget_assemblies(lines);
    free(lines->assemblies);
    buffer_done(&lines->file);
    free(lines);
}

static bool load_pdb(struct source_lines *lines, const struct source *file, struct assembly_lines *assembly)
{
    struct pe pe;
    struct pe_debug debug;
    struct symbol_place place;
    return pe_read(file, &pe, NULL) && pe_debug_read(file, &pe, &debug, NULL) &&
           pdb_file_load(&lines->find, file, assembly->path, &debug, &assembly->bytes, &assembly->pdb,
                         &place);
}

static struct assembly_lines *find_assembly(struct source_lines *lines, const char *path)
{
    for (size_t i = lines->count; i > 0; i--) /* mostly the one asked for before */
        if (strcmp(lines->assemblies[i - 1].path, path) == 0)
            return &lines->assemblies[i - 1];
    if (lines->held_bytes > SOURCE_LINES_HELD_BYTES_MAX)
        forget_assemblies(lines);
    lines->assemblies =
        mem_grow(lines->assemblies, &lines->capacity, lines->count + 1, sizeof *lines->assemblies);
    struct assembly_lines *assembly = &lines->assemblies[lines->count++];
    *assembly = (struct assembly_lines){ .path = mem_copy_string(path) };
    buffer_init(&assembly->bytes, PORTABLE_PDB_BYTES_MAX);
    const struct module_files *files = &lines->find.files;
    struct source file;
    if (files->open(files->user, path, &file)) {
        assembly->known = load_pdb(lines, &file, assembly);
        files->close(files->user, &file);
    }
    if (!assembly->known)
        buffer_done(&assembly->bytes);
    lines->held_bytes += assembly->bytes.size;
    return assembly;
}

bool source_lines_find(struct source_lines *lines, const char *path, uint32_t token, uint32_t il_offset,
                       struct source_place *out)
{
    struct pdb_line found;
    const struct assembly_lines *assembly = find_assembly(lines, path);
    bool of_method = il_offset == IL_NO_MAPPING;
    if (il_offset == IL_PROLOG || of_method)
        il_offset = 0;
    if (!assembly->known || token >> 24 != METHOD_TABLE ||
        !portable_pdb_find(&assembly->pdb, token & 0xffffff, il_offset, &found) ||
        !portable_pdb_document(&assembly->pdb, found.document, &lines->file))
        return false;
    buffer_u8(&lines->file, 0);
    if (lines->file.failed)
        return false;
    *out = (struct source_place){ (const char *)lines->file.data, found.line, of_method };
    return true;
}

bool source_lines_find_await(struct source_lines *lines, const char *path, uint32_t token, uint32_t await,
                             struct source_place *out, uint32_t *out_il_offset)
{
    uint32_t il_offset;
    const struct assembly_lines *assembly = find_assembly(lines, path);
    if (!assembly->known || token >> 24 != METHOD_TABLE ||
        !portable_pdb_await(&assembly->pdb, token & 0xffffff, await, &il_offset) ||
        !source_lines_find(lines, path, token, il_offset, out))
        return false;
    *out_il_offset = il_offset;
    return true;
}

bool source_lines_has(struct source_lines *lines, const char *path)
{
    return find_assembly(lines, path)->known;
}
