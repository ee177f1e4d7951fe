#include <stdlib.h>
#include <string.h>

#include "cli/capture.h"
#include "cli/profile_options.h"
#include "cli/report_json.h"
#include "cli/report_table.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

struct report_values {
    struct profile_choice choice;
    const char *by, *callers, *callees, *strict;
    uint32_t top;
    bool inclusive, tree, lines, json;
};

/* What is asked: checked before the capture is read, which can take a while. */
struct report_question {
    bool threads; /* the question "threads" */
    enum hot_by by;
    const char *event; /* or NULL */
};

/* More than so many percent of the stacks are not whole, or of the user frames unnamed. */
static bool report_is_too_poor(const struct report_values *v, const struct profile *p)
{
    const struct profile_counts *n = &p->counts;
    char *end;
    double most = v->strict ? strtod(v->strict, &end) : 100;
    uint64_t stacks = n->whole + n->truncated + n->broken;
    return (double)(n->truncated + n->broken) * 100 > most * (double)stacks ||
           (double)n->unnamed * 100 > most * (double)n->user_frames;
}

static bool report_strict(const char *text, struct error *err)
{
    char *end = NULL;
    double percent = text ? strtod(text, &end) : 0;
    if (!text || (end != text && !*end && percent >= 0 && percent <= 100))
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

static bool report_check(const struct report_values *v, const char *question, struct report_question *out,
                         struct error *err)
{
    if (!report_by(v->by, &out->by, err) || !report_strict(v->strict, err))
        return false;
    if ((v->callers != NULL) + (v->callees != NULL) + v->tree > 1) {
        error_set(err, ERROR_USAGE, "--callers, --callees and --tree exclude each other");
        return error_hint(err, "ask for one after the other");
    }
    if (v->lines && out->by != HOT_BY_FUNCTION) {
        error_set(err, ERROR_USAGE, "--lines shows lines of functions, not with --by %s", v->by);
        return error_hint(err, "leave --by out");
    }
    out->threads = strcmp(question, "threads") == 0;
    if (out->threads)
        out->by = HOT_BY_THREAD;
    else if (strcmp(question, "processes") == 0)
        out->by = HOT_BY_PROCESS;
    else if (strcmp(question, "cpu") == 0 || strcmp(question, "context-switches") == 0)
        out->event = question;
    else if (question[0]) {
        error_set(err, ERROR_USAGE, "a report does not know the question '%s'", question);
        return error_hint(err, "one of: cpu, context-switches, threads, processes");
    }
    return true;
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
    hot_table_build(p, by, v->inclusive, v->top, &table);
    bool ok;
    if (v->json) {
        ok = report_json_hot(c, p, &table, by, v->top, err);
    } else {
        struct buffer text;
        buffer_init(&text, OUTPUT_BYTES_MAX);
        report_head(c, p, &text);
        report_hot(p, &table, by, v->top, stdout_width(), &text);
        ok = report_print(&text, err);
    }
    hot_table_done(&table);
    return ok;
}

static bool report_around(const struct report_values *v, const struct capture *c, const struct profile *p,
                          struct error *err)
{
    const char *function = v->callers ? v->callers : v->callees;
    struct hot_table table;
    if (!hot_table_neighbours(p, function, v->callers != NULL, &table)) {
        error_set(err, ERROR_USAGE, "no function of this capture is called '%s'", function);
        return error_hint(err, "clrperf report %s --top 0 lists their names", c->path);
    }
    size_t top = v->top ? v->top + (size_t)1 : 0; /* row 0 is the function itself */
    bool ok;
    if (v->json) {
        ok = report_json_hot(c, p, &table, HOT_BY_FUNCTION, top, err);
    } else {
        struct buffer text;
        buffer_init(&text, OUTPUT_BYTES_MAX);
        report_head(c, p, &text);
        report_neighbours(p, &table, v->callers != NULL, top, stdout_width(), &text);
        ok = report_print(&text, err);
    }
    hot_table_done(&table);
    return ok;
}

static bool report_whole_tree(const struct report_values *v, const struct capture *c, const struct profile *p,
                              struct error *err)
{
    if (v->json)
        return report_json_tree(c, p, err);
    struct buffer text;
    buffer_init(&text, OUTPUT_BYTES_MAX);
    report_head(c, p, &text);
    report_tree(p, stdout_width(), &text);
    return report_print(&text, err);
}

static bool report_answer(const struct report_values *v, const struct report_question *question,
                          const struct capture *c, const struct profile *p, struct error *err)
{
    if (question->threads && v->json)
        return report_json_threads(c, p, err);
    if (v->tree)
        return report_whole_tree(v, c, p, err);
    return v->callers || v->callees ? report_around(v, c, p, err)
                                    : report_hot_rows(v, question->by, c, p, err);
}

static bool report_run(struct verb_call *call, struct error *err)
{
    const struct report_values *v = call->values;
    if (call->arg_count < 1) {
        error_set(err, ERROR_USAGE, "which capture?");
        return error_hint(err, "clrperf report FILE; record one with: clrperf record -d 10s");
    }
    struct report_question question = { 0 };
    struct capture c;
    struct profile *p;
    struct profile_options options;
    if (!report_check(v, call->arg_count > 1 ? call->args[1] : "", &question, err) ||
        !profile_choice_options(&v->choice, &options, err) || !capture_open(call->args[0], &c, err))
        return false;
    capture_warn(&c);
    options.lines = v->lines;
    struct profile_choice choice = v->choice;
    if (question.event)
        choice.event = question.event;
    bool ok = profile_choice_event(&choice, &c.b.trace, &options, err) &&
              profile_build(&c.b.trace, &options, &p, err);
    if (ok) {
        ok = report_answer(v, &question, &c, p, err);
        if (ok && report_is_too_poor(v, p))
            call->exit_code = EXIT_LOSS;
        profile_free(p);
    }
    capture_done(&c);
    return ok;
}

static const struct option_spec report_options[] = {
    { "top", 'n', OPTION_COUNT, offsetof(struct report_values, top), "show the N heaviest rows, 0 all (30)",
      "N", NULL },
    { "by", 0, OPTION_STRING, offsetof(struct report_values, by),
      "rows are: function, module, type, thread, process", "WHAT", NULL },
    { "strict", 0, OPTION_STRING, offsetof(struct report_values, strict),
      "end with 6 when more of the stacks are not whole, or more of the user frames have no name", "PERCENT",
      NULL },
    { "inclusive", 'i', OPTION_FLAG, offsetof(struct report_values, inclusive),
      "sort by total instead of self", NULL, NULL },
    { "callers", 0, OPTION_STRING, offsetof(struct report_values, callers),
      "who calls FUNCTION, and how much", "FUNCTION", NULL },
    { "callees", 0, OPTION_STRING, offsetof(struct report_values, callees),
      "whom FUNCTION calls, and how much", "FUNCTION", NULL },
    { "tree", 0, OPTION_FLAG, offsetof(struct report_values, tree), "the call tree from the root", NULL,
      NULL },
    { "lines", 0, OPTION_FLAG, offsetof(struct report_values, lines),
      "a row for each source line of a function", NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct report_values, json), "print JSON instead of a table", NULL,
      NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct report_values, choice), NULL, NULL, profile_choice_specs },
    { 0 },
};

const struct verb verb_report = {
    .name = "report",
    .args = "FILE [cpu|threads|processes]",
    .summary = "show where the time of a capture went",
    .details = "FILE is a capture, or a perf.data, `perf script` text or folded stacks of another tool.",
    .options = report_options,
    .defaults = &(const struct report_values){ .top = 30, .by = "function" },
    .values_size = sizeof(struct report_values),
    .args_max = 2,
    .run = report_run,
};
