#include <string.h>

#include "base/own.h"
#include "base/units.h"
#include "cli/message.h"
#include "cli/question.h"
#include "cli/report_csv.h"
#include "cli/report_json.h"
#include "cli/report_table.h"
#include "cli/shell_word.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

enum { SAMPLES_ROWS_SHOWN = 30 };

static uint32_t samples_top(const struct report_values *v)
{
    return report_top(v, SAMPLES_ROWS_SHOWN);
}

static const char *samples_by_word(const struct report_values *v)
{
    return report_by_word(v, "function");
}

/* More than so many percent of the stacks are not whole, or of the user frames unnamed. */
static bool report_is_too_poor(const struct report_values *v, const struct profile *p)
{
    const struct profile_counts *n = &p->counts;
    double most = 100;
    if (v->strict)
        units_parse_percent(v->strict, &most); /* it was checked */
    uint64_t stacks = n->whole + n->truncated + n->broken;
    return (double)(n->truncated + n->broken) * 100 > most * (double)stacks ||
           (double)n->unnamed * 100 > most * (double)n->user_frames;
}

static bool report_strict(const char *text, struct error *err)
{
    double percent;
    if (!text || units_parse_percent(text, &percent))
        return true;
    error_set(err, ERROR_USAGE, "--strict wants a share in percent, not '%s'", text);
    return error_hint(err, "as in: --strict 0.1");
}

static bool report_by(const char *text, enum hot_by *out, struct error *err)
{
    for (unsigned i = 0; i < REPORT_BY_NAMES; i++)
        if (strcmp(report_by_names[i], text) == 0) {
            *out = (enum hot_by)i;
            return true;
        }
    error_set(err, ERROR_USAGE, "--by does not know '%s'", text);
    return error_hint(err, "one of: function, module, type, thread, process");
}

static bool report_print(struct buffer *text, struct error *err)
{
    bool ok = stdout_text(text, err);
    buffer_done(text);
    return ok;
}

static bool report_hot_rows(const struct report_values *v, enum hot_by by, const struct capture *c,
                            const struct profile *p, struct error *err)
{
    struct hot_table table;
    hot_table_build(p, by, v->inclusive, samples_top(v), &table);
    bool ok;
    if (v->json) {
        ok = report_json_hot(c, p, &table, by, samples_top(v), err);
    } else {
        struct buffer text;
        buffer_init(&text, OUTPUT_BYTES_MAX);
        if (v->csv) {
            report_csv_hot(p, &table, by, samples_top(v), &text);
        } else {
            report_head(c, p, stdout_width(), &text);
            report_hot(p, &table, by, samples_top(v), stdout_width(), &text);
        }
        ok = report_print(&text, err);
    }
    hot_table_done(&table);
    return ok;
}

static bool report_around(const struct report_values *v, const struct capture *c, const struct profile *p,
                          struct error *err)
{
    const char *function = v->callers ? v->callers : v->callees;
    struct call_neighbours found;
    if (!call_neighbours_build(p, function, v->callers != NULL, &found)) {
        error_set(err, ERROR_USAGE, "no function of this capture is called '%s'", function);
        AUTO_FREE char *path = shell_word_new(c->path);
        return error_hint(err, "clrperf report %s --top 0 lists their names", path);
    }
    bool ok;
    if (v->json) {
        ok = report_json_neighbours(c, p, &found, function, v->callers != NULL, samples_top(v), err);
    } else {
        struct buffer text;
        buffer_init(&text, OUTPUT_BYTES_MAX);
        if (v->csv) {
            report_csv_neighbours(p, &found, samples_top(v), &text);
        } else {
            report_head(c, p, stdout_width(), &text);
            report_neighbours(p, &found, function, v->callers != NULL, samples_top(v), stdout_width(), &text);
        }
        ok = report_print(&text, err);
    }
    call_neighbours_done(&found);
    return ok;
}

static bool report_whole_tree(const struct report_values *v, const struct capture *c, const struct profile *p,
                              struct error *err)
{
    if (v->json)
        return report_json_tree(c, p, err);
    struct buffer text;
    buffer_init(&text, OUTPUT_BYTES_MAX);
    report_head(c, p, stdout_width(), &text);
    report_tree(p, stdout_width(), &text);
    return report_print(&text, err);
}

static bool report_threads_csv(const struct report_values *v, const struct profile *p, struct error *err)
{
    struct buffer text;
    buffer_init(&text, OUTPUT_BYTES_MAX);
    report_csv_threads(p, report_top(v, 0), &text);
    return report_print(&text, err);
}

/* What shows a function's place among others. */
static bool samples_check_shape(const struct report_values *v, enum hot_by by, struct error *err)
{
    const char *shape = v->tree ? "tree" : v->callers ? "callers" : v->callees ? "callees" : NULL;
    const char *function = v->callers ? v->callers : v->callees;
    if ((v->callers != NULL) + (v->callees != NULL) + v->tree > 1) {
        error_set(err, ERROR_USAGE, "--callers, --callees and --tree exclude each other");
        return error_hint(err, "ask for one after the other");
    }
    if (function && !*function) {
        error_set(err, ERROR_USAGE, "--%s wants the name of a function, or a part of it", shape);
        return error_hint(err, "clrperf report FILE --top 0 lists their names");
    }
    if (shape && by != HOT_BY_FUNCTION) {
        error_set(err, ERROR_USAGE, "--%s is of functions, not with --by %s", shape, samples_by_word(v));
        return error_hint(err, "leave --by out");
    }
    if (v->csv && v->tree) {
        error_set(err, ERROR_USAGE, "--tree has no --csv: a tree is no table");
        return error_hint(err, "--tree --json has all of it");
    }
    return true;
}

