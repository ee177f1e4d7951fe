#include <stdlib.h>
#include <string.h>

#include "analyse/hot.h"
#include "analyse/thread_span.h"
#include "base/own.h"
#include "cli/json_put.h"
#include "cli/question_put.h"
#include "cli/shell_word.h"
#include "cli/standard_output.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

static size_t rows_shown(const struct question_call *call, const struct hot_table *table)
{
    size_t top = call->values->top;
    return top && top < table->count ? top : table->count;
}

/* Rank, share of time with it anywhere on the stack, share with it on top: dotnet-trace's columns. */
static bool topn_table(const struct question_call *call, const struct profile *p,
                       const struct hot_table *table, struct error *err)
{
    struct buffer text;
    buffer_init(&text, OUTPUT_BYTES_MAX);
    buffer_format(&text, "rank  inclusive  exclusive  function\n");
    for (size_t i = 0; i < rows_shown(call, table); i++) {
        const struct hot_row *row = &table->rows[i];
        buffer_format(&text, "%4zu  %8.2f%%  %8.2f%%  %s%s%s\n", i + 1,
                      100 * question_share(row->total, p->counts.weight),
                      100 * question_share(row->self, p->counts.weight), row->module, *row->module ? "!" : "",
                      row->name);
    }
    bool ok = stdout_text(&text, err);
    buffer_done(&text);
    return ok;
}

static bool topn_json(const struct question_call *call, const struct profile *p,
                      const struct hot_table *table, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    stdout_json(&j, &text);
    json_begin_object(&j);
    json_put_string(&j, "schema", "clrperf.report.topn/1");
    capture_json_head(&j, call->capture, p);
    json_put_object(&j, "totals");
    json_put_u64(&j, "samples", p->counts.samples);
    json_put_double(&j, "wall_s", (double)p->counts.weight / 1e9);
    json_end_object(&j);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows_shown(call, table); i++) {
        const struct hot_row *row = &table->rows[i];
        json_begin_object(&j);
        json_put_u64(&j, "rank", i + 1);
        json_put_string(&j, "name", row->name);
        json_put_string(&j, "module", *row->module ? row->module : NULL);
        json_put_double(&j, "inclusive_share", question_share(row->total, p->counts.weight));
        json_put_double(&j, "exclusive_share", question_share(row->self, p->counts.weight));
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    return stdout_json_end(&j, err);
}

static bool topn_check(const struct report_values *v, struct error *err)
{
    struct profile_options options;
    return profile_choice_options(&v->choice, &options, err);
}

static bool topn_run(struct question_call *call, struct error *err)
{
    const struct report_values *v = call->values;
    const struct trace *t = &call->capture->b.trace;
    struct profile_options options;
    struct profile *p;
    struct hot_table table;
    if (!trace_fact_value(t, FACT_WALL_EVENT)) {
        error_set(err, ERROR_USAGE, "this file has no samples of wall time");
        AUTO_FREE char *path = shell_word_new(call->capture->path);
        return error_hint(err,
                          "topN is for what dotnet-trace collects with the profile "
                          "dotnet-sampled-thread-time; see: clrperf report %s",
                          path);
    }
    if (!profile_choice_options(&v->choice, &options, err))
        return false;
    AUTO_FREE uint64_t *weights = thread_span_weights(t);
    options.kind = SAMPLE_WALL;
    options.weights = weights;
    options.tree_only = true;
    if (!profile_build(t, &options, &p, err))
        return false;
    hot_table_build(p, HOT_BY_FUNCTION, v->inclusive, 1, &table);
    bool ok = v->json ? topn_json(call, p, &table, err) : topn_table(call, p, &table, err);
    hot_table_done(&table);
    profile_free(p);
    return ok;
}

/* Of events only those that are looks at a thread (analyse/thread_span.h). */
static enum import_want topn_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    bool is_look = strcmp(provider, RUNTIME_STREAM_PROVIDER) == 0 || thread_span_wants(provider, event_id);
    return is_look ? IMPORT_EVENTS : IMPORT_NOTHING;
}

extern const struct question question_topn;
const struct question question_topn = {
    .name = "topN",
    .summary = "the functions threads spent their wall time in, weighed as dotnet-trace report topN does",
    .takes = QUESTION_TAKES_SAMPLES " top inclusive json",
    .names_code = true,
    .shows_sums = true,
    .prepare = thread_span_add_allocations,
    .wants = topn_wants,
    .check = topn_check,
    .run = topn_run,
};
