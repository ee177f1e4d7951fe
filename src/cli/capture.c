#include "cli/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "analyse/event_samples.h"
#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/target_root.h"
#include "base/units.h"
#include "cli/capture_file.h"
#include "cli/capture_process.h"
#include "cli/import_stacks.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/symbol_store.h"
#include "cli/target_finder.h"
#include "clr/provider_names.h"
#include "collect/proc_file.h"
#include "collect/runtime_names.h"
#include "collect/target.h"
#include "collect/target_files.h"
#include "import/import.h"
#include "import/thread_time.h"
#include "read/byte_stream.h"
#include "read/procfs.h"
#include "symbolize/late_names.h"
#include "symbolize/osr_callers.h"
#include "symbolize/symbolizer.h"
#include "trace/facts.h"
#include "trace/trace_reader.h"

enum {
    CAPTURE_CHAINS = 1 << 20,
    CAPTURE_PATIENCE_MS = 3000, /* with the runtime of a process that still runs */
    CAPTURE_MAGIC_BYTES = 8,
    CAPTURE_PIPE_READ_BYTES = 64 * 1024,
    CAPTURE_LARGE_BYTES = 4 << 20,
};

#define CAPTURE_PIPE_BYTES_MAX (UINT64_C(1) << 30) /* it is kept in memory */

/* Files of processes that may or may not be there any more. */
struct local_files {
    const struct trace *t;
    struct target_files roots;
};

static int open_local(void *user, uint32_t process, const char *path)
{
    struct local_files *files = user;
    int fd = target_files_open(&files->roots, process, path);
    return fd >= 0 ? fd : target_finder_open_here(path);
}

