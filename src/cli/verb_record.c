#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/pidfd.h"
#include "base/units.h"
#include "base/urgency.h"
#include "cli/capture_export.h"
#include "cli/capture_file.h"
#include "cli/launch.h"
#include "cli/message.h"
#include "cli/record_port.h"
#include "cli/record_progress.h"
#include "cli/record_shortfall.h"
#include "cli/record_sources.h"
#include "cli/record_stream.h"
#include "cli/record_summary.h"
#include "cli/record_values.h"
#include "cli/shell_word.h"
#include "cli/stop_signal.h"
#include "cli/symbol_store.h"
#include "cli/target_finder.h"
#include "cli/verb.h"
#include "collect/cgroup.h"
#include "collect/recorder.h"
#include "symbolize/symbolizer.h"
#include "trace/facts.h"

enum {
    RECORD_RATE_HZ = 199,
    RECORD_RATE_MAX = 100000,
    RECORD_RING_PAGES = 128,
    RECORD_CHAINS = 32768,
    RECORD_MEMORY_BYTES = 12 << 20, /* what a web service takes */
    RECORD_COMMAND_BYTES = 32768,   /* of the command line a capture keeps */
};

static bool record_max_loss(const char *text, double *out, struct error *err)
{
    if (units_parse_percent(text, out))
        return true;
    error_set(err, ERROR_USAGE, "'%s' is no value for --max-loss", text);
    return error_hint(err, "give a share in percent, for example 1 or 0.5");
}

/* One run of the verb, from its options to its summary. */
struct record_run {
    const struct record_values *values;
    const volatile sig_atomic_t *stopped; /* by a signal */
    struct record_sources sources;
    struct diagnostic_port *port;    /* that runtimes call when they start, or NULL */
    struct diagnostic_caller caller; /* who called first; pid 0: nobody */
    struct target_list targets;
    struct stopping_event *stopping; /* or NULL */
    struct launch launch;
    bool launched;
    int clock_fd; /* of a command beside the targets: the recording ends with it; -1: there is none */
    pid_t *pids;
    uint64_t *start_ticks; /* of each, or NULL: they are not known */
    size_t pid_count;
    pid_t *present; /* of all or of a control group: runtimes that run already */
    size_t present_count;
    int cgroup_fd;
    const char *path;                   /* of the result; borrowed */
    char made_path[128];                /* when the user gave none */
    const struct export_format *export; /* when the result is not a capture */
    int export_fd;
    struct trace_builder b;
    struct trace_writer *w;
    struct recorder *recorder;
    struct record_progress_line line;
    struct record_stats stats;
    uint64_t file_bytes, stop_to_closed_ns;
    struct symbol_cache cache;
    struct kept_folder kept;
    char *kernel_list;             /* owned, or NULL */
    struct symbolizer *symbolizer; /* at work since the last sample; or NULL: it was not needed early */
    int capture_fd;                /* to read an unnamed capture again */
    bool created;                  /* the file at `path` is ours and there is no result in it yet */
};

/* Runtimes that only wait have no sample, and tell of events all the same. */
static void record_find_present(struct record_run *run, const struct target_query *query)
{
    struct target_list list;
    if ((!run->sources.has_topics && !run->sources.has_asked) || !target_select(query, &list, NULL))
        return;
    run->present = mem_alloc(list.count + 1, sizeof *run->present);
    for (size_t i = 0; i < list.count; i++)
        run->present[run->present_count++] = list.items[i].pid;
    target_list_done(&list);
}

/* Whether what is recorded is the command that we started. */
static bool record_owns(const struct record_run *run)
{
    return run->launched && run->clock_fd < 0;
}

/* The command is recorded or, beside targets that run, tells how long those are. */
static bool record_launch(struct record_run *run, const struct verb_call *call, bool beside,
                          struct error *err)
{
    struct launch_options how = record_port_launch(run->values, run->port);
    if (!launch_start(call->command, &how, &run->launch, err))
        return false;
    run->launched = true;
    if (beside) {
        run->clock_fd = pidfd_of(run->launch.pid);
        return run->clock_fd >= 0 || error_system(err, errno, "cannot wait for '%s'", call->command[0]);
    }
    run->pids = mem_alloc(1, sizeof *run->pids);
    run->pids[run->pid_count++] = run->launch.pid;
    return true;
}

