#include "cli/record_stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/capture_export.h"
#include "cli/capture_file.h"
#include "cli/launch.h"
#include "cli/message.h"
#include "cli/record_port.h"
#include "cli/record_progress.h"
#include "cli/record_sources.h"
#include "cli/record_summary.h"
#include "cli/shell_word.h"
#include "cli/stop_signal.h"
#include "collect/runtime_socket.h"
#include "collect/stream_recording.h"
#include "collect/target_select.h"

enum {
    WORDS_MAX = 32768,
    PATH_SIZE = 4096,
    RESUME_MS = 500, /* one that runs needs none, and its events come meanwhile */
};

/* One run, from its options to its summary. */
struct stream_run {
    const struct record_values *values;
    const volatile sig_atomic_t *stopped; /* by a signal */
    struct record_sources sources;
    const struct export_format *export; /* of a second file, or NULL */
    char export_path[PATH_SIZE];
    int export_fd;
    struct target_list targets;
    struct diagnostic_port *port;
    struct diagnostic_caller caller; /* pid 0: nobody called */
    bool resumed;                    /* and it waits no more */
    struct launch launch;
    bool launched, released;      /* the command waits until it is released */
    bool created, export_created; /* and gone again at the end */
    pid_t pid;
    uint64_t start_ticks;
    const char *path, *name;
    char made_path[128];
    int fd;
    struct stopping_event *stopping;
    struct record_progress_line line;
    struct record_stats stats;
};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size > end_size && strcasecmp(text + size - end_size, end) == 0;
}

bool record_stream_is_meant(const struct record_values *v)
{
    return (v->format || (v->out && ends_with(v->out, ".nettrace"))) &&
           !record_sources_want_kernel(v->events);
}

static void note(void *user, const char *text)
{
    struct stream_run *run = user;
    record_progress_clear(&run->line);
    message_warning("%s", text);
}

static void show(void *user, const struct record_progress *now)
{
    struct stream_run *run = user;
    record_progress_show(&run->line, now, run->values->duration_ns);
}

static bool read_format(struct stream_run *run, struct error *err)
{
    const char *format = run->values->format;
    if (!format || strcasecmp(format, "nettrace") == 0)
        return true;
    run->export = strcasecmp(format, "speedscope") == 0 ? export_format_by_name("speedscope")
                  : strcasecmp(format, "chromium") == 0 ? export_format_by_name("chromium")
                                                        : NULL;
    if (run->export)
        return true;
    error_set(err, ERROR_USAGE, "'%s' is no value for --format", format);
    return error_hint(err,
                      "NetTrace, Speedscope or Chromium; for others: clrperf export FILE.nettrace -o ...");
}

static bool read_stopping(struct stream_run *run, struct error *err)
{
    const struct record_values *v = run->values;
    return (!v->stopping_provider && !v->stopping_event && !v->stopping_fields) ||
           stopping_event_new(v->stopping_provider, v->stopping_event, v->stopping_fields, &run->stopping,
                              err);
}

static bool read_values(struct stream_run *run, const struct verb_call *call, struct error *err)
{
    const struct record_values *v = run->values;
    struct target_query query = target_options_query(&v->target);
    unsigned targets = (call->command != NULL) + (v->port != NULL) + !target_query_is_empty(&query);
    if (targets > 1) {
        error_set(err, ERROR_USAGE,
                  "a command after --, a diagnostic port and a running target exclude each other");
        return error_hint(err, "leave out all but one");
    }
    if (!target_query_check(&query, err))
        return false;
    if (v->no_runtime || v->target.all)
        return error_set(err, ERROR_USAGE,
                         "%s and a .nettrace file exclude each other: it holds what one "
                         "runtime sends",
                         v->no_runtime ? "--no-runtime" : "-a");
    return record_sources_read_stream(v->events, &v->asked, v->force, note, run, &run->sources, err) &&
           read_format(run, err) && read_stopping(run, err);
}

static bool select_process(struct stream_run *run, struct error *err)
{
    struct target_query query = target_options_query(&run->values->target);
    query.one = true;
    if (!target_select_able(&query, TARGET_EVENTS, &run->targets, err))
        return false;
    const struct target *t = &run->targets.items[0];
    run->pid = t->pid;
    run->start_ticks = t->start_ticks;
    run->name = target_label(t);
    return true;
}

