#include "cli/question.h"

#include <string.h>

#include "analyse/told_events.h"

extern const struct question question_samples;
extern const struct question question_cpu;
extern const struct question question_wall;
extern const struct question question_context_switches;
extern const struct question question_threads;
extern const struct question question_processes;
extern const struct question question_gc;
extern const struct question question_jit;
extern const struct question question_alloc;
extern const struct question question_exceptions;
extern const struct question question_locks;
extern const struct question question_http;
extern const struct question question_tasks;
extern const struct question question_events;
extern const struct question question_threadpool;
extern const struct question question_topn;

/* clang-format off */
const struct question *const questions[] = {
    &question_cpu,
    &question_wall,
    &question_context_switches,
    &question_threads,
    &question_processes,
    &question_gc,
    &question_jit,
    &question_alloc,
    &question_exceptions,
    &question_locks,
    &question_http,
    &question_tasks,
    &question_events,
    &question_threadpool,
    &question_topn,
    NULL,
};
/* clang-format on */

const struct question *question_find(const char *name)
{
    if (!*name)
        return &question_samples;
    for (const struct question *const *q = questions; *q; q++)
        if (strcmp((*q)->name, name) == 0)
            return *q;
    return NULL;
}

bool question_is_told(const struct question *question, const struct trace *t)
{
    const char *provider = question->provider;
    return provider && (told_was_asked(t, provider, question->keywords, question->level) ||
                        (question->other_keywords &&
                         told_was_asked(t, provider, question->other_keywords, question->other_level)));
}

static bool question_is_answered(const struct question *question, const struct trace *t)
{
    if (question == &question_events)
        return t->events.count > 1;
    return question_is_told(question, t);
}

void question_answered(const struct trace *t, struct buffer *out)
{
    const char *comma = "";
    for (const struct question *const *q = questions; *q; q++) {
        if (!question_is_answered(*q, t))
            continue;
        buffer_format(out, "%s%s", comma, (*q)->name);
        comma = ", ";
    }
}

bool question_unknown(const char *name, struct error *err)
{
    struct buffer names;
    buffer_init(&names, sizeof err->hint);
    for (const struct question *const *q = questions; *q; q++)
        buffer_format(&names, "%s%s", q == questions ? "" : ", ", (*q)->name);
    buffer_u8(&names, 0);
    error_set(err, ERROR_USAGE, "a report does not know the question '%s'", name);
    error_hint(err, "one of: %s", (const char *)names.data);
    buffer_done(&names);
    return false;
}
