/*
 * error: what went wrong and what the user can do about it.
 *
 * A function that can fail returns bool and fills `struct error` on false. Only cli/ prints it.
 */
#ifndef CLRPERF_BASE_ERROR_H
#define CLRPERF_BASE_ERROR_H

#include <stdbool.h>

enum error_kind {
    ERROR_NONE,
    ERROR_INPUT,       /* bytes that are not what their format says */
    ERROR_UNSUPPORTED, /* understood, but this build, kernel or runtime cannot do it */
    ERROR_SYSTEM,      /* the kernel said no; os_error says why */
    ERROR_LIMIT,       /* a bound of ours was reached */
    ERROR_TARGET,      /* no such, gone or ambiguous target process */
    ERROR_PERMISSION,  /* rights are missing */
    ERROR_USAGE,       /* the command line asks for something that makes no sense */
};

struct error {
    enum error_kind kind;
    int os_error;   /* errno, or 0 */
    char what[512]; /* what happened, naming its subject */
    char hint[512]; /* what the user can do about it, or "" */
};

/* Each fills `err` (which may be NULL) and returns false, so that `return error_set(...)` reads well. */
bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As error_set(); ": strerror(os_error)" is appended. EACCES and EPERM become ERROR_PERMISSION. */
bool error_system(struct error *err, int os_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds the next step for the user. */
bool error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "CONTEXT: " in front of what happened. */
bool error_context(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __clang_analyzer__ /* sees one file at a time: tell it what they return */
#define error_set(...)     (error_set(__VA_ARGS__), false)
#define error_system(...)  (error_system(__VA_ARGS__), false)
#define error_hint(...)    (error_hint(__VA_ARGS__), false)
#define error_context(...) (error_context(__VA_ARGS__), false)
#endif

#endif
