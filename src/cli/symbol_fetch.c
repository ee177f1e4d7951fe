#include "cli/symbol_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/message.h"
#include "cli/symbol_list.h"
#include "fetch/symbol_key.h"

enum {
    URL_BYTES_MAX = 4096,
    FAILURES_MAX = 2, /* then a server is not asked any more */
};

/* One image's symbols while they are looked for. */
struct image_fetch {
    struct symbol_fetch *all;
    struct downloads *downloads;
    struct symbol_image *image;
    const char *name;   /* as people call it, and servers */
    bool terminal;      /* stderr is one */
    struct error error; /* of the last server that failed, or none */
};

static bool show_progress(void *user, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct image_fetch *f = user;
    if (f->terminal && done_bytes) {
        char of[40] = "";
        if (total_bytes)
            snprintf(of, sizeof of, " of %s", units_size(total_bytes).text);
        fprintf(stderr, "\r%s%s\033[K", units_size(done_bytes).text, of);
        fflush(stderr);
    }
    return !*f->all->stop;
}

static void clear_progress(const struct image_fetch *f)
{
    if (f->terminal)
        fputs("\r\033[K", stderr);
}

/* The image has its symbols in the cache now. */
static void note_found(struct image_fetch *f, const char *server, uint64_t size_bytes)
{
    struct image_symbols *s = &f->image->symbols;
    struct debug_finder find = { .cache = f->all->cache };
    struct image_symbols fetched = { 0 };
    if (s->managed)
        s->lines = true;
    else
        image_symbols_find_by_id(&s->id, &find, &fetched);
    s->lines |= fetched.lines;
    s->place.where = SYMBOLS_IN_CACHE;
    symbol_cache_name(&s->id, s->place.path);
    f->all->fetched++;
    message_note("%s: %s from %s", f->name, units_size(size_bytes).text, server);
}

/* Asks one server for one key. What comes is kept when it is what was asked for. */
static enum download_end fetch_url(struct image_fetch *f, const char *url, const char *server)
{
    const struct symbol_id *id = &f->image->symbols.id;
    struct replaced_file file;
    struct error err = { 0 };
    if (!symbol_cache_begin(f->all->cache, id, &file, &f->error))
        return DOWNLOAD_FAILED;
    enum download_end end = downloads_get(f->downloads, url, file.fd, show_progress, f, &err);
    off_t size = lseek(file.fd, 0, SEEK_END);
    clear_progress(f);
    if (end != DOWNLOAD_DONE)
        replaced_file_abandon(&file);
    else if (symbol_cache_keep(id, &file, &err))
        note_found(f, server, size > 0 ? (uint64_t)size : 0);
    else
        end = DOWNLOAD_FAILED;
    if (end == DOWNLOAD_FAILED) {
        error_context(&err, "%s", server);
        f->error = err;
    }
    return end;
}

/* All that a server may have it under. */
static enum download_end fetch_from(struct image_fetch *f, struct symbol_server *server)
{
    enum download_end end = DOWNLOAD_ABSENT;
    struct buffer url;
    buffer_init(&url, URL_BYTES_MAX);
    for (unsigned key = 0; key < SYMBOL_KEYS && end == DOWNLOAD_ABSENT; key++) {
        buffer_clear(&url);
        buffer_format(&url, "%s/", server->url);
        if (!(server->protocols & symbol_key_protocol(key)) ||
            !symbol_key_put(key, &f->image->symbols.id, f->name, &url))
            continue;
        buffer_u8(&url, 0);
        if (!url.failed)
            end = fetch_url(f, (const char *)url.data, server->shown);
    }
    buffer_done(&url);
    if (end == DOWNLOAD_FAILED && ++server->failures == FAILURES_MAX)
        message_warning("%s failed %d times and is not asked any more: %s", server->shown, FAILURES_MAX,
                        f->error.what);
    return end;
}

static void note_missing(struct image_fetch *f)
{
    bool failed = f->error.kind != ERROR_NONE;
    const char *why = failed ? f->error.what : "no server has it";
    *(failed ? &f->all->failed : &f->all->absent) += 1;
    free(f->image->problem);
    f->image->problem = mem_copy_string(why);
    message_note("%s: %s", f->name, why);
}

static void fetch_image(struct symbol_fetch *all, struct downloads *downloads, struct symbol_image *image)
{
    const char *slash = strrchr(image->path, '/');
    const char *native_name = slash ? slash + 1 : image->path;
    struct image_fetch f = {
        .all = all,
        .downloads = downloads,
        .image = image,
        .name = image->symbols.managed ? image->symbols.pdb_name : native_name,
        .terminal = isatty(STDERR_FILENO),
    };
    enum download_end end = DOWNLOAD_ABSENT;
    for (size_t i = 0; i < all->servers->count && end != DOWNLOAD_DONE && end != DOWNLOAD_STOPPED; i++)
        if (all->servers->rows[i].failures < FAILURES_MAX)
            end = fetch_from(&f, &all->servers->rows[i]);
    all->stopped = end == DOWNLOAD_STOPPED;
    if (end != DOWNLOAD_DONE && !all->stopped)
        note_missing(&f);
}

static bool may_ask(const struct symbol_servers *servers)
{
    for (size_t i = 0; i < servers->count; i++)
        if (servers->rows[i].failures < FAILURES_MAX)
            return true;
    return false;
}

bool symbol_fetch_run(struct symbol_fetch *fetch, struct symbol_images *images, struct error *err)
{
    struct downloads *downloads;
    if (!downloads_open(&fetch->limits, &downloads, err))
        return false;
    for (size_t i = 0; i < images->count; i++) {
        if (!symbol_list_is_missing(&images->rows[i]))
            continue;
        fetch->wanted++;
        if (!fetch->stopped && may_ask(fetch->servers))
            fetch_image(fetch, downloads, &images->rows[i]);
    }
    fetch->removed = symbol_cache_trim(fetch->cache, fetch->cache_bytes_max);
    downloads_close(downloads);
    return true;
}
