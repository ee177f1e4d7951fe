#include "fetch/symbol_servers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/own.h"
#include "fetch/symbol_key.h"

enum { URL_BYTES_MAX = 2048, SERVERS_MAX = 32 };

/* The part behind "http://" or "https://", or NULL. */
static const char *behind_scheme(const char *url)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url + strlen(schemes[i]);
    return NULL;
}

static bool is_url(const char *url)
{
    const char *host = behind_scheme(url);
    if (!host || !*host || *host == '/' || strlen(url) > URL_BYTES_MAX)
        return false;
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c == 0x7f)
            return false;
    return true;
}

static char *without_password(const char *url)
{
    const char *host = behind_scheme(url);
    const char *at = memchr(host, '@', strcspn(host, "/?#"));
    return mem_format("%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

bool symbol_servers_add(struct symbol_servers *servers, const char *url, unsigned protocols,
                        struct error *err)
{
    size_t size = strlen(url);
    if (!is_url(url) || servers->count == SERVERS_MAX) {
        error_set(err, ERROR_USAGE, "'%.200s' is no URL of a symbol server", url);
        return error_hint(err, "it begins with https:// or http://");
    }
    while (size && url[size - 1] == '/')
        size--;
    AUTO_FREE char *kept = mem_format("%.*s", (int)size, url);
    for (size_t i = 0; i < servers->count; i++)
        if (strcmp(servers->rows[i].url, kept) == 0) {
            servers->rows[i].protocols |= protocols;
            return true;
        }
    servers->rows = mem_grow(servers->rows, &servers->capacity, servers->count + 1, sizeof *servers->rows);
    servers->rows[servers->count++] =
        (struct symbol_server){ mem_copy_string(kept), without_password(kept), protocols, 0 };
    return true;
}

/* Adds the URLs among the parts of a text. */
static void add_parts(struct symbol_servers *servers, const char *text, const char *separators,
                      unsigned protocol)
{
    AUTO_FREE char *copy = mem_copy_string(text);
    char *rest = NULL;
    for (char *part = strtok_r(copy, separators, &rest); part; part = strtok_r(NULL, separators, &rest))
        symbol_servers_add(servers, part, protocol, NULL);
}

void symbol_servers_add_debuginfod(struct symbol_servers *servers, const char *urls)
{
    add_parts(servers, urls, " \t\n", PROTOCOL_DEBUGINFOD);
}

void symbol_servers_add_symbol_path(struct symbol_servers *servers, const char *path)
{
    add_parts(servers, path, ";*", PROTOCOL_SSQP);
}

void symbol_servers_done(struct symbol_servers *servers)
{
    for (size_t i = 0; i < servers->count; i++) {
        free(servers->rows[i].url);
        free(servers->rows[i].shown);
    }
    free(servers->rows);
    *servers = (struct symbol_servers){ 0 };
}