/* The map a process left stays behind when it ends: its name holds the pid, its age must fit. */
static int open_local_jit(void *user, uint32_t process, bool jitdump, const char *path, struct error *err)
{
    struct local_files *files = user;
    int fd = target_files_open_jit(&files->roots, process, jitdump, path, err);
    if (fd >= 0 || (err && err->kind == ERROR_INPUT))
        return fd;
    const struct trace_process *row = &files->t->processes.rows[process];
    char usual[64];
    snprintf(usual, sizeof usual, jitdump ? "/tmp/jit-%" PRIu32 ".dump" : "/tmp/perf-%" PRIu32 ".map",
             row->ns_pid ? row->ns_pid : row->pid);
    fd = open(path ? path : usual, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    bool trusted = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                   !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
                   (geteuid() == 0 || st.st_uid == geteuid() || st.st_uid == 0);
    if (fd >= 0 && !trusted) {
        close(fd);
        error_set(err, ERROR_INPUT, "others than its owner and root may write to '%s', or own it",
                  path ? path : usual);
        return -1;
    }
    return fd;
}

static bool same_kernel(const struct trace *t)
{
    struct utsname name;
    const char *kernel = trace_fact_value(t, FACT_KERNEL), *host = trace_fact_value(t, FACT_HOST);
    return kernel && uname(&name) == 0 && strcmp(kernel, name.release) == 0 &&
           (!host || strcmp(host, name.nodename) == 0);
}

/* By process: whether some of its code is in no file and has no name yet. The caller frees. */
static bool *processes_with_unknown_code(const struct trace *t)
{
    bool *unknown = mem_alloc(t->processes.count, sizeof *unknown);
    for (size_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        uint8_t kind = t->images.rows[t->mappings.rows[row->mapping].image].kind;
        if (row->mapping && !row->function && !row->code && (kind == IMAGE_JIT || kind == IMAGE_ANON))
            unknown[row->process] = true;
    }
    return unknown;
}

/* Methods of processes that still run are told by their runtimes, also long after the samples were taken. */
static void capture_ask_runtimes(struct capture *c)
{
    struct trace *t = &c->b.trace;
    AUTO_FREE bool *unknown = processes_with_unknown_code(t);
    struct runtime_names *names = runtime_names_new(&c->b, true, false, NULL, NULL);
    const struct runtime_session_options options = { .connect_timeout_ms = CAPTURE_PATIENCE_MS,
                                                     .reply_timeout_ms = CAPTURE_PATIENCE_MS };
    struct error err; /* what it does not name stays without a name */
    for (uint32_t i = 1; i < t->processes.count; i++) {
        if (unknown[i] && capture_process_find(t, i))
            runtime_names_attach(names, t->processes.rows[i].pid, &options, &err);
    }
    runtime_names_tell_all(names, CAPTURE_PATIENCE_MS);
    runtime_names_free(names);
}

/* Names what the recorder could not name any more, or another tool never named, as far as files here say. */
static void capture_symbolize(struct capture *c, const struct symbol_cache *cache)
{
    struct trace *t = &c->b.trace;
    struct local_files files = { .t = t };
    for (uint32_t i = 1; i < t->processes.count; i++)
        if (capture_process_lives(&t->processes.rows[i]))
            target_files_add(&files.roots, i, t->processes.rows[i].pid);
    AUTO_FREE char *kernel_list = symbol_store_kernel_path();
    struct symbolizer_options options = {
        .files = { .open = open_local, .open_jit_file = open_local_jit, .user = &files },
        .cache = cache,
        .kernel = same_kernel(t),
        .kernel_list = kernel_list,
    };
    struct symbolizer_result result = { 0 };
    capture_ask_runtimes(c);
    symbolizer_run(t, &c->b.functions, &options, &result);
    if (result.map_problem[0])
        message_warning("names of jitted code are missing: %s", result.map_problem);
    if (result.map_malformed)
        message_warning(
            "%" PRIu64 " entries of perf maps or jitdumps are damaged: the code they are of may have no name",
            result.map_malformed);
    target_files_done(&files.roots);
}

void capture_name(struct capture *c)
{
    struct symbol_cache cache;
    symbol_store_open(&cache);
    if (c->b.trace.symbolized)
        late_names_add(&c->b.trace, &c->b.functions, &cache);
    else
        capture_symbolize(c, &cache);
    symbol_cache_close(&cache);
    osr_callers_leave_out(&c->b.trace);
}

static bool capture_load(struct capture *c, const struct source *file, struct error *err)
{
    struct trace t;
    if (!trace_reader_load(file, &t, err))
        return false;
    trace_builder_adopt(&c->b, &t);
    thread_time_from_events(&c->b.trace);
    c->is_ours = true;
    return true;
}

/* A capture is read here and there: one that comes through a pipe is put into a file without a name first. */
static bool capture_spool(struct byte_stream *pipe, int *out_fd, struct error *err)
{
    uint64_t size = 0;
    AUTO_FD int fd = -1;
    if (!capture_file_unnamed(&fd, err))
        return false;
    for (;;) {
        struct span some;
        if (!byte_stream_peek(pipe, CAPTURE_PIPE_READ_BYTES, &some, err))
            return false;
        if (some.size == 0)
            break;
        size += some.size;
        if (size > CAPTURE_PIPE_BYTES_MAX) {
            error_set(err, ERROR_LIMIT, "a capture of more than %s through a pipe",
                      units_size(CAPTURE_PIPE_BYTES_MAX).text);
            return error_hint(err, "write it to a file, and name that");
        }
        if (!fd_write(fd, some))
            return error_system(err, errno, "cannot keep what came through a pipe");
        byte_stream_take(pipe, some.size);
    }
    *out_fd = take_fd(&fd);
    return true;
}

static bool capture_take_ours(struct capture *c, struct byte_stream *stream, struct error *err)
{
    AUTO_FD int spool = -1;
    struct source file = stream->source;
    if (!byte_stream_is_seekable(stream) &&
        (!capture_spool(stream, &spool, err) || !source_over_fd(spool, 0, UINT64_MAX, &file, err)))
        return false;
    return capture_load(c, &file, err);
}

static bool capture_take(struct capture *c, struct byte_stream *stream, const struct import_options *options,
                         struct error *err)
{
    struct span head;
    bool recognised;
    if (!byte_stream_peek(stream, CAPTURE_MAGIC_BYTES, &head, err))
        return false;
    if (!trace_reader_recognises(head))
        return import_stream(stream, options, &c->b, &recognised, err) ||
               error_context(err, "cannot read '%s'", import_shown_path(c->path));
    return capture_take_ours(c, stream, err) || error_context(err, "'%s'", import_shown_path(c->path));
}

bool capture_can_read_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* What to do about a file that could not be opened or read. */
static void capture_hint(struct error *err)
{
    if (!err || *err->hint)
        return;
    if (err->os_error == ENOENT)
        error_hint(err, "check the name, or record a capture with: clrperf record -d 10s");
    else if (err->kind == ERROR_PERMISSION)
        error_hint(err, "read it as the user who recorded it, or as root");
    else if (err->kind == ERROR_INPUT)
        error_hint(err, "record it again, or name a capture, a perf.data, a .nettrace, perf script text or "
                        "folded stacks");
}

/* Of a large file about as much comes as it has bytes: small pages for it would take a tenth of the time. */
static void expect_memory(const struct byte_stream *stream)
{
    uint64_t size = stream->source.size;
    if (byte_stream_is_seekable(stream) && size >= CAPTURE_LARGE_BYTES)
        mem_expect_large(size < MEM_EXPECTED_MAX ? (size_t)size : MEM_EXPECTED_MAX);
}

bool capture_read(const char *path, const struct import_options *how, struct capture *out, struct error *err)
{
    *out = (struct capture){ .path = path };
    AUTO_FD int fd = -1;
    struct byte_stream stream;
    struct import_options options = *how;
    options.unwinder = &import_stacks;
    bool ok = import_open_stream(path, &fd, &stream, err);
    if (ok)
        expect_memory(&stream);
    trace_builder_init(&out->b, CAPTURE_CHAINS);
    if (ok) {
        ok = capture_take(out, &stream, &options, err);
        byte_stream_close(&stream);
    }
    if (!ok) {
        capture_hint(err);
        capture_done(out);
        return false;
    }
    return true;
}

static enum import_want wants_all_stacks(const void *user, const char *provider, uint32_t event_id)
{
    const struct import_options *how = user;
    enum import_want want = how->wants(how->user, provider, event_id);
    return want > IMPORT_EVENTS || strcmp(provider, RUNTIME_SAMPLER_PROVIDER) == 0 ? want : IMPORT_EVENTS;
}

bool capture_read_stacks(const char *path, const struct import_options *how, const char *event,
                         struct capture *out, struct error *err)
{
    bool again = capture_can_read_again(path);
    struct import_options all = *how;
    all.wants = how->wants ? wants_all_stacks : NULL;
    all.user = how;
    /* whether there are samples is known at the end: what comes once is read as if there were none */
    if (!capture_read(path, again ? how : &all, out, err))
        return false;
    if (again && !out->is_ours && !out->b.trace.samples.count && how->wants) {
        capture_done(out);
        if (!capture_read(path, &all, out, err))
            return false;
    }
    event_samples_add(&out->b.trace, event);
    return true;
}

bool capture_read_made(const struct source *file, const char *path, struct capture *out, struct error *err)
{
    *out = (struct capture){ .path = path };
    trace_builder_init(&out->b, CAPTURE_CHAINS);
    if (capture_load(out, file, err)) {
        event_samples_add(&out->b.trace, NULL);
        return true;
    }
    capture_done(out);
    return false;
}

bool capture_open(const char *path, struct capture *out, struct error *err)
{
    if (!capture_read(path, &(struct import_options){ .wants = import_wants_samples }, out, err))
        return false;
    capture_name(out);
    return true;
}

void capture_done(struct capture *c)
{
    trace_builder_done(&c->b);
}

void capture_warn(const struct capture *c)
{
    const struct trace *t = &c->b.trace;
    uint64_t gap_bytes = 0;
    for (size_t i = 1; i < t->gaps.count; i++)
        gap_bytes += t->gaps.rows[i].size_bytes;
    if (t->gaps.count > 1)
        message_warning("'%s' is damaged: %zu gap%s, %" PRIu64 " bytes lost; the rest is shown", c->path,
                        t->gaps.count - 1, t->gaps.count == 2 ? "" : "s", gap_bytes);
    else if (c->is_ours && !t->complete)
        message_warning("'%s' was not ended in order; everything up to its last second is shown", c->path);
    const char *notes = trace_fact_value(t, FACT_NOTES);
    if (notes)
        message_warning("'%s': %s", import_shown_path(c->path), notes);
}

void capture_json_losses(struct json_writer *j, const struct trace *t)
{
    uint64_t by[LOSS_REASONS] = { 0 };
    for (size_t i = 1; i < t->losses.count; i++)
        if (t->losses.rows[i].reason < LOSS_REASONS)
            by[t->losses.rows[i].reason] += t->losses.rows[i].count;
    for (unsigned i = 0; i < LOSS_REASONS; i++) {
        if (!by[i])
            continue;
        json_put_u64(j, loss_reason_name((enum loss_reason)i), by[i]);
    }
}

static void json_fact(struct json_writer *j, const struct trace *t, const char *key, const char *fact)
{
    json_put_string(j, key, trace_fact_value(t, fact));
}

void capture_json_facts(struct json_writer *j, const struct capture *c, uint64_t realtime_ns,
                        uint64_t duration_ns, double rate_hz)
{
    const struct trace *t = &c->b.trace;
    char started[40] = "";
    time_t seconds = (time_t)(realtime_ns / 1000000000u);
    struct tm utc;
    if (realtime_ns && gmtime_r(&seconds, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_put_object(j, "capture");
    json_put_string(j, "file", c->path);
    json_fact(j, t, "format", FACT_FORMAT);
    json_put_string(j, "started", started[0] ? started : NULL);
    json_put_known_double(j, "duration_s", duration_ns != 0, (double)duration_ns / 1e9);
    json_fact(j, t, "host", FACT_HOST);
    json_fact(j, t, "kernel", FACT_KERNEL);
    json_put_known_double(j, "rate_hz", rate_hz > 0, rate_hz);
    json_fact(j, t, "command_line", FACT_COMMAND_LINE);
    json_end_object(j);
}

void capture_json_head(struct json_writer *j, const struct capture *c, const struct profile *p)
{
    capture_json_facts(j, c, p->start_realtime_ns, p->duration_ns, p->rate_hz);
}
