#include <stdio.h>
#include <string.h>

#include "analyse/process_events.h"
#include "analyse/sample_events.h"
#include "cli/capture.h"
#include "cli/event_parts.h"
#include "cli/message.h"
#include "cli/question.h"
#include "cli/verb.h"

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
      "who calls FUNCTION (its name, or a part of it), and how much", "FUNCTION", NULL },
    { "callees", 0, OPTION_STRING, offsetof(struct report_values, callees),
      "whom FUNCTION (its name, or a part of it) calls, and how much", "FUNCTION", NULL },
    { "tree", 0, OPTION_FLAG, offsetof(struct report_values, tree), "the call tree from the root", NULL,
      NULL },
    { "lines", 0, OPTION_FLAG, offsetof(struct report_values, lines),
      "a row for each source line of a function, also of inlined native ones", NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct report_values, json), "print JSON instead of a table", NULL,
      NULL },
    { "csv", 0, OPTION_FLAG, offsetof(struct report_values, csv),
      "print comma-separated values instead of a table", NULL, NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct report_values, choice), NULL, NULL, profile_choice_specs },
    { NULL, 0, OPTION_GROUP, offsetof(struct report_values, events), NULL, NULL, event_choice_specs },
    { 0 },
};

static const struct report_values report_defaults = { .top = REPORT_TOP_UNSAID };

/* What would mean nothing to the question is refused, not ignored. */
static bool report_takes(const struct report_values *v, const struct question *question, struct error *err)
{
    const struct option_spec *other =
        option_given_besides(report_options, question->takes, v, &report_defaults);
    struct buffer names;
    if (!other)
        return true;
    error_set(err, ERROR_USAGE, "'%s' does not take --%s", *question->name ? question->name : "report",
              other->name);
    buffer_init(&names, sizeof err->hint);
    for (const char *at = question->takes; *at;) {
        size_t size = strcspn(at, " ");
        buffer_format(&names, "%s--%.*s", at == question->takes ? "" : ", ", (int)size, at);
        at += size + (at[size] == ' ');
    }
    buffer_u8(&names, 0);
    error_hint(err, "it takes %s", (const char *)names.data);
    buffer_done(&names);
    return false;
}

static bool report_check(const struct report_values *v, const struct question *question, struct error *err)
{
    if (!report_takes(v, question, err))
        return false;
    if (v->json && v->csv) {
        error_set(err, ERROR_USAGE, "--json and --csv exclude each other");
        return error_hint(err, "ask for one after the other");
    }
    return !question->check || question->check(v, err);
}

/* What there are sums of is read again where they do not do. */
static bool report_prepare(const char *path, const struct question *question, struct import_options *how,
                           struct capture *c, struct error *err)
{
    if (!question->prepare || question->prepare(&c->b.trace))
        return true;
    capture_done(c);
    how->runs = false;
    if (!capture_read(path, how, c, err))
        return false;
    question->prepare(&c->b.trace);
    return true;
}

static bool report_read(const char *path, const struct question *question, const struct report_values *v,
                        struct import_part *part, struct capture *c, struct error *err)
{
    struct import_options how = {
        .wants = question->wants,
        .user = v,
        .part = part,
        .runs =
            question->shows_sums && !v->choice.time && (!question->prepare || capture_can_read_again(path)),
    };
    if (!*question->name)
        return capture_read_stacks(path, &how, v->choice.event, c, err);
    if (!capture_read(path, &how, c, err) || !report_prepare(path, question, &how, c, err))
        return false;
    if (v->events.samples && !sample_events_add(&c->b.trace))
        message_warning("there are too many samples to show all of them among the events");
    return true;
}

/* Names those that told something, as many as there is room for. */
static bool report_unknown_process(const struct capture *c, const char *process, struct error *err)
{
    const struct trace *t = &c->b.trace;
    size_t used = 0;
    error_set(err, ERROR_USAGE, "'%s' has no process '%s'", c->path, process);
    error_hint(err, "clrperf report FILE processes lists those with samples");
    for (uint32_t i = 1; i < t->processes.count; i++) {
        const struct trace_process *row = &t->processes.rows[i];
        char one[256];
        int size = snprintf(one, sizeof one, "%s%s (%u)",
                            used ? ", " : "one of these: ", trace_string(t, row->name), row->pid);
        if (!process_events_told(t, i) || (size_t)size >= sizeof one ||
            used + (size_t)size >= sizeof err->hint)
            continue;
        memcpy(err->hint + used, one, (size_t)size + 1);
        used += (size_t)size;
    }
    return false;
}

/* What is made of events is made of those of the process that is meant; samples and `events` choose
 * themselves. */
static bool report_keep_process(const struct report_values *v, const struct question *question,
                                struct capture *c, struct error *err)
{
    const struct thread_filter *who = &v->choice.who;
    if (!question->provider || !who->process)
        return true;
    for (uint32_t i = 1; i < c->b.trace.processes.count; i++)
        if (thread_filter_wants_process(who, &c->b.trace, i)) {
            process_events_keep(&c->b.trace, who);
            return true;
        }
    return report_unknown_process(c, who->process, err);
}

static bool report_run(struct verb_call *call, struct error *err)
{
    const struct report_values *v = call->values;
    const char *name = call->arg_count > 1 ? call->args[1] : "";
    if (call->arg_count < 1) {
        error_set(err, ERROR_USAGE, "which capture?");
        return error_hint(err, "clrperf report FILE; record one with: clrperf record -d 10s");
    }
    const struct question *question = question_find(name);
    struct capture c;
    if (!question)
        return question_unknown(name, err);
    /* counting takes no room, and a pipe can be read once only */
    bool in_parts = question->in_parts && !v->events.counts && capture_can_read_again(call->args[0]);
    struct import_part part = { .events_max = EVENT_PARTS_EVENTS };
    if (!report_check(v, question, err) ||
        !report_read(call->args[0], question, v, in_parts ? &part : NULL, &c, err)) {
        event_course_done(&part.course);
        return false;
    }
    if (question->names_code)
        capture_name(&c);
    capture_warn(&c);
    struct question_call asked = { .values = v, .capture = &c, .part = in_parts ? &part : NULL };
    bool ok = report_keep_process(v, question, &c, err) && question->run(&asked, err);
    call->exit_code = asked.exit_code;
    capture_done(&c);
    event_course_done(&part.course);
    return ok;
}

static void report_words(struct buffer *out)
{
    buffer_string(out, "\nquestions:\n");
    for (const struct question *const *q = questions; *q; q++)
        buffer_format(out, "  %-18s %s\n", (*q)->name, (*q)->summary);
}

const struct verb verb_report = {
    .name = "report",
    .args = "FILE [QUESTION]",
    .summary = "show where the time of a capture went",
    .details = "FILE is a capture, or a perf.data, .nettrace, `perf script` text or folded stacks.",
    .words = report_words,
    .options = report_options,
    .defaults = &report_defaults,
    .values_size = sizeof(struct report_values),
    .args_max = 2,
    .run = report_run,
};
