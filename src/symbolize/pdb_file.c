#include "symbolize/pdb_file.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/symbol_id.h"

/* What is looked for, and what comes of it. */
struct pdb_search {
    const struct pdb_finder *find;
    const struct pe_debug *debug;
    struct buffer *bytes;
    struct portable_pdb *pdb;
    struct symbol_place *place;
};

/* Whether the bytes are the PDB that the assembly asks for. */
static bool is_asked_for(const struct pdb_search *s)
{
    return portable_pdb_open(buffer_span(s->bytes), s->pdb, NULL) &&
           span_equals(portable_pdb_id(s->pdb), span_of(s->debug->pdb_id, sizeof s->debug->pdb_id));
}

static bool found(const struct pdb_search *s, enum symbol_where where, const char *path)
{
    s->place->where = where;
    snprintf(s->place->path, sizeof s->place->path, "%s", path);
    return true;
}

static bool load_source(const struct pdb_search *s, const struct source *file)
{
    return file->size <= PORTABLE_PDB_BYTES_MAX && source_load(file, 0, file->size, s->bytes, NULL) &&
           is_asked_for(s);
}

static bool load_file(const struct pdb_search *s, const char *path)
{
    const struct module_files *files = &s->find->files;
    struct source file;
    if (!files->open || !files->open(files->user, path, &file))
        return false;
    bool ok = load_source(s, &file);
    files->close(files->user, &file);
    return ok && found(s, SYMBOLS_IN_FILE, path);
}

const char *pdb_file_name(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            name = path + 1;
    return name;
}

/* Beside the assembly, under the name the compiler gave it or the assembly's own. */
static bool load_beside(const struct pdb_search *s, const char *path)
{
    const char *named = pdb_file_name(s->debug->path), *own = pdb_file_name(path);
    int folder = (int)(own - path);
    const char *dot = strrchr(own, '.');
    int stem = dot ? (int)(dot - own) : (int)strlen(own);
    AUTO_FREE char *first = mem_format("%.*s%s", folder, path, named);
    AUTO_FREE char *second = mem_format("%.*s%.*s.pdb", folder, path, stem, own);
    return (named[0] && load_file(s, first)) || (strcmp(first, second) != 0 && load_file(s, second));
}

static bool load_cached(const struct pdb_search *s)
{
    struct symbol_id id = symbol_id_of_pdb(s->debug);
    char name[SYMBOL_CACHE_NAME_BYTES];
    struct source file;
    AUTO_FD int fd = symbol_cache_find(s->find->cache, &id);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !load_source(s, &file))
        return false;
    symbol_cache_name(&id, name);
    return found(s, SYMBOLS_IN_CACHE, name);
}

bool pdb_file_load(const struct pdb_finder *find, const struct source *file, const char *path,
                   const struct pe_debug *debug, struct buffer *bytes, struct portable_pdb *out,
                   struct symbol_place *out_place)
{
    struct pdb_search s = { find, debug, bytes, out, out_place };
    *out_place = (struct symbol_place){ .where = SYMBOLS_NOWHERE };
    if (debug->embedded_bytes && pe_debug_unpack(file, debug, bytes, NULL) && is_asked_for(&s))
        return found(&s, SYMBOLS_INSIDE, "");
    return (debug->path[0] == '/' && load_file(&s, debug->path)) || load_beside(&s, path) || load_cached(&s);
}