static bool launch(struct stream_run *run, const struct verb_call *call, struct error *err)
{
    struct launch_options how = record_port_launch(run->values, run->port);
    const char *slash = strrchr(call->command[0], '/');
    run->name = slash ? slash + 1 : call->command[0];
    run->launched = launch_start(call->command, &how, &run->launch, err);
    run->pid = run->launch.pid;
    return run->launched;
}

/* The command begins, once what it is recorded into is there. */
static bool release(struct stream_run *run, const struct verb_call *call, struct error *err)
{
    if (!run->launched)
        return true;
    if (write(run->launch.release_fd, "", 1) != 1)
        return error_set(err, ERROR_SYSTEM, "cannot start the command");
    run->released = launch_started(&run->launch, call->command[0], err);
    if (!run->released || !record_port_wait(run->port, run->launch.pid, run->stopped, &run->caller, err))
        return false;
    run->pid = run->caller.pid;
    run->start_ticks = run->caller.start_ticks;
    return true;
}

static bool select_runtime(struct stream_run *run, const struct verb_call *call, struct error *err)
{
    if (!record_port_open(run->values, call->command != NULL, &run->port, err))
        return false;
    if (call->command)
        return launch(run, call, err);
    run->name = "dotnet";
    if (!run->values->port)
        return select_process(run, err);
    bool ok = record_port_target(run->values, run->port, run->stopped, &run->caller, &run->pid, err);
    run->start_ticks = run->caller.start_ticks;
    return ok;
}

static bool open_file(struct stream_run *run, struct error *err)
{
    run->created = capture_file_create(run->path, run->values->force, &run->fd, err);
    return run->created;
}

static bool create_file(struct stream_run *run, struct error *err)
{
    run->path = run->values->out;
    if (!run->path) {
        char name[sizeof run->made_path];
        capture_file_name(run->name, (uint32_t)run->pid, name, sizeof name);
        *strrchr(name, '.') = '\0';
        snprintf(run->made_path, sizeof run->made_path, "%.100s.nettrace", name);
        run->path = run->made_path;
    }
    /* what is to be overwritten is kept until the recording can start */
    return (run->values->force && capture_file_will_replace(run->path)) || open_file(run, err);
}

static bool open_export(struct stream_run *run, struct error *err)
{
    run->export_created = capture_file_create(run->export_path, run->values->force, &run->export_fd, err);
    if (run->export_created)
        capture_file_promise(run->export_fd, "is in the .nettrace file beside it");
    return run->export_created;
}

/* The same name with the other format's extension, as dotnet-trace has it. It is written at the end, but a
 * name that cannot be written is refused now. */
static bool create_export(struct stream_run *run, struct error *err)
{
    size_t size = strlen(run->path) - (ends_with(run->path, ".nettrace") ? strlen(".nettrace") : 0);
    if (!run->export)
        return true;
    snprintf(run->export_path, sizeof run->export_path, "%.*s%s", (int)size, run->path,
             run->export->extension);
    return (run->values->force && capture_file_will_replace(run->export_path)) || open_export(run, err);
}

/* What was kept until now makes way. */
static bool open_kept(struct stream_run *run, struct error *err)
{
    return (run->fd >= 0 || open_file(run, err)) &&
           (!run->export || run->export_fd >= 0 || open_export(run, err));
}

/* A runtime that waits at its start goes on now; of one that does not wait nothing is heard. */
static bool started(void *user, struct error *err)
{
    struct stream_run *run = user;
    const struct record_values *v = run->values;
    struct buffer what;
    if (!v->quiet) {
        buffer_init(&what, WORDS_MAX);
        record_sources_text(&run->sources, NULL, 0, &what);
        record_progress_begin(&run->line, run->name, 1, (const char *)what.data, !run->launched);
        run->line.events = true;
        buffer_done(&what);
    }
    if (run->caller.pid) {
        run->resumed = true;
        return record_port_resume(v, run->port, &run->caller, err);
    }
    if (v->resume != SWITCH_OFF)
        event_peer_resume(&(struct event_peer){ .pid = run->pid,
                                                .start_ticks = run->start_ticks,
                                                .connect_timeout_ms = RESUME_MS,
                                                .reply_timeout_ms = RESUME_MS });
    return true;
}

