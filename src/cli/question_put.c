#include "cli/question_put.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/text_fit.h"
#include "trace/facts.h"

enum { PROCESSES_SHOWN = 3, SECONDS = 1000000000 };

static struct capture_time shown_part(const struct capture_time *all, const struct profile_options *options)
{
    struct capture_time shown = *all;
    uint64_t to_ns = options->to_ns && options->to_ns < all->duration_ns ? options->to_ns : all->duration_ns;
    shown.start_ns += options->from_ns;
    shown.duration_ns = to_ns > options->from_ns ? to_ns - options->from_ns : 0;
    return shown;
}

bool question_scope_of_part(struct question_scope *scope, const struct question_call *call, struct error *err)
{
    const struct trace *t = &call->capture->b.trace;
    struct profile_options options;
    if (!profile_choice_options(&call->values->choice, &options, err))
        return false;
    *scope = (struct question_scope){
        .call = call, .trace = t, .time = capture_time_of(t), .raw_names = call->values->choice.raw_names
    };
    /* A runtime tells from before the recording's start on, first of what it does because we asked: its event
     * sources allocate and collect then.
     */
    scope->from_ns = scope->time.start_ns + options.from_ns;
    scope->to_ns = options.to_ns ? scope->time.start_ns + options.to_ns : 0;
    scope->shown = shown_part(&scope->time, &options);
    return true;
}

bool question_scope_init(struct question_scope *scope, const struct question_call *call, struct error *err)
{
    if (!question_scope_of_part(scope, call, err))
        return false;
    uint64_t from_ns = scope->from_ns - scope->time.start_ns;
    if (from_ns && from_ns >= scope->time.duration_ns)
        message_warning("--time %s begins after the end: the recording lasts %s", call->values->choice.time,
                        units_duration(scope->time.duration_ns).text);
    return true;
}

/* Whether `topic` stands behind the -e of the command that made the capture. */
static bool was_recorded(const struct trace *t, const char *topic)
{
    const char *line = trace_fact_value(t, FACT_COMMAND_LINE);
    const char *at = line ? strstr(line, " -e ") : NULL, *command = line ? strstr(line, " -- ") : NULL;
    size_t size = strlen(topic);
    if (!at || (command && command < at))
        return false;
    for (at += strlen(" -e "); *at && *at != ' '; at += *at == ',') {
        size_t word = strcspn(at, ", ");
        if (word == size && memcmp(at, topic, size) == 0)
            return true;
        at += word;
    }
    return false;
}

bool question_was_asked(const struct question_scope *scope, const struct question *question, bool any,
                        struct error *err)
{
    if (any || question_is_told(question, scope->trace))
        return true;
    if (was_recorded(scope->trace, question->record)) {
        error_set(err, ERROR_USAGE, "'%s' has no events that answer '%s': no .NET runtime was listened to",
                  scope->call->capture->path, question->name);
        return error_hint(err,
                          "clrperf doctor -p PID says whether it can be; of what is short-lived record the "
                          "command: clrperf record -e %s -- COMMAND",
                          question->record);
    }
    error_set(err, ERROR_USAGE, "'%s' has no events that answer '%s'", scope->call->capture->path,
              question->name);
    return error_hint(err, "record them with: clrperf record -e %s", question->record);
}

uint64_t question_lost(const struct question_scope *scope)
{
    uint64_t lost = 0;
    for (size_t i = 1; i < scope->trace->losses.count; i++)
        if (scope->trace->losses.rows[i].reason == LOSS_RUNTIME)
            lost += scope->trace->losses.rows[i].count;
    return lost;
}

/* Events were counted and not kept, so that it is not known whose they are: whoever is there is told of. */
static bool were_counted(const struct trace *t)
{
    for (size_t i = 1; i < t->event_types.count; i++)
        if (t->event_types.rows[i].counted)
            return true;
    return false;
}

