#include "symbolize/source_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"
#include "symbolize/symbol_cache.h"

void source_cache_init(struct source_cache *cache, const char *path)
{
    cache->path = path ? mem_copy_string(path) : NULL;
}

void source_cache_done(struct source_cache *cache)
{
    free(cache->path);
    cache->path = NULL;
}

static bool read_file(int fd, const struct source_stamp *stamp, struct source_answers *out)
{
    struct source file;
    struct buffer bytes;
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    bool ok = source_over_fd(fd, 0, SOURCE_ANSWERS_BYTES_MAX, &file, NULL) &&
              source_load(&file, 0, file.size, &bytes, NULL) &&
              source_answers_read(buffer_span(&bytes), stamp, out, NULL);
    buffer_done(&bytes);
    return ok;
}

void source_cache_load(const struct source_cache *cache, const struct symbol_id *id,
                       const struct source_stamp *stamp, struct source_answers *out)
{
    struct symbol_cache folder = { .directory_fd = -1 };
    bool opened = cache && cache->path && symbol_cache_open(cache->path, false, &folder, NULL);
    AUTO_FD int fd = opened ? symbol_cache_find_made(&folder, id, SYMBOL_CACHE_LINES) : -1;
    if (fd < 0 || !read_file(fd, stamp, out))
        source_answers_init(out);
    symbol_cache_close(&folder);
}

static bool save_in(const struct symbol_cache *folder, const struct symbol_id *id, struct span bytes,
                    struct error *err)
{
    struct replaced_file file;
    if (!symbol_cache_begin_made(folder, id, SYMBOL_CACHE_LINES, &file, err))
        return false;
    if (!fd_write(file.fd, bytes)) {
        error_set(err, ERROR_SYSTEM, "cannot write kept source lines");
        replaced_file_abandon(&file);
        return false;
    }
    return replaced_file_commit(&file, err);
}

bool source_cache_save(const struct source_cache *cache, const struct symbol_id *id,
                       const struct source_stamp *stamp, const struct source_answers *answers,
                       struct error *err)
{
    struct symbol_cache folder;
    struct buffer bytes;
    if (!cache || !cache->path || answers->count > SOURCE_ANSWERS_MAX)
        return error_set(err, ERROR_LIMIT, "nowhere to keep source lines, or too many");
    if (!symbol_cache_open(cache->path, true, &folder, err))
        return false;
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    source_answers_write(answers, stamp, &bytes);
    bool ok = !bytes.failed || error_set(err, ERROR_LIMIT, "too many source lines to keep");
    ok = ok && save_in(&folder, id, buffer_span(&bytes), err);
    if (ok)
        symbol_cache_trim(&folder, (uint64_t)SOURCE_CACHE_BYTES_MAX);
    buffer_done(&bytes);
    symbol_cache_close(&folder);
    return ok;
}
