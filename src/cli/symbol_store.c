#include "cli/symbol_store.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "base/mem.h"
#include "base/own.h"
#include "cli/message.h"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* In the user's cache, or NULL where there is none. The caller frees. */
static char *cache_path(const char *name)
{
    const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    if (cache)
        return mem_format("%s/clrperf/%s", cache, name);
    return home ? mem_format("%s/.cache/clrperf/%s", home, name) : NULL;
}

char *symbol_store_path(void)
{
    const char *own = variable("CLRPERF_SYMBOLS");
    return own ? mem_copy_string(own) : cache_path("symbols");
}

void symbol_store_open_kept(struct kept_folder *out)
{
    AUTO_FREE char *path = cache_path("images");
    kept_folder_init(out, path);
}

char *symbol_store_kernel_path(void)
{
    /* with capabilities of the program's file we see addresses that a file of the user's must not tell */
    return getauxval(AT_SECURE) ? NULL : cache_path("kernel");
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