static bool samples_check(const struct report_values *v, struct error *err)
{
    enum hot_by by;
    struct profile_options options;
    if (!report_by(samples_by_word(v), &by, err) || !report_strict(v->strict, err) ||
        !samples_check_shape(v, by, err))
        return false;
    if (v->lines && by != HOT_BY_FUNCTION) {
        error_set(err, ERROR_USAGE, "--lines shows lines of functions, not with --by %s", samples_by_word(v));
        return error_hint(err, "leave --by out");
    }
    return profile_choice_options(&v->choice, &options, err);
}

static bool samples_answer(const struct report_values *v, enum hot_by by, bool threads,
                           const struct capture *c, const struct profile *p, struct error *err)
{
    if (threads && v->json)
        return report_json_threads(c, p, report_top(v, 0), err);
    if (threads && v->csv)
        return report_threads_csv(v, p, err);
    if (v->tree)
        return report_whole_tree(v, c, p, err);
    return v->callers || v->callees ? report_around(v, c, p, err) : report_hot_rows(v, by, c, p, err);
}

/* A recording of events alone answers other questions. */
static void samples_hint(const struct trace *t, struct error *err)
{
    struct buffer names;
    buffer_init(&names, sizeof err->hint);
    question_answered(t, &names);
    bool any = names.size > 0;
    buffer_u8(&names, 0);
    error_hint(err, "%s%s%srecord samples with: clrperf record -e cpu,context-switches",
               any ? "it answers: " : "", any ? (const char *)names.data : "", any ? "; " : "");
    buffer_done(&names);
}

/* `event` NULL: the one that --event says, else the capture's first. */
static bool samples_report(struct question_call *call, enum hot_by by, bool threads, const char *event,
                           struct error *err)
{
    const struct report_values *v = call->values;
    const struct trace *t = &call->capture->b.trace;
    struct profile_options options;
    struct profile *p;
    struct profile_choice choice = v->choice;
    if (event)
        choice.event = event;
    if (!profile_choice_options(&v->choice, &options, err))
        return false;
    if (!profile_choice_event(&choice, t, &options, err)) {
        if (call->capture->is_ours && !profile_choice_has_samples(t))
            samples_hint(t, err);
        return false;
    }
    options.lines = v->lines;
    if (!profile_build(t, &options, &p, err))
        return false;
    profile_choice_warn_empty(&v->choice, p, &options);
    bool ok = samples_answer(v, by, threads, call->capture, p, err);
    if (ok && report_is_too_poor(v, p))
        call->exit_code = EXIT_LOSS;
    profile_free(p);
    return ok;
}

static enum hot_by samples_by(const struct report_values *v)
{
    enum hot_by by = HOT_BY_FUNCTION;
    report_by(samples_by_word(v), &by, NULL); /* samples_check() found it good */
    return by;
}

static bool samples_run(struct question_call *call, struct error *err)
{
    return samples_report(call, samples_by(call->values), false, NULL, err);
}

static bool cpu_run(struct question_call *call, struct error *err)
{
    return samples_report(call, samples_by(call->values), false, "cpu", err);
}

static bool wall_run(struct question_call *call, struct error *err)
{
    return samples_report(call, samples_by(call->values), false, "wall", err);
}

static bool context_switches_run(struct question_call *call, struct error *err)
{
    return samples_report(call, samples_by(call->values), false, "context-switches", err);
}

static bool threads_run(struct question_call *call, struct error *err)
{
    return samples_report(call, HOT_BY_THREAD, true, NULL, err);
}

static bool processes_run(struct question_call *call, struct error *err)
{
    return samples_report(call, HOT_BY_PROCESS, false, NULL, err);
}

/* What a report without a question shows: the capture's first kind of samples. */
#define TAKES_ROWS  QUESTION_TAKES_SAMPLES " top strict inclusive json csv"
#define TAKES_SHAPE TAKES_ROWS " by callers callees tree lines"

extern const struct question question_samples, question_cpu, question_wall, question_context_switches,
    question_threads, question_processes;
const struct question question_samples = {
    .name = "",
    .takes = TAKES_SHAPE " event",
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = samples_run,
};

const struct question question_cpu = {
    .name = "cpu",
    .summary = "the functions that used the CPU (what is shown without a question)",
    .takes = TAKES_SHAPE,
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = cpu_run,
};

const struct question question_wall = {
    .name = "wall",
    .summary = "the functions that threads were in, running or not",
    .takes = TAKES_SHAPE,
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = wall_run,
};

const struct question question_context_switches = {
    .name = "context-switches",
    .summary = "the functions that gave up the CPU",
    .takes = TAKES_SHAPE,
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = context_switches_run,
};

const struct question question_threads = {
    .name = "threads",
    .summary = "a row for each thread",
    .takes = TAKES_ROWS " event",
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = threads_run,
};

const struct question question_processes = {
    .name = "processes",
    .summary = "a row for each process",
    .takes = TAKES_ROWS " event",
    .names_code = true,
    .shows_sums = true,
    .wants = import_wants_samples,
    .check = samples_check,
    .run = processes_run,
};
