/*
 * span_course: what went on in a span from its begin to its end, as a line of letters.
 */
#ifndef CLRPERF_CLI_SPAN_COURSE_H
#define CLRPERF_CLI_SPAN_COURSE_H

#include "analyse/span_account.h"
#include "base/buffer.h"

enum { SPAN_COURSE_PARTS = 32 };

/* One letter for each equal part of a span's time: what most of it was. */
struct span_course {
    char letters[SPAN_COURSE_PARTS + 1];
};

/* Those of `count` spans; `out` has room for them. */
void span_courses_find(const struct span_accounts *accounts, const struct span_row *const *spans,
                       size_t count, struct span_course *out);
/* What the letters mean, those that occur: "# ran, . blocked". */
void span_courses_legend(const struct span_course *courses, size_t count, struct buffer *out);

#endif