static bool record_select(struct record_run *run, const struct verb_call *call, struct error *err)
{
    const struct record_values *v = run->values;
    bool events = run->sources.has_topics || run->sources.has_asked;
    struct target_query query = target_options_query(&v->target);
    bool beside = call->command && !target_query_is_empty(&query);
    if (!record_port_open(v, call->command && !beside && events, &run->port, err) ||
        (call->command && !record_launch(run, call, beside, err)))
        return false;
    if (record_owns(run))
        return true;
    if (v->port) {
        run->pids = mem_alloc(1, sizeof *run->pids);
        run->start_ticks = mem_alloc(1, sizeof *run->start_ticks);
        bool ok =
            record_port_target(v, run->port, run->stopped, &run->caller, &run->pids[run->pid_count++], err);
        run->start_ticks[0] = run->caller.start_ticks;
        return ok;
    }
    if (v->target.all || v->target.cgroup)
        record_find_present(run, &query);
    if (v->target.all)
        return true;
    /* the kernel itself watches a control group: processes that are born into it too */
    if (v->target.cgroup && !v->target.container && !query.pid_count && !query.name_count)
        return cgroup_open(v->target.cgroup, &run->cgroup_fd, err);
    if (!target_select(&query, &run->targets, err))
        return false;
    run->pids = mem_alloc(run->targets.count, sizeof *run->pids);
    run->start_ticks = mem_alloc(run->targets.count, sizeof *run->start_ticks);
    for (size_t i = 0; i < run->targets.count; i++) {
        run->start_ticks[i] = run->targets.items[i].start_ticks;
        run->pids[run->pid_count++] = run->targets.items[i].pid;
    }
    return true;
}

static const char *record_target_name(const struct record_run *run, const struct verb_call *call)
{
    if (run->targets.count == 1)
        return target_label(&run->targets.items[0]);
    if (!record_owns(run))
        return run->cgroup_fd >= 0 ? "cgroup" : run->pid_count ? "dotnet" : "machine";
    const char *slash = strrchr(call->command[0], '/');
    return slash ? slash + 1 : call->command[0];
}

