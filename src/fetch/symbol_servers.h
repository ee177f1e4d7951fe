/*
 * symbol_servers: which servers may be asked for symbols.
 *
 * Only what the user named: on the command line, in DEBUGINFOD_URLS (debuginfod-find(1)) or in
 * _NT_SYMBOL_PATH (srv*CACHE*URL;...). Only http and https.
 */
#ifndef CLRPERF_FETCH_SYMBOL_SERVERS_H
#define CLRPERF_FETCH_SYMBOL_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct symbol_server {
    char *url;          /* without a slash at its end; owned */
    char *shown;        /* without name and password; owned */
    unsigned protocols; /* enum symbol_protocol, or-ed */
    unsigned failures;  /* the caller's: how often it was of no use */
};

struct symbol_servers {
    struct symbol_server *rows;
    size_t count, capacity;
};

/* ERROR_USAGE when it is no http(s) URL. One that is there already is only given further protocols. */
bool symbol_servers_add(struct symbol_servers *servers, const char *url, unsigned protocols,
                        struct error *err);
/* What else than http(s) URLs is in such a text is passed over: it has directories and other things too. */
void symbol_servers_add_debuginfod(struct symbol_servers *servers, const char *urls);
void symbol_servers_add_symbol_path(struct symbol_servers *servers, const char *path);
void symbol_servers_done(struct symbol_servers *servers);

#endif
