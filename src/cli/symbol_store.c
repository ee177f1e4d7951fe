#include "cli/symbol_store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"
#include "cli/message.h"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

char *symbol_store_path(void)
{
    const char *own = variable("CLRPERF_SYMBOLS"), *cache = variable("XDG_CACHE_HOME"),
               *home = variable("HOME");
    if (own)
        return mem_copy_string(own);
    if (cache)
        return mem_format("%s/clrperf/symbols", cache);
    return home ? mem_format("%s/.cache/clrperf/symbols", home) : NULL;
}

void symbol_store_open_lines(struct source_cache *out)
{
    const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    AUTO_FREE char *path = cache  ? mem_format("%s/clrperf/lines", cache)
                           : home ? mem_format("%s/.cache/clrperf/lines", home)
                                  : NULL;
    source_cache_init(out, path);
}

void symbol_store_open(struct symbol_cache *out)
{
    AUTO_FREE char *path = symbol_store_path();
    struct error err = { 0 };
    out->directory_fd = -1;
    if (path && !symbol_cache_open(path, false, out, &err) && err.kind != ERROR_SYSTEM)
        message_warning("symbols that were fetched are not used: %s", err.what);
}

bool symbol_store_create(struct symbol_cache *out, struct error *err)
{
    AUTO_FREE char *path = symbol_store_path();
    if (path)
        return symbol_cache_open(path, true, out, err);
    error_set(err, ERROR_USAGE, "there is no home directory to keep symbols in");
    return error_hint(err, "set CLRPERF_SYMBOLS to a directory of yours");
}
