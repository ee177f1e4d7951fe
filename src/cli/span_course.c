#include "cli/span_course.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum { AWAY = THREAD_STATES, KINDS };

static const struct {
    char letter;
    const char *meaning;
} kinds[KINDS] = {
    [THREAD_UNKNOWN] = { '?', "not known" },
    [THREAD_RAN] = { '#', "ran" },
    [THREAD_BLOCKED] = { '.', "blocked" },
    [THREAD_READY] = { '~', "waited for a CPU" },
    [THREAD_OFF] = { 'o', "off CPU" },
    [THREAD_LOCK] = { 'L', "waited for a lock" },
    [THREAD_GC] = { 'G', "stood still for a collection" },
    [AWAY] = { '_', "no thread worked for it" },
};

static uint64_t time_of(const struct span_account *part, unsigned kind)
{
    uint64_t outside = kind == AWAY ? part->away_ns : kind == THREAD_UNKNOWN ? part->unknown_ns : 0;
    return outside + (kind == AWAY ? 0 : part->times.ns[kind]);
}

static char letter_of(const struct span_account *part)
{
    unsigned most = 0;
    for (unsigned kind = 1; kind < KINDS; kind++)
        if (time_of(part, kind) > time_of(part, most))
            most = kind;
    return kinds[most].letter;
}

void span_courses_find(const struct span_accounts *accounts, const struct span_row *const *spans,
                       size_t count, struct span_course *out)
{
    AUTO_FREE struct span_account *parts = mem_alloc(count * SPAN_COURSE_PARTS + 1, sizeof *parts);
    span_accounts_parts(accounts, spans, count, SPAN_COURSE_PARTS, parts);
    for (size_t i = 0; i < count; i++) {
        for (size_t part = 0; part < SPAN_COURSE_PARTS; part++)
            out[i].letters[part] = letter_of(&parts[i * SPAN_COURSE_PARTS + part]);
        out[i].letters[SPAN_COURSE_PARTS] = 0;
    }
}

void span_courses_legend(const struct span_course *courses, size_t count, struct buffer *out)
{
    bool first = true;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        bool occurs = false;
        for (size_t i = 0; i < count && !occurs; i++)
            occurs = strchr(courses[i].letters, kinds[kind].letter);
        if (!occurs)
            continue;
        buffer_format(out, "%s%c %s", first ? "" : ", ", kinds[kind].letter, kinds[kind].meaning);
        first = false;
    }
}
