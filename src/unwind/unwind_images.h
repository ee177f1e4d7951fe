/*
 * unwind_images: the unwind tables of the images that stacks lead through, each opened once.
 *
 * An image is named by a number of the caller's (a row of its trace). Whether it is ELF, precompiled .NET
 * code, or a single-file program with both in one file shows when it is opened, at the first stack that needs
 * it.
 */
#ifndef CLRPERF_UNWIND_UNWIND_IMAGES_H
#define CLRPERF_UNWIND_UNWIND_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "unwind/unwind_space.h"

/* Opens the file of an image as the process `user` has it. False when there is none. */
typedef bool unwind_open_fn(void *user, uint32_t image, struct source *out);
/* Gives it back, soon after. */
typedef void unwind_close_fn(void *user, struct source *file);

struct unwind_images;

struct unwind_images *unwind_images_new(void);
void unwind_images_free(struct unwind_images *images);
/*
 * What is mapped at `start` from `file_off` of an image. UNWIND_CODE_OTHER when its tables cannot be read.
 * Valid as long as `images`.
 */
struct unwind_code unwind_images_code(struct unwind_images *images, uint32_t image, uint64_t start,
                                      uint64_t file_off, unwind_open_fn *open, unwind_close_fn *close,
                                      void *user);

struct unwind_images_stats {
    uint32_t opened;  /* images with tables */
    uint64_t open_ns; /* CPU time it took */
};
struct unwind_images_stats unwind_images_stats(const struct unwind_images *images);

/* The vdso of this kernel, which is the same in every process. False when there is none. */
bool unwind_vdso(struct source *out);

#endif
