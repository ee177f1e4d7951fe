/*
 * core_target: a process that left a core dump, with the files it had mapped.
 *
 * What a dump leaves out of files (code, mostly) is read from those files, when they are still the same: the
 * build id of an ELF image, or the headers of a .NET assembly, are compared with the dump. A file that
 * differs or is newer than the dump is not used.
 */
#ifndef CLRPERF_COLLECT_CORE_TARGET_H
#define CLRPERF_COLLECT_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "clr/runtime_version.h"
#include "collect/process_stacks.h"
#include "read/core_file.h"

enum core_image_state {
    CORE_IMAGE_NEW,
    CORE_IMAGE_SAME,      /* compared with the dump */
    CORE_IMAGE_UNCHECKED, /* the dump does not hold what tells them apart */
    CORE_IMAGE_MISSING,   /* there is no such file here */
    CORE_IMAGE_OTHER,     /* there is one, and it is not what was mapped */
};

struct core_image {
    const char *path; /* the dump's */
    enum core_image_state state;
    int fd; /* -1 unless it may be used */
};

struct core_target {
    struct core_file core;
    struct memory memory; /* the dump's, and files' where it has none */
    int fd;
    int64_t modified_s;
    struct core_image *images;
    size_t image_count, image_capacity;
    struct runtime_version version; /* "" when not known: in a file that is not here, or ahead of time */
    enum runtime_kind runtime;
};

/* As core_file_open(). Undo with core_target_close(). `out` must not move meanwhile. */
bool core_target_open(const char *path, struct core_target *out, struct error *err);
void core_target_close(struct core_target *target);

/* For process_stacks and the symbolizer: an open descriptor of the caller's, or -1. */
int core_target_open_file(struct core_target *target, const char *path);
struct stacks_target core_target_stacks(struct core_target *target);
/* The threads of the dump, as if they had been looked at. */
void core_target_take(struct core_target *target, struct process_stacks *stacks, pid_t only_tid);
/* The process and what it had mapped. Returns its row. */
uint32_t core_target_describe(const struct core_target *target, struct trace_builder *b);
/* Of the files asked for so far, those in this state; the first is *out_example when there is one. */
size_t core_target_images(const struct core_target *target, enum core_image_state state,
                          const char **out_example);

#endif