/* By process: whether it sent events. The caller frees. */
static bool *processes_with_events(const struct trace *t, size_t *out_count)
{
    bool *with = mem_alloc(t->processes.count + 1, sizeof *with);
    *out_count = 0;
    for (size_t i = 1; i < t->events.count; i++) {
        uint32_t process = t->events.rows[i].process;
        if (process && process < t->processes.count && !with[process]) {
            with[process] = true;
            ++*out_count;
        }
    }
    bool counted = were_counted(t);
    for (uint32_t i = 1; i < t->processes.count && counted; i++) {
        *out_count += !with[i];
        with[i] = true;
    }
    return with;
}

bool question_has_processes(const struct question_scope *scope)
{
    size_t count;
    free(processes_with_events(scope->trace, &count));
    return count > 1;
}

void question_wrap(struct buffer *out, size_t from)
{
    enum { NAMES_WIDTH = 12 };
    text_wrap(out, from, NAMES_WIDTH, stdout_width());
}

void question_process(const struct question_scope *scope, uint32_t process, struct buffer *out)
{
    const struct trace_process *row = &scope->trace->processes.rows[process];
    const char *name = trace_string(scope->trace, row->name);
    utf8_escape(out, span_of(name, strlen(name)));
    if (row->pid)
        buffer_format(out, *name ? " (%u)" : "process %u", row->pid);
}

/* Which processes there are when none sent anything, from those that were asked to any. */
enum quiet_process { QUIET_ASKED, QUIET_MANAGED, QUIET_ANY, QUIET_PROCESSES };

static bool is_quiet(const struct trace *t, uint32_t process, enum quiet_process which)
{
    const struct trace_process *row = &t->processes.rows[process];
    if (which == QUIET_MANAGED)
        return *trace_string(t, row->runtime_version) != 0;
    if (which == QUIET_ANY)
        return row->pid || *trace_string(t, row->name);
    for (size_t i = 1; i < t->subscriptions.count; i++)
        if (t->subscriptions.rows[i].process == process)
            return true;
    return false;
}

/* By process: whether the head names it. The caller frees. */
static bool *processes_of_head(const struct question_scope *scope, size_t *out_count)
{
    const struct trace *t = scope->trace;
    const struct thread_filter *who = &scope->call->values->choice.who;
    bool *with = processes_with_events(t, out_count);
    for (unsigned which = QUIET_ASKED; which < QUIET_PROCESSES && !*out_count; which++)
        for (uint32_t i = 1; i < t->processes.count; i++) {
            with[i] = is_quiet(t, i, (enum quiet_process)which) && thread_filter_wants_process(who, t, i);
            *out_count += with[i];
        }
    return with;
}

static void head_processes(const struct question_scope *scope, struct buffer *out)
{
    const struct trace *t = scope->trace;
    size_t count, shown = 0;
    AUTO_FREE bool *with = processes_of_head(scope, &count);
    for (uint32_t i = 1; i < t->processes.count && shown < PROCESSES_SHOWN; i++) {
        if (!with[i])
            continue;
        buffer_string(out, shown++ ? ", " : "");
        question_process(scope, i, out);
        const char *version = trace_string(t, t->processes.rows[i].runtime_version);
        if (*version) {
            buffer_string(out, ", .NET ");
            utf8_escape(out, span_of(version, strlen(version)));
        }
    }
    if (!shown)
        buffer_string(out, "no process");
    if (count > shown)
        buffer_format(out, " and %zu more", count - shown);
}

void question_head(const struct question_scope *scope, struct buffer *out)
{
    time_t seconds = (time_t)(scope->time.realtime_ns / SECONDS);
    struct tm local;
    char text[64];
    head_processes(scope, out);
    if (scope->time.realtime_ns && localtime_r(&seconds, &local) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local))
        buffer_format(out, ", %s", text);
    if (scope->time.duration_ns)
        buffer_format(out, ", %s", units_duration(scope->time.duration_ns).text);
    buffer_u8(out, '\n');
    uint64_t lost = question_lost(scope);
    if (lost)
        buffer_format(out, "lost        at least %s events of the runtime: what follows is too little\n",
                      units_count(lost).text);
}

