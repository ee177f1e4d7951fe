#include "analyse/task_spans.h"
#include "cli/question_spans.h"
#include "clr/provider_names.h"

extern const struct question question_tasks;

static bool tasks_run(struct question_call *call, struct error *err)
{
    struct spans_answer a = { .schema = "clrperf.report.tasks/1", .what = "tasks", .name = "name" };
    struct task_spans spans;
    struct span_accounts accounts;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    task_spans_init(&spans, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    a.table = &spans.table;
    span_accounts_init(&accounts, &spans.table, a.scope.trace);
    a.accounts = &accounts;
    a.malformed = spans.malformed;
    a.by_thread = spans.by_thread;
    a.apart = a.scope.trace->event_activities.count > 1 /* somebody kept track of them */
                  ? "their source has them in none (EventActivityOptions.Disable)"
                  : "record -e tasks tells them apart";
    bool ok =
        question_was_asked(&a.scope, &question_tasks, spans.any || task_spans_asked(a.scope.trace), err) &&
        question_spans_put(&a, err);
    span_accounts_done(&accounts);
    task_spans_done(&spans);
    return ok;
}

static enum import_want tasks_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return task_spans_wants(provider, event_id) ? IMPORT_PAYLOADS : IMPORT_NOTHING;
}

const struct question question_tasks = {
    .name = "tasks",
    .summary = "tasks, and what event sources begin and end: how long, how often, what went on in them",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS,
    .wants = tasks_wants,
    .provider = TASKS_PROVIDER,
    .record = "tasks",
    .keywords = 0x2,
    .level = 4,
    .run = tasks_run,
};
