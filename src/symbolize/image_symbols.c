#include "symbolize/image_symbols.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "read/pe.h"
#include "symbolize/native_source.h"
#include "symbolize/pdb_file.h"

static void take_debug_file(struct debug_file *debug, struct image_symbols *out)
{
    out->place = debug->place;
    out->lines = native_source_has(&debug->elf);
    debug_file_close(debug);
}

static void find_native(const struct elf *e, const char *path, const struct debug_finder *find,
                        struct image_symbols *out)
{
    struct debug_file debug;
    out->id = symbol_id_of_elf(e);
    out->lines = native_source_has(e);
    if (elf_section_of_type(e, ELF_SECTION_SYMTAB))
        out->place.where = SYMBOLS_INSIDE;
    else if (debug_file_open(e, path, find, &debug))
        take_debug_file(&debug, out);
    else if (elf_section_named(e, ".gnu_debugdata"))
        out->place.where = SYMBOLS_MINIMAL;
}

void image_symbols_find_by_id(const struct symbol_id *id, const struct debug_finder *find,
                              struct image_symbols *out)
{
    struct debug_file debug;
    *out = (struct image_symbols){ .id = *id };
    if (debug_file_open_by_id(id, find, &debug))
        take_debug_file(&debug, out);
}

static bool open_source(void *user, const char *path, struct source *out)
{
    const struct debug_finder *find = user;
    AUTO_FD int fd = find->open(find->user, path);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, out, NULL))
        return false;
    take_fd(&fd);
    return true;
}

static void close_source(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

static void find_managed(const struct source *file, const char *path, const struct debug_finder *find,
                         struct image_symbols *out)
{
    struct pe pe;
    struct pe_debug debug;
    struct buffer bytes;
    struct portable_pdb pdb;
    struct pdb_finder files = { { open_source, close_source, (void *)find }, find->cache };
    if (!pe_read(file, &pe, NULL) || !pe_debug_read(file, &pe, &debug, NULL))
        return; /* it asks for none */
    out->id = symbol_id_of_pdb(&debug);
    snprintf(out->pdb_name, sizeof out->pdb_name, "%s", pdb_file_name(debug.path));
    buffer_init(&bytes, PORTABLE_PDB_BYTES_MAX);
    out->lines = pdb_file_load(&files, file, path, &debug, &bytes, &pdb, &out->place);
    buffer_done(&bytes);
}

bool image_symbols_find(const struct source *file, const char *path, const struct debug_finder *find,
                        struct image_symbols *out, struct error *err)
{
    uint8_t magic[2] = { 0 };
    struct elf e;
    *out = (struct image_symbols){ 0 };
    if (source_read(file, 0, magic, sizeof magic, NULL) && magic[0] == 'M' && magic[1] == 'Z') {
        out->managed = true;
        find_managed(file, path, find, out);
        return true;
    }
    if (!elf_open(file, &e, err))
        return false;
    find_native(&e, path, find, out);
    elf_done(&e);
    return true;
}
