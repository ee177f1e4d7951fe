/*
 * export_options: what a user can choose about an exported profile.
 */
#ifndef CLRPERF_RENDER_EXPORT_OPTIONS_H
#define CLRPERF_RENDER_EXPORT_OPTIONS_H

#include <stdbool.h>

struct export_options {
    bool modules;      /* "module!name" instead of "name" */
    bool annotate;     /* FlameGraph's _[k] _[j] _[n] behind the name */
    bool threads;      /* the root is the thread's name instead of the process's */
    const char *title; /* NULL: the profile's own */
};

#endif
