/*
 * symbol_place: where the symbols of an image were found.
 */
#ifndef CLRPERF_SYMBOLIZE_SYMBOL_PLACE_H
#define CLRPERF_SYMBOLIZE_SYMBOL_PLACE_H

#include <limits.h>

enum symbol_where {
    SYMBOLS_NOWHERE,
    SYMBOLS_INSIDE,   /* in the image itself */
    SYMBOLS_MINIMAL,  /* in its .gnu_debugdata: names of functions, no lines */
    SYMBOLS_IN_FILE,  /* in a file of the target's */
    SYMBOLS_IN_CACHE, /* in one that was fetched */
};

struct symbol_place {
    enum symbol_where where;
    char path[PATH_MAX]; /* of the file, as the target sees it; its name in the cache; else "" */
};

#endif
