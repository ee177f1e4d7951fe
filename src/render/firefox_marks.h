/*
 * firefox_marks: what runtimes told of besides samples, in the Firefox Profiler's format: collections, pauses
 * and exceptions as markers of threads, the size of the heap as a counter.
 */
#ifndef CLRPERF_RENDER_FIREFOX_MARKS_H
#define CLRPERF_RENDER_FIREFOX_MARKS_H

#include "analyse/profile.h"
#include "base/intern.h"
#include "render/output.h"

struct firefox_marks {
    const struct profile *profile;
    struct intern *strings; /* of the whole file */
    unsigned category;      /* that marks belong to */
    struct output *out;
    uint32_t *thread_of; /* by mark: the thread that it is shown at */
};

/* Interns its names: before the shared strings are written. */
void firefox_marks_init(struct firefox_marks *w, const struct profile *p, struct intern *strings,
                        unsigned category, struct output *out);
void firefox_marks_done(struct firefox_marks *w);
/* The member "markers" of a thread. */
void firefox_marks_write(const struct firefox_marks *w, uint32_t thread);
/* The member "counters"; nothing when there are none. */
void firefox_marks_write_sizes(const struct firefox_marks *w);

#endif