static bool record(struct stream_run *run, struct error *err)
{
    const struct record_values *v = run->values;
    struct stream_recording_options options = {
        .peer = { run->pid, run->start_ticks, RUNTIME_SOCKET_CONNECT_MS, RUNTIME_SOCKET_REPLY_MS },
        .request = &run->sources.asked,
        .choose = run->sources.chosen,
        .out_fd = run->fd,
        .duration_ns = v->duration_ns,
        .stopping = run->stopping,
        .stop = run->stopped,
        .stop_fd = isatty(STDIN_FILENO) && !run->launched ? STDIN_FILENO : -1,
        .started = started,
        .progress = v->quiet ? NULL : show,
        .note = note,
        .user = run,
    };
    bool ok = stream_recording_run(&options, &run->stats, err);
    record_progress_clear(&run->line);
    diagnostic_port_let_all_go(run->port);
    return ok;
}

static bool convert(struct stream_run *run, struct error *err)
{
    const struct profile_choice all = { .may_be_none = true };
    const struct export_options plain = { 0 };
    struct capture c;
    if (!run->export)
        return true;
    bool ok = capture_export_read(run->path, run->export, &all, &c, err);
    if (ok) {
        capture_export_warn_empty(&c, run->export, run->export_path);
        ok = capture_file_begin(run->export_fd, err) &&
             capture_export_write(&c, run->export, &all, &plain, run->export_fd, err);
        capture_done(&c);
    }
    run->export_created = !ok;
    if (ok)
        return true;
    error_context(err, "writing '%s'", run->export_path);
    AUTO_FREE char *path = shell_word_new(run->path);
    return error_hint(err, "the recording itself is whole: clrperf export %s -o ...", path);
}

static struct record_summary outcome(const struct stream_run *run)
{
    struct stat st;
    return (struct record_summary){
        .path = run->path,
        .stats = &run->stats,
        .file_bytes = fstat(run->fd, &st) == 0 ? (uint64_t)st.st_size : 0,
        .stop_to_closed_ns = 0,
        .events = true,
    };
}

static bool tell(const struct stream_run *run, struct error *err)
{
    const struct record_summary s = outcome(run);
    if (!run->values->quiet) {
        record_summary_text(&s);
        record_summary_warn_stopping(&run->stats, run->stopping);
    }
    return !run->values->json || record_summary_json(&s, err);
}

/* What came before is in the file. */
static void tell_failure(const struct stream_run *run, struct error *err)
{
    const struct record_summary s = outcome(run);
    if (run->stats.ended_by != RECORD_ENDED_ERROR)
        return;
    if (err->kind == ERROR_SYSTEM) /* writing it failed */
        error_context(err, "'%s'", run->path);
    if (run->values->json)
        record_summary_json(&s, NULL);
}

static bool run_whole(struct stream_run *run, const struct verb_call *call, struct error *err)
{
    struct error failure;
    if (!read_values(run, call, err) || !select_runtime(run, call, err) || !create_file(run, err) ||
        !create_export(run, err) || !release(run, call, err) || !open_kept(run, err))
        return false;
    if (!record(run, err)) {
        tell_failure(run, err);
        return false;
    }
    run->created = false;
    if (convert(run, &failure))
        return tell(run, err);
    *err = failure;
    tell(run, NULL);
    return false;
}

/* It runs to its end, recorded or not: a runtime that has called stands still until it is let go. */
static void await_command(struct stream_run *run, struct verb_call *call, bool ok, struct error *err)
{
    if (!ok && run->caller.pid && !run->resumed)
        record_port_resume(run->values, run->port, &run->caller, NULL);
    if (!ok)
        message_warning("%s; the end of '%s' is waited for", err->what, call->command[0]);
    call->exit_code = launch_wait(&run->launch, run->stopped);
    if (ok && run->stats.ended_by == RECORD_ENDED_TARGET_EXIT && !run->values->quiet)
        launch_warn_killed(&run->launch, call->command[0]);
}

bool record_stream(const struct record_values *v, struct verb_call *call, struct error *err)
{
    struct stream_run run = { .values = v, .fd = -1, .export_fd = -1 };
    run.stopped = stop_signal_catch();
    bool ok = run_whole(&run, call, err);
    struct stat st;
    if (run.created && (fstat(run.fd, &st) < 0 || st.st_size == 0))
        unlink(run.path);
    if (run.export_created)
        unlink(run.export_path);
    if (run.port && !ok)
        diagnostic_port_let_all_go(run.port);
    if (run.released)
        await_command(&run, call, ok, err);
    else if (run.launched)
        launch_abandon(&run.launch);
    diagnostic_port_close(run.port);
    stopping_event_free(run.stopping);
    record_sources_done(&run.sources);
    target_list_done(&run.targets);
    if (run.fd >= 0)
        close(run.fd);
    if (run.export_fd >= 0)
        close(run.export_fd);
    return ok;
}
