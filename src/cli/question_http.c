#include "analyse/http_spans.h"
#include "cli/question_spans.h"
#include "clr/provider_names.h"

extern const struct question question_http;

static bool http_run(struct question_call *call, struct error *err)
{
    struct spans_answer a = { .schema = "clrperf.report.http/1", .what = "requests", .name = "request" };
    struct http_spans spans;
    struct span_accounts accounts;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    http_spans_init(&spans, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    a.table = &spans.table;
    span_accounts_init(&accounts, &spans.table, a.scope.trace);
    a.accounts = &accounts;
    a.malformed = spans.malformed;
    a.by_thread = spans.by_thread;
    a.apart = "record -e http tells them apart";
    bool ok =
        question_was_asked(&a.scope, &question_http, spans.any || http_spans_asked(a.scope.trace), err) &&
        question_spans_put(&a, err);
    span_accounts_done(&accounts);
    http_spans_done(&spans);
    return ok;
}

static enum import_want http_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return http_spans_wants(provider, event_id) ? IMPORT_PAYLOADS : IMPORT_NOTHING;
}

const struct question question_http = {
    .name = "http",
    .summary = "requests served and sent: how many, how long, the slowest, what went on in them",
    .takes = QUESTION_TAKES_EVENTS,
    .wants = http_wants,
    .provider = HTTP_SERVED_PROVIDER,
    .record = "http",
    .level = 4,
    .run = http_run,
};
