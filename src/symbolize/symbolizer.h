/*
 * symbolizer: gives every location of a trace its name.
 *
 * Asks the resolvers in DESIGN's order, image by image, so that each file is read once and closed before
 * the next. What nobody can name gets the cause.
 */
#ifndef CLRPERF_SYMBOLIZE_SYMBOLIZER_H
#define CLRPERF_SYMBOLIZE_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/function_index.h"
#include "trace/trace.h"

/* Reads what belongs to the processes of the trace. Functions other than `open` may be NULL. */
struct file_finder {
    /* `process` is a row of the trace. An open regular file that the caller closes, or -1. */
    int (*open)(void *user, uint32_t process, const char *path);
    /*
     * The perf map (`jitdump` false) or jitdump that process left, owner checked; or -1, with ERROR_INPUT
     * when it is there and not to be believed. `path`: where it had its jitdump mapped, or NULL.
     */
    int (*open_jit_file)(void *user, uint32_t process, bool jitdump, const char *path, struct error *err);
    /*
     * Memory of a process that still runs: `count` pieces of `size` bytes at addrs[i] into `into`, got[i]
     * bytes of each were there.
     */
    void (*read_memory)(void *user, uint32_t process, const uint64_t *addrs, size_t count, size_t size,
                        uint8_t *into, uint32_t *got);
    void *user;
};

struct symbol_cache;
struct kept_folder;
struct images_ahead;

/* What is known of a location's name beyond what a trace keeps. */
struct name_origin {
    uint64_t start;          /* address at which the function begins; 0: not known */
    uint32_t build_id, mvid; /* strings, in hex: of the native file, of the assembly; 0: none, or not known */
};

struct symbolizer_options {
    struct file_finder files;
    const struct symbol_cache *cache; /* of symbol files that were fetched, or NULL */
    const struct kept_folder *kept;   /* what was found out about files before, or NULL */
    struct images_ahead *ahead;       /* that a thread reads already, or NULL */
    struct name_origin *origins;      /* by location, zeroed, the caller's: is filled; or NULL */
    bool kernel;                      /* the trace's kernel is the one that runs now */
    const char *kernel_list;          /* directory of its kept symbols (symbolize/kernel_list.h), or NULL */
};

struct symbolizer_result {
    bool kernel_hidden;     /* the kernel does not tell us its symbols */
    uint64_t map_malformed; /* entries of perf maps and jitdumps that were skipped */
    char map_problem[512];  /* why one of them was not read, or not to its end; or "" */
};

struct symbolizer;

/*
 * Begins to name what is in `t`: the kernel and debug files are asked by threads, the rest is done by
 * symbolizer_step() and symbolizer_finish(). `functions` indexes the functions, which are added to `t`. All
 * is borrowed, `options` but for what it points to. `t` belongs to its owner again between the calls, who may
 * add to it.
 */
struct symbolizer *symbolizer_begin(struct trace *t, struct function_index *functions,
                                    const struct symbolizer_options *options);
/*
 * Names one image of those for which it does not matter what else is added: native ones that were in the
 * trace at the beginning. False when none is left.
 */
bool symbolizer_step(struct symbolizer *s);
/* Names all the rest and frees it. Never fails: files that cannot be read leave causes. */
void symbolizer_finish(struct symbolizer *s, struct symbolizer_result *result);
/* All in one. */
void symbolizer_run(struct trace *t, struct function_index *functions,
                    const struct symbolizer_options *options, struct symbolizer_result *result);

#endif
