#include "symbolize/kept_folder.h"

#include <stdlib.h>

#include "base/mem.h"

void kept_folder_init(struct kept_folder *folder, const char *path)
{
    folder->path = path ? mem_copy_string(path) : NULL;
}

void kept_folder_done(struct kept_folder *folder)
{
    free(folder->path);
    folder->path = NULL;
}

int kept_folder_find(const struct kept_folder *folder, const struct symbol_id *id,
                     enum symbol_cache_made what)
{
    struct symbol_cache files;
    if (!folder || !folder->path || !symbol_cache_open(folder->path, false, &files, NULL))
        return -1;
    int fd = symbol_cache_find_made(&files, id, what);
    symbol_cache_close(&files);
    return fd;
}

static bool save_in(const struct symbol_cache *files, const struct symbol_id *id, enum symbol_cache_made what,
                    kept_write_fn *write, void *user, struct error *err)
{
    struct replaced_file file;
    if (!symbol_cache_begin_made(files, id, what, &file, err))
        return false;
    if (write(user, file.fd))
        return replaced_file_commit(&file, err);
    replaced_file_abandon(&file);
    return error_set(err, ERROR_SYSTEM, "cannot write a file to keep");
}

bool kept_folder_save(const struct kept_folder *folder, const struct symbol_id *id,
                      enum symbol_cache_made what, kept_write_fn *write, void *user, struct error *err)
{
    struct symbol_cache files;
    if (!folder || !folder->path)
        return error_set(err, ERROR_UNSUPPORTED, "there is no directory to keep files in");
    if (!symbol_cache_open(folder->path, true, &files, err))
        return false;
    bool ok = save_in(&files, id, what, write, user, err);
    if (ok)
        symbol_cache_trim(&files, (uint64_t)KEPT_FOLDER_BYTES_MAX);
    symbol_cache_close(&files);
    return ok;
}
