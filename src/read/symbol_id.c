#include "read/symbol_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "read/portable_pdb.h"

struct symbol_id symbol_id_of_elf(const struct elf *e)
{
    struct symbol_id id = { .kind = SYMBOL_BUILD_ID };
    return elf_build_id(e, id.bytes, &id.size) ? id : (struct symbol_id){ .kind = SYMBOL_BUILD_ID };
}

struct symbol_id symbol_id_of_pdb(const struct pe_debug *debug)
{
    struct symbol_id id = { .kind = SYMBOL_PDB, .size = sizeof debug->pdb_id };
    memcpy(id.bytes, debug->pdb_id, sizeof debug->pdb_id);
    return id;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

struct symbol_id symbol_id_from_hex(const char *text)
{
    struct symbol_id id = { .kind = SYMBOL_BUILD_ID };
    size_t digits = strlen(text);
    if (digits % 2 || digits / 2 > sizeof id.bytes)
        return id;
    for (size_t i = 0; i < digits / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return (struct symbol_id){ .kind = SYMBOL_BUILD_ID };
        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    id.size = digits / 2;
    return id;
}

bool symbol_id_equals(const struct symbol_id *a, const struct symbol_id *b)
{
    return a->kind == b->kind && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

void symbol_id_text(const struct symbol_id *id, char out[SYMBOL_ID_TEXT_BYTES])
{
    out[0] = 0;
    for (size_t i = 0; i < id->size; i++)
        snprintf(out + 2 * i, 3, "%02x", id->bytes[i]);
}

static bool differs(const struct symbol_id *found, struct error *err)
{
    char text[SYMBOL_ID_TEXT_BYTES];
    symbol_id_text(found, text);
    return error_set(err, ERROR_INPUT, "it is of another build: its id is %s", text[0] ? text : "missing");
}

/* The headers of a file that was cut promise more than there is. */
static bool is_whole(const struct elf *e)
{
    for (size_t i = 0; i < e->section_count; i++) {
        const struct elf_section *s = &e->sections[i];
        if (s->type != ELF_SECTION_NOBITS &&
            (s->file_off > e->file.size || s->size_bytes > e->file.size - s->file_off))
            return false;
    }
    return true;
}

static bool check_elf(const struct symbol_id *id, const struct elf *e, struct error *err)
{
    struct symbol_id found = symbol_id_of_elf(e);
    if (!symbol_id_equals(&found, id))
        return differs(&found, err);
    if (!elf_section_of_type(e, ELF_SECTION_SYMTAB))
        return error_set(err, ERROR_INPUT, "it has no symbols");
    return is_whole(e) || error_set(err, ERROR_INPUT, "it is cut at %" PRIu64 " bytes", e->file.size);
}

/* A heap that does not lie in the bytes has size 0. */
static bool is_whole_pdb(const struct portable_pdb *pdb)
{
    return pdb->md.blobs.size && pdb->md.guids.size;
}

static bool check_pdb(const struct symbol_id *id, const struct source *file, struct error *err)
{
    struct buffer bytes;
    struct portable_pdb pdb;
    struct symbol_id found = { .kind = SYMBOL_PDB };
    buffer_init(&bytes, PORTABLE_PDB_BYTES_MAX);
    bool ok =
        source_load(file, 0, file->size, &bytes, err) && portable_pdb_open(buffer_span(&bytes), &pdb, err);
    if (ok) {
        struct span own = portable_pdb_id(&pdb);
        found.size = own.size <= sizeof found.bytes ? own.size : 0;
        if (found.size)
            memcpy(found.bytes, own.data, found.size);
        ok = symbol_id_equals(&found, id) || differs(&found, err);
        ok = ok && (is_whole_pdb(&pdb) ||
                    error_set(err, ERROR_INPUT, "it is cut at %" PRIu64 " bytes", file->size));
    }
    buffer_done(&bytes);
    return ok;
}

bool symbol_id_check(const struct symbol_id *id, const struct source *file, struct error *err)
{
    struct elf e;
    if (id->kind == SYMBOL_PDB)
        return check_pdb(id, file, err);
    if (!elf_open(file, &e, err))
        return false;
    bool ok = check_elf(id, &e, err);
    elf_done(&e);
    return ok;
}