static bool record_create(struct record_run *run, struct error *err)
{
    int fd;
    /* an export is written at the end, but a name that cannot be written is refused now */
    if (!capture_file_create(run->path, run->values->force, &fd, err))
        return false;
    run->created = true;
    if (run->export) {
        run->export_fd = fd;
        capture_file_promise(fd, "is lost; what is recorded into a .clrperf file is not");
        if (!capture_file_unnamed(&fd, err))
            return false;
        run->capture_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    return trace_writer_open(fd, &run->w, err);
}

/* A name that cannot be written is refused before anything starts. What is to be overwritten is kept until
 * the recording has started: it may be the last good one. */
static bool record_open(struct record_run *run, const struct verb_call *call, struct error *err)
{
    const struct record_values *v = run->values;
    run->path = v->out ? v->out : run->made_path;
    if (!v->out)
        capture_file_name(record_target_name(run, call), run->pid_count == 1 ? (uint32_t)run->pids[0] : 0,
                          run->made_path, sizeof run->made_path);
    run->export = v->out ? export_format_for_path(v->out) : NULL;
    return (v->force && capture_file_will_replace(run->path)) || record_create(run, err);
}

static void record_note(void *user, const char *text)
{
    struct record_run *run = user;
    record_progress_clear(&run->line);
    message_warning("%s", text);
}

static void record_show(void *user, const struct record_progress *now)
{
    struct record_run *run = user;
    record_progress_show(&run->line, now, run->values->duration_ns);
}

/* Somebody waits for the file from now on. */
static void record_begin_names(struct record_run *run)
{
    urgency_begin(URGENCY_MS);
    symbol_store_open(&run->cache);
    symbol_store_open_kept(&run->kept);
    run->kernel_list = symbol_store_kernel_path();
    struct symbolizer_options options = {
        .files = target_finder_live(recorder_files(run->recorder)),
        .cache = &run->cache,
        .kept = &run->kept,
        .kernel = true,
        .kernel_list = run->kernel_list,
    };
    run->symbolizer = symbolizer_begin(&run->b.trace, &run->b.functions, &options);
}

static bool record_meanwhile(void *user)
{
    struct record_run *run = user;
    if (run->symbolizer)
        return symbolizer_step(run->symbolizer);
    record_begin_names(run);
    return true;
}

static void record_describe(struct record_run *run, const struct verb_call *call)
{
    struct trace *t = &run->b.trace;
    struct utsname name;
    if (uname(&name) == 0) {
        trace_set_fact(t, FACT_HOST, name.nodename);
        trace_set_fact(t, FACT_KERNEL, name.release);
        trace_set_fact(t, FACT_ARCH, name.machine);
    }
    trace_set_fact(t, FACT_FORMAT, "clrperf");
    trace_set_fact(t, FACT_TOOL, "clrperf " CLRPERF_VERSION);
    struct buffer words;
    buffer_init(&words, SIZE_MAX);
    buffer_string(&words, "clrperf record");
    for (size_t i = 0; i < run->pid_count && !record_owns(run); i++)
        buffer_format(&words, "%s%d", i ? "," : " -p ", (int)run->pids[i]);
    if (run->values->target.all)
        buffer_string(&words, " -a");
    if (run->values->target.cgroup)
        buffer_format(&words, " --cgroup %s", run->values->target.cgroup);
    if (run->sources.cpu)
        buffer_format(&words, " -F %" PRIu64, run->values->rate_hz);
    if (run->values->events)
        buffer_format(&words, " -e %s", run->values->events);
    for (size_t i = 0; call->command && i < call->command_count; i++)
        buffer_format(&words, "%s%s", i ? " " : " -- ", call->command[i]);
    if (words.size > RECORD_COMMAND_BYTES)
        words.size = RECORD_COMMAND_BYTES;
    buffer_u8(&words, 0);
    trace_set_fact(t, FACT_COMMAND_LINE, (const char *)words.data);
    buffer_done(&words);
}

static bool record_start(struct record_run *run, struct error *err)
{
    const struct record_values *v = run->values;
    struct recorder_options options = {
        .perf = {
            .pids = run->pids,
            .pid_count = run->pid_count,
            .cgroup_fd = run->cgroup_fd,
            .on_exec = record_owns(run),
            .rate_hz = (uint32_t)v->rate_hz,
            .ring_pages = RECORD_RING_PAGES,
            .cpu = run->sources.cpu,
            .context_switches = run->sources.context_switches,
        },
        .topics = run->sources.has_topics ? &run->sources.topics : NULL,
        .asked = run->sources.has_asked ? &run->sources.asked : NULL,
        .port = run->port,
        .resume = v->resume != SWITCH_OFF,
        .port_is_ours = !v->port,
        .events_buffer_mb = run->sources.buffer_mb,
        .present = run->present,
        .present_count = run->present_count,
        .stopping = run->stopping,
        .start_ticks = run->start_ticks,
        .chosen = &run->targets,
        .kernel_chains = v->frame_pointers,
        .duration_ns = v->duration_ns,
        .runtime = !v->no_runtime,
        .stop = run->stopped,
        .stop_fd = run->launched ? run->clock_fd : isatty(STDIN_FILENO) ? STDIN_FILENO : -1,
        .release_fd = run->launched ? run->launch.release_fd : -1,
        .progress = v->quiet ? NULL : record_show,
        .note = record_note,
        .meanwhile = record_meanwhile,
        .user = run,
    };
    if (!recorder_start(&options, &run->b, &run->recorder, err))
        return false;
    return !run->caller.pid || record_port_resume(v, run->port, &run->caller, err);
}

/* Those that a full disk did not take. */
static void record_lose(struct record_run *run, uint64_t samples)
{
    uint64_t now_ns = clock_monotonic_ns();
    run->stats.samples -= samples;
    run->stats.lost += samples;
    if (samples)
        trace_builder_loss(&run->b, LOSS_WRITE, 0, now_ns, now_ns, samples);
}

/* Names everything and ends the file. What could not be recorded to the end is written all the same. */
static bool record_finish(struct record_run *run, struct error *err)
{
    struct symbolizer_result result;
    if (!run->symbolizer)
        record_begin_names(run);
    symbolizer_finish(run->symbolizer, &result);
    symbol_cache_close(&run->cache);
    kept_folder_done(&run->kept);
    free(run->kernel_list);
    if (result.kernel_hidden)
        record_note(run, "kernel functions have no names: the kernel hides its addresses; "
                         "as root: sysctl kernel.kptr_restrict=0");
    char text[600];
    if (result.map_problem[0]) {
        snprintf(text, sizeof text, "names of jitted code are missing: %s", result.map_problem);
        record_note(run, text);
    }
    if (result.map_malformed) {
        snprintf(text, sizeof text,
                 "%" PRIu64
                 " entries of perf maps or jitdumps are damaged: the code they are of may have no name",
                 result.map_malformed);
        record_note(run, text);
    }
    trace_set_fact_number(&run->b.trace, FACT_DURATION_NS, run->stats.duration_ns);
    trace_set_fact_number(&run->b.trace, FACT_SELF_CPU_NS, clock_own_cpu_ns());
    trace_set_fact_number(&run->b.trace, FACT_SELF_PEAK_RSS, clock_own_peak_rss_bytes());
    struct trace_writer *w = run->w;
    run->w = NULL;
    struct trace_written written;
    bool ok = trace_writer_close(w, &run->b, &written, err);
    run->file_bytes = written.bytes;
    if (!ok)
        record_lose(run, run->stats.samples - written.samples);
    run->stop_to_closed_ns = clock_monotonic_ns() - run->stats.stopped_ns - run->stats.rundown_ns;
    return ok;
}

static bool record_export(struct record_run *run, struct error *err)
{
    const struct profile_choice all = { 0 };
    const struct export_options plain = { 0 };
    struct source file;
    struct capture c;
    struct stat st;
    if (!source_over_fd(run->capture_fd, 0, UINT64_MAX, &file, err) ||
        !capture_read_made(&file, run->path, &c, err))
        return false;
    capture_export_warn_empty(&c, run->export, run->path);
    bool ok = capture_file_begin(run->export_fd, err) &&
              capture_export_write(&c, run->export, &all, &plain, run->export_fd, err);
    capture_done(&c);
    if (!ok) {
        run->stats.ended_by = RECORD_ENDED_ERROR;
        return error_context(err, "writing '%s'", run->path);
    }
    run->created = false;
    run->file_bytes = fstat(run->export_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    return true;
}

static struct record_summary record_outcome(const struct record_run *run)
{
    return (struct record_summary){
        .path = run->path,
        .stats = &run->stats,
        .trace = &run->b.trace,
        .file_bytes = run->file_bytes,
        .stop_to_closed_ns = run->stop_to_closed_ns,
        .samples = run->sources.cpu || run->sources.context_switches,
        .events = run->sources.has_topics || run->sources.has_asked,
    };
}

static void record_tell(const struct record_run *run)
{
    struct record_summary s = record_outcome(run);
    if (run->values->quiet)
        return;
    record_summary_text(&s);
    record_shortfall_tell(&(struct record_shortfall){
        .stats = &run->stats,
        .targets = run->pid_count,
        .only_target = run->pid_count == 1 ? run->pids[0] : 0,
        .launched = run->launched,
        .rate_hz = s.samples ? run->values->rate_hz : 0,
    });
    record_summary_warn_stopping(&run->stats, run->stopping);
    if (run->stats.samples + run->stats.events && !run->export) {
        AUTO_FREE char *path = shell_word_new(run->path);
        message_note("next: clrperf report %s, clrperf export %s -o flame.html", path, path);
    }
}

static bool record_too_lossy(const struct record_run *run)
{
    const struct record_stats *s = &run->stats;
    double percent;
    return run->values->max_loss_text && record_max_loss(run->values->max_loss_text, &percent, NULL) &&
           ((double)s->lost * 100.0 > percent * (double)(s->samples + s->lost) ||
            (double)s->events_lost * 100.0 > percent * (double)(s->events + s->events_lost));
}

static bool record_check(const struct record_values *v, const struct record_sources *sources,
                         struct error *err)
{
    double percent;
    struct target_query query = target_options_query(&v->target);
    if ((v->max_loss_text && !record_max_loss(v->max_loss_text, &percent, err)) ||
        !target_query_check(&query, err))
        return false;
    if (v->port && !target_query_is_empty(&query)) {
        error_set(err, ERROR_USAGE, "a diagnostic port and a running target exclude each other");
        return error_hint(err, "whoever calls at the port is the target");
    }
    if (v->rate_hz == 0 || v->rate_hz > RECORD_RATE_MAX) {
        error_set(err, ERROR_USAGE, "-F wants 1 to %d samples a second", RECORD_RATE_MAX);
        return error_hint(err, "leave -F out for %d, which suits most programs", RECORD_RATE_HZ);
    }
    if (v->no_runtime && (sources->has_topics || sources->has_asked)) {
        error_set(err, ERROR_USAGE, "--no-runtime asks nothing of the runtime: there will be no events");
        return error_hint(err, "leave out either --no-runtime, or the events of the runtime");
    }
    return true;
}

static void record_begin_line(struct record_run *run, const struct verb_call *call)
{
    struct buffer what;
    buffer_init(&what, RECORD_COMMAND_BYTES);
    record_sources_text(&run->sources, run->values->events, run->values->rate_hz, &what);
    record_progress_begin(&run->line, record_target_name(run, call), run->pid_count, (const char *)what.data,
                          !run->launched);
    run->line.samples = run->sources.cpu || run->sources.context_switches;
    run->line.events = run->sources.has_topics || run->sources.has_asked;
    buffer_done(&what);
}

static bool record_whole(struct record_run *run, struct verb_call *call, struct error *err)
{
    if (!record_select(run, call, err))
        return false;
    /* not before: until a forked child ends, each page is copied */
    mem_expect(RECORD_MEMORY_BYTES, RECORD_MEMORY_BYTES / 2);
    if (!record_open(run, call, err) || !record_start(run, err))
        return false;
    if (run->launched && !launch_started(&run->launch, call->command[0], err))
        return false;
    if (!run->w && !record_create(run, err))
        return false;
    if (!run->export)
        run->created = false;
    if (!run->values->quiet)
        record_begin_line(run, call);
    record_describe(run, call);
    struct error failure = { 0 };
    bool ok = recorder_run(run->recorder, run->w, &run->stats, &failure);
    record_progress_clear(&run->line);
    bool finished = record_finish(run, err);
    if (!ok) {
        *err = failure;
        run->created |=
            run->stats.samples + run->stats.events == 0; /* a file with nothing in it is not left */
        return failure.kind == ERROR_SYSTEM && error_context(err, "'%s'", run->path); /* writing it failed */
    }
    return finished && (!run->export || record_export(run, err));
}

static bool record_stopping(struct record_run *run, struct error *err)
{
    const struct record_values *v = run->values;
    if (!v->stopping_provider && !v->stopping_event && !v->stopping_fields)
        return true;
    if (!run->sources.has_asked && !run->sources.has_topics)
        return error_set(err, ERROR_USAGE,
                         "a stopping event is none that is recorded: ask for it with -e, "
                         "--profile or --providers");
    return stopping_event_new(v->stopping_provider, v->stopping_event, v->stopping_fields, &run->stopping,
                              err);
}

static bool record_run(struct verb_call *call, struct error *err)
{
    const struct record_values *v = call->values;
    if (v->out && strcmp(v->out, "-") == 0) {
        error_set(err, ERROR_USAGE, "a recording is not written to standard output");
        return error_hint(err, "record with -o FILE, then: clrperf export FILE -o - --format folded");
    }
    if (record_stream_is_meant(v))
        return record_stream(v, call, err);
    struct record_run run = {
        .values = v, .clock_fd = -1, .cgroup_fd = -1, .capture_fd = -1, .export_fd = -1
    };
    if (!record_sources_read(v->events, &v->asked, v->force, record_note, &run, &run.sources, err) ||
        !record_check(v, &run.sources, err) || !record_stopping(&run, err)) {
        record_sources_done(&run.sources);
        return false;
    }
    run.stopped = stop_signal_catch();
    trace_builder_init(&run.b, RECORD_CHAINS);
    bool ok = record_whole(&run, call, err);
    if (ok) {
        record_tell(&run);
        if (record_too_lossy(&run))
            call->exit_code = EXIT_LOSS;
        struct record_summary outcome = record_outcome(&run);
        if (v->json)
            ok = record_summary_json(&outcome, err);
    } else if (v->json && run.stats.ended_by == RECORD_ENDED_ERROR) { /* what came before */
        struct record_summary outcome = record_outcome(&run);
        record_summary_json(&outcome, NULL);
    }
    if (run.created)
        unlink(run.path);
    recorder_free(run.recorder);
    bool watched = run.stats.samples + run.stats.duration_ns != 0;
    if (run.launched && watched && !ok)
        message_warning("%s; '%s' may still run, its end is waited for", err->what, call->command[0]);
    diagnostic_port_let_all_go(run.port);
    if (run.launched && watched) {
        call->exit_code = launch_wait(&run.launch, run.stopped);
        if (run.stats.ended_by == RECORD_ENDED_TARGET_EXIT && !v->quiet &&
            (run.sources.has_topics || run.sources.has_asked))
            launch_warn_killed(&run.launch, call->command[0]);
    } else if (run.launched)
        launch_abandon(&run.launch);
    if (run.w)
        trace_writer_close(run.w, &run.b, NULL, NULL);
    if (run.capture_fd >= 0)
        close(run.capture_fd);
    if (run.export_fd >= 0)
        close(run.export_fd);
    if (run.cgroup_fd >= 0)
        close(run.cgroup_fd);
    if (run.clock_fd >= 0)
        close(run.clock_fd);
    trace_builder_done(&run.b);
    target_list_done(&run.targets);
    diagnostic_port_close(run.port);
    stopping_event_free(run.stopping);
    record_sources_done(&run.sources);
    free(run.pids);
    free(run.present);
    free(run.start_ticks);
    return ok;
}

static const struct option_spec record_options[] = {
    { "output", 'o', OPTION_STRING, offsetof(struct record_values, out),
      "write there; an export's extension (.svg .html .folded ...) writes that instead of a capture", "FILE",
      NULL },
    { "duration", 'd', OPTION_TIME_LIMIT, offsetof(struct record_values, duration_ns),
      "stop after this time (10s, 2m); else Ctrl-C, SIGTERM or Enter ends it", NULL, NULL },
    { "freq", 'F', OPTION_RATE, offsetof(struct record_values, rate_hz), "samples a second and CPU (199)",
      NULL, NULL },
    { "event", 'e', OPTION_STRING, offsetof(struct record_values, events),
      "what to record, with commas: cpu (the default), context-switches; of .NET runtimes: gc, jit, alloc, "
      "alloc-sampled, exceptions, locks, threadpool, http, tasks",
      "LIST", NULL },
    { "diagnostic-port", 0, OPTION_STRING, offsetof(struct record_values, port),
      "the runtime that calls there when it starts (DOTNET_DiagnosticPorts=PATH), or that listens there",
      "PATH[,listen|connect]", NULL },
    { "dport", 0, OPTION_STRING, offsetof(struct record_values, port), NULL, NULL, NULL },
    { "resume-runtime", 0, OPTION_SWITCH, offsetof(struct record_values, resume),
      "let a runtime that waits at its start go on (true)", "true|false", NULL },
    { "show-child-io", 0, OPTION_SWITCH, offsetof(struct record_values, show_child_io),
      "the command keeps our standard streams (true; with --json it prints to stderr)", "true|false", NULL },
    { "stopping-event-provider-name", 0, OPTION_STRING, offsetof(struct record_values, stopping_provider),
      "end when this provider tells of an event", "NAME", NULL },
    { "stopping-event-event-name", 0, OPTION_STRING, offsetof(struct record_values, stopping_event),
      "end at its event of this name, GC/Start", "NAME", NULL },
    { "stopping-event-payload-filter", 0, OPTION_STRING, offsetof(struct record_values, stopping_fields),
      "end at one whose fields have these values", "FIELD:VALUE,...", NULL },
    { "format", 0, OPTION_STRING, offsetof(struct record_values, format),
      "NetTrace, or besides that file Speedscope or Chromium", "FORMAT", NULL },
    { "force", 0, OPTION_FLAG, offsetof(struct record_values, force), "overwrite FILE", NULL, NULL },
    /* a habit from perf: stacks are always recorded */
    { "g", 'g', OPTION_FLAG, offsetof(struct record_values, stacks), NULL, NULL, NULL },
    { "frame-pointers", 0, OPTION_FLAG, offsetof(struct record_values, frame_pointers),
      "the kernel's own stacks: cheaper, but callers of leaf functions are missing", NULL, NULL },
    { "no-runtime", 0, OPTION_FLAG, offsetof(struct record_values, no_runtime),
      "ask nothing of the .NET runtime: no collections; jitted methods are named from its memory", NULL,
      NULL },
    { "max-loss", 0, OPTION_STRING, offsetof(struct record_values, max_loss_text),
      "exit with 6 when more than PERCENT of the samples, or of the events, were lost", "PERCENT", NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct record_values, json), "print the summary as JSON", NULL, NULL },
    { "quiet", 'q', OPTION_FLAG, offsetof(struct record_values, quiet), "no progress, no summary", NULL,
      NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct record_values, asked), NULL, NULL, event_option_specs },
    { NULL, 0, OPTION_GROUP, offsetof(struct record_values, target), NULL, NULL, target_option_specs },
    { 0 },
};

const struct verb verb_record = {
    .name = "record",
    .args = "[-- COMMAND]",
    .summary = "sample the CPU of running .NET processes, or of a command, into a capture",
    .options = record_options,
    .defaults = &(const struct record_values){ .rate_hz = RECORD_RATE_HZ },
    .values_size = sizeof(struct record_values),
    .takes_command = true,
    .run = record_run,
};