void question_json_begin(struct json_writer *j, struct buffer *text, const struct question_scope *scope,
                         const char *schema)
{
    stdout_json(j, text);
    json_begin_object(j);
    json_put_string(j, "schema", schema);
    capture_json_facts(j, scope->call->capture, scope->time.realtime_ns, scope->time.duration_ns, 0);
}

void question_json_process(struct json_writer *j, const struct question_scope *scope, uint32_t process)
{
    const struct trace_process *row = &scope->trace->processes.rows[process];
    const char *name = trace_string(scope->trace, row->name);
    json_put_string(j, "process", *name ? name : NULL);
    json_put_known_u64(j, "pid", row->pid != 0, row->pid);
}

void question_json_thread(struct json_writer *j, const struct question_scope *scope, const char *key,
                          uint32_t thread)
{
    json_put_known_u64(j, key, thread != 0, scope->trace->threads.rows[thread].tid);
}

void question_frame(const struct profile_frame *f, struct buffer *out)
{
    size_t module = strlen(f->module);
    if (module && (strncmp(f->name, f->module, module) != 0 || f->name[module] != '!')) {
        buffer_string(out, f->module);
        buffer_u8(out, '!');
    }
    buffer_string(out, f->name);
}

/* The nodes of a path, root first. Their number. */
static size_t path_of(const struct event_stacks *stacks, uint32_t node, uint32_t out[TRACE_STACK_DEPTH_MAX])
{
    size_t depth = event_stacks_depth(stacks, node);
    depth = depth < TRACE_STACK_DEPTH_MAX ? depth : TRACE_STACK_DEPTH_MAX;
    for (size_t i = depth; i-- > 0; node = event_stacks_caller(stacks, node))
        out[i] = node;
    return depth;
}

void question_json_stack(struct json_writer *j, const struct event_stacks *stacks, uint32_t node)
{
    uint32_t path[TRACE_STACK_DEPTH_MAX];
    size_t depth = path_of(stacks, node, path);
    struct buffer text;
    json_key(j, "stack");
    if (!node) {
        json_absent(j);
        return;
    }
    buffer_init(&text, OUTPUT_BYTES_MAX);
    json_begin_array(j);
    for (size_t i = 0; i < depth; i++) {
        buffer_clear(&text);
        question_frame(event_stacks_leaf(stacks, path[i]), &text);
        json_span(j, buffer_span(&text));
    }
    json_end_array(j);
    buffer_done(&text);
}

bool question_json_end(struct json_writer *j, struct error *err)
{
    json_end_object(j);
    return stdout_json_end(j, err);
}

void question_stack_text(const struct event_stacks *stacks, uint32_t node, unsigned frames,
                         struct buffer *out)
{
    for (unsigned i = 0; node && i < frames; i++, node = event_stacks_caller(stacks, node)) {
        buffer_string(out, i ? " < " : "");
        buffer_string(out, event_stacks_leaf(stacks, node)->name);
    }
}

void question_stack_csv(const struct event_stacks *stacks, uint32_t node, struct buffer *out)
{
    uint32_t path[TRACE_STACK_DEPTH_MAX];
    size_t depth = path_of(stacks, node, path);
    for (size_t i = 0; i < depth; i++) {
        if (i)
            buffer_u8(out, ';');
        question_frame(event_stacks_leaf(stacks, path[i]), out);
    }
}

void question_strip(const double *values, size_t count, struct buffer *out)
{
    enum { HEIGHTS = 8, LOWEST_BAR = 0x2581 };
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) {
        unsigned height = most > 0 && values[i] > 0 ? (unsigned)(values[i] * (HEIGHTS - 1) / most + 0.5) : 0;
        utf8_append(out, values[i] < 0 ? ' ' : LOWEST_BAR + height);
    }
}

bool question_print(struct buffer *text, struct error *err)
{
    bool ok = stdout_text(text, err);
    buffer_done(text);
    return ok;
}
