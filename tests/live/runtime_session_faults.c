/*
 * runtime_session_faults: a session with a runtime that is silent, slow, broken or hostile ends in time and
 * says why.
 *
 * Usage: runtime_session_faults FAKERT. Needs no .NET.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/runtime_events.h"
#include "collect/runtime_session.h"
#include "collect/stream_recording.h"

/*
 * On a crowded machine even a good answer takes long: only what never comes is waited for in vain, for a
 * short time where nothing is to come before, else for a while.
 */
enum { SHORT_MS = 400, WHILE_MS = 3000, LONG_MS = 30000 };

static const char *fakert_path;

struct fake {
    pid_t pid;
    int input, output; /* of ours: its stdin, its stdout */
    char folder[64];
};

static void folder_make(char folder[static 64])
{
    const char *parent = getenv("TMPDIR");
    bool fits = parent && strlen(parent) < 40; /* the path of a socket has 107 bytes at most */
    snprintf(folder, 64, "%s/fakert-XXXXXX", fits ? parent : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static void fake_start(struct fake *f, const char *mode)
{
    folder_make(f->folder);
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    char variable[96];
    snprintf(variable, sizeof variable, "TMPDIR=%s", f->folder);
    char *argv[] = { (char *)(uintptr_t)fakert_path, (char *)(uintptr_t)mode, NULL };
    char *envp[] = { variable, NULL };
    assert_int_equal(posix_spawn(&f->pid, fakert_path, &actions, NULL, argv, envp), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    f->input = in[1];
    f->output = out[0];
    char text[16] = "";
    assert_true(read(f->output, text, sizeof text - 1) > 0);
    assert_int_equal(strncmp(text, "ready", 5), 0);
}

/* Ends it; whether it was still alive. */
static bool fake_end(struct fake *f)
{
    bool alive = kill(f->pid, 0) == 0;
    close(f->input);
    close(f->output);
    int status;
    waitpid(f->pid, &status, 0);
    DIR *folder = opendir(f->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(f->folder);
    return alive && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Whether any connection brought it a byte. */
static bool fake_got_bytes(struct fake *f)
{
    char text[1024];
    struct pollfd wait = { .fd = f->output, .events = POLLIN };
    if (poll(&wait, 1, 100) <= 0)
        return false;
    ssize_t got = read(f->output, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    for (const char *at = text; (at = strstr(at, "got "));) {
        at += 4;
        if (*at != '0')
            return true;
    }
    return false;
}

struct seen {
    unsigned loads, unloads, exists, odd, events;
};

static void see_event(void *user, const struct runtime_event *event)
{
    struct seen *seen = user;
    seen->events++;
    assert_true(utf16_equals_ascii(event->type->provider, RUNTIME_PROVIDER));
    assert_int_equal(event->thread_id, 78);
    assert_int_equal(event->payload.size, 32);
    assert_true(event->time_ns >= 1500 && event->time_ns < 1504);
}

static void see_method(void *user, const struct runtime_method *m)
{
    struct seen *seen = user;
    seen->loads += m->change == RUNTIME_METHOD_LOADED;
    seen->unloads += m->change == RUNTIME_METHOD_UNLOADED;
    seen->exists += m->change == RUNTIME_METHOD_EXISTS_AT_END;
    assert_true(m->name.size > 0);
    seen->odd += memchr(m->name.data, 0xef, m->name.size) != NULL;
}

static const struct seen never = { .loads = UINT_MAX };

/* Until the session ends, the time is over, or so many loads and unloads were seen. */
static bool drain(struct runtime_session *s, const struct runtime_sink *sink, unsigned ms, struct seen until,
                  struct error *err)
{
    const struct seen *seen = sink->user;
    for (uint64_t end_ns = clock_monotonic_ns() + ms * UINT64_C(1000000);
         !runtime_session_ended(s) && (seen->loads < until.loads || seen->unloads < until.unloads);) {
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= end_ns)
            return true;
        struct pollfd wait[RUNTIME_SESSION_STREAMS];
        poll(wait, runtime_session_polls(s, wait), (int)((end_ns - now_ns) / 1000000) + 1);
        if (!runtime_session_drain(s, sink, err))
            return false;
    }
    return true;
}

static const struct runtime_session_options patient = { .connect_timeout_ms = LONG_MS,
                                                        .reply_timeout_ms = LONG_MS };
static const struct runtime_session_options hasty = { .connect_timeout_ms = SHORT_MS,
                                                      .reply_timeout_ms = SHORT_MS };

/* Starts that must fail, in time, for a reason that says so. */
static const struct {
    const char *mode, *what;
    bool untouched; /* not a byte may be sent */
} failures[] = {
    { "never", "did not answer in time", false },
    { "slow", "did not answer in time", false },
    { "half", "did not answer in time", false },
    { "half-close", "closed the connection without an answer", false },
    { "magic", "not one of a diagnostics server", false },
    { "size-0", "claims a size of 0", false },
    { "size-19", "claims a size of 19", false },
    { "size-65535", "did not answer in time", false },
    { "error", "no free session slot", false },
    { "closing", "closed the connection without an answer", false },
    { "unknown", "unknown command", false },
    { "collect-error", "no free session slot", false },
    { "collect-never", "did not answer in time", false },
    { "collect-closing", "closed the connection without an answer", false },
    { "foreign", "is served by process", true },
    { "link", "", true },
    { "fifo", "", true },
    { "dead", "Connection refused", true },
    { "stale", "of an earlier process", true },
    { "full", "takes no connection", true },
};

static bool is_in_vain(size_t i)
{
    return strcmp(failures[i].what, "did not answer in time") == 0 ||
           strcmp(failures[i].what, "takes no connection") == 0;
}

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct fake f;
        fake_start(&f, failures[i].mode);
        struct runtime_session *s = NULL;
        struct error err = { 0 };
        uint64_t start_ns = clock_monotonic_ns();
        bool ok = runtime_session_start(f.pid, 0, is_in_vain(i) ? &hasty : &patient, &s, &err);
        uint64_t took_ms = (clock_monotonic_ns() - start_ns) / 1000000;
        bool touched = failures[i].untouched && fake_got_bytes(&f);
        bool alive = fake_end(&f);
        if (ok || !strstr(err.what, failures[i].what) || took_ms > LONG_MS || touched || !alive)
            fail_msg("%s: %s%s (%llu ms%s%s)", failures[i].mode, ok ? "started" : "", err.what,
                     (unsigned long long)took_ms, touched ? ", was sent something" : "",
                     alive ? "" : ", died");
    }
}

/* Sessions that start; how they end. */
static const struct {
    const char *mode;
    const char *version;
    unsigned loads, unloads, exists, odd;
    bool ended, complete, ok;
    const char *what;
} sessions[] = {
    { "net10", "10.0.12", 1, 1, 50, 0, true, true, true, "" },
    { "net9", "10.0.12", 1, 1, 50, 0, true, true, true, "" },
    { "net8", "10.0.12", 1, 1, 50, 0, true, true, true, "" },
    { "net6", "10.0.12", 1, 1, 50, 0, true, true, true, "" },
    { "net5", "", 1, 1, 50, 0, true, true, true, "" },
    { "core3", "", 1, 1, 50, 0, true, true, true, "" },
    { "crowd", "10.0.12", 1, 1, 50, 0, true, true, true, "" },
    { "odd", "10.0.12", 1, 1, 49, 1, true, true, true, "" },
    { "suspended", "10.0.12", 0, 0, 0, 0, false, false, true, "" },
    { "stuck", "10.0.12", 1, 1, 0, 0, false, false, true, "" },
    { "breaks", "10.0.12", 1, 1, 0, 0, true, false, true, "" },
    { "garbage", "10.0.12", 0, 0, 0, 0, true, false, false, "no event stream of a .NET runtime" },
    { "huge-block", "10.0.12", 0, 0, 0, 0, true, false, false, "a block of 2147483647 bytes" },
    { "endless", "10.0.12", 2, 1, 0, 0, false, false, true, "" },
};

static void run_session(size_t i)
{
    struct fake f;
    fake_start(&f, sessions[i].mode);
    struct runtime_session *s = NULL;
    struct error err = { 0 };
    struct seen seen = { 0 };
    const struct runtime_sink sink = { .user = &seen, .method = see_method };
    if (!runtime_session_start(f.pid, 0, &patient, &s, &err))
        fail_msg("%s: %s", sessions[i].mode, err.what);
    assert_string_equal(runtime_session_version(s), sessions[i].version);
    bool endless = strcmp(sessions[i].mode, "endless") == 0;
    struct seen more = { .loads = endless ? sessions[i].loads + 1 : never.loads };
    bool ok = drain(s, &sink, LONG_MS, (struct seen){ .unloads = sessions[i].unloads }, &err);
    ok = ok && runtime_session_stop(s, &err) &&
         drain(s, &sink, sessions[i].ended || endless ? LONG_MS : SHORT_MS, more, &err);
    bool ended = runtime_session_ended(s), complete = runtime_session_complete(s);
    struct runtime_session_counts counts = runtime_session_counts(s);
    runtime_session_close(s);
    bool alive = fake_end(&f);
    bool as_many = endless ? seen.loads > sessions[i].loads
                           : seen.loads == sessions[i].loads && (seen.exists == sessions[i].exists ||
                                                                 strcmp(sessions[i].mode, "breaks") == 0);
    if (ok != sessions[i].ok || ended != sessions[i].ended || complete != sessions[i].complete || !as_many ||
        seen.unloads != sessions[i].unloads || seen.odd != sessions[i].odd || !alive ||
        !strstr(err.what, sessions[i].what) || counts.lost != (sessions[i].odd ? 2 : 0))
        fail_msg("%s: %u loads, %u unloads, %u exist, %u odd, ended %d, complete %d, alive %d, %llu lost: %s",
                 sessions[i].mode, seen.loads, seen.unloads, seen.exists, seen.odd, ended, complete, alive,
                 (unsigned long long)counts.lost, err.what);
}

static void test_sessions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sessions); i++)
        run_session(i);
}

/* With collections asked for as well: in one stream, in two, or not to be had. */
static const struct {
    const char *mode;
    bool in_vain, tells;
} collecting[] = {
    { "net10", false, true },         { "net9", false, true },
    { "net8", false, true },          { "net5", false, true },
    { "core3", false, false },        { "second-never", true, false },
    { "second-error", false, false }, { "second-closing", false, false },
};

static void run_collecting(size_t i, bool no_list)
{
    struct fake f;
    fake_start(&f, collecting[i].mode);
    struct runtime_session_options options = patient;
    if (collecting[i].in_vain)
        options.reply_timeout_ms = WHILE_MS; /* there is an answer to the first question */
    options.collections = true;
    options.no_list = no_list;
    struct runtime_session *s = NULL;
    struct error err = { 0 };
    struct seen seen = { 0 };
    const struct runtime_sink sink = { .user = &seen, .method = see_method, .event = see_event };
    if (!runtime_session_start(f.pid, 0, &options, &s, &err))
        fail_msg("%s: %s", collecting[i].mode, err.what);
    bool tells = runtime_session_told(s)->count > 0;
    bool ok = drain(s, &sink, LONG_MS, (struct seen){ .unloads = 1 }, &err);
    ok = ok && runtime_session_stop(s, &err) && drain(s, &sink, LONG_MS, never, &err);
    bool ended = runtime_session_ended(s);
    assert_int_equal(runtime_session_lists(s), !no_list);
    runtime_session_close(s);
    if (!fake_end(&f) || !ok || !ended || tells != collecting[i].tells || seen.loads != 1 ||
        seen.events != (collecting[i].tells ? 4 : 0))
        fail_msg("%s: %u loads, %u events, ended %d, tells %d: %s", collecting[i].mode, seen.loads,
                 seen.events, ended, tells, err.what);
}

static void test_collections(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(collecting); i++)
        run_collecting(i, i % 2);
}

/* What the user asked for is there, and said to be, whether collections can be had beside it or not. */
static const struct {
    const char *mode;
    size_t told;     /* providers */
    unsigned events; /* collections have four, what was asked for has one */
} asking[] = {
    { "net10", 1, 5 },
    { "net8", 1, 5 },
    { "second-error", 1, 1 },
    { "second-closing", 1, 1 },
};

static void run_asked(size_t i)
{
    struct fake f;
    fake_start(&f, asking[i].mode);
    struct event_provider exceptions = { .name = (char *)RUNTIME_PROVIDER, .keywords = 0x8000, .level = 2 };
    struct event_request asked = { .buffer_mb = 4 };
    assert_true(event_providers_add(&asked.providers, &exceptions, NULL));
    struct runtime_session_options options = patient;
    options.collections = true;
    options.asked = &asked;
    struct runtime_session *s = NULL;
    struct error err = { 0 };
    struct seen seen = { 0 };
    const struct runtime_sink sink = { .user = &seen, .method = see_method, .event = see_event };
    if (!runtime_session_start(f.pid, 0, &options, &s, &err))
        fail_msg("%s: %s", asking[i].mode, err.what);
    const struct event_providers *told = runtime_session_told(s);
    size_t told_count = told->count;
    uint64_t keywords = told_count ? told->items[0].keywords : 0;
    bool ok = drain(s, &sink, LONG_MS, (struct seen){ .unloads = 1 }, &err);
    ok = ok && runtime_session_stop(s, &err) && drain(s, &sink, LONG_MS, never, &err);
    runtime_session_close(s);
    event_request_done(&asked);
    uint64_t wanted = 0x8000 | (asking[i].events > 1 ? RUNTIME_KEYWORD_GC : 0);
    if (!fake_end(&f) || !ok || told_count != asking[i].told || keywords != wanted ||
        seen.events != asking[i].events)
        fail_msg("%s: %zu providers, keywords %#llx, %u events: %s", asking[i].mode, told_count,
                 (unsigned long long)keywords, seen.events, err.what);
}

static void test_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(asking); i++)
        run_asked(i);
}

/* Streams that are written to a file as they are; how that ends. */
static const struct {
    const char *mode;
    unsigned events; /* that are told, at least */
    bool whole;      /* the file ends as it should; and if not, the user is told */
} streams[] = {
    { "net10", 52, true }, { "net8", 52, true },   { "core3", 52, true },   { "suspended", 0, false },
    { "stuck", 2, false }, { "breaks", 2, false }, { "garbage", 0, false }, { "endless", 2, false },
};

static void see_note(void *user, const char *text)
{
    (void)text;
    ++*(unsigned *)user;
}

static void run_stream(size_t i)
{
    struct fake f;
    fake_start(&f, streams[i].mode);
    struct event_provider runtime = { .name = (char *)RUNTIME_PROVIDER, .keywords = 0x18, .level = 5 };
    struct event_request request = { .buffer_mb = 4,
                                     .stacks = true,
                                     .rundown_keywords = IPC_RUNDOWN_DEFAULT };
    assert_true(event_providers_add(&request.providers, &runtime, NULL));
    FILE *file = tmpfile();
    assert_non_null(file);
    unsigned notes = 0;
    const struct stream_recording_options options = {
        .peer = { f.pid, 0, LONG_MS, LONG_MS },
        .request = &request,
        .out_fd = fileno(file),
        .duration_ns = SHORT_MS * UINT64_C(500000),
        .end_ms = streams[i].whole ? LONG_MS : WHILE_MS,
        .silence_ms = streams[i].whole ? LONG_MS : WHILE_MS / 2,
        .stop_fd = -1,
        .note = see_note,
        .user = &notes,
    };
    struct record_stats stats;
    struct error err = { 0 };
    uint64_t start_ns = clock_monotonic_ns();
    bool ok = stream_recording_run(&options, &stats, &err);
    uint64_t took_ms = (clock_monotonic_ns() - start_ns) / 1000000;
    bool alive = fake_end(&f);
    if (!ok || !alive || stats.events < streams[i].events || took_ms > LONG_MS ||
        (notes == 0) != streams[i].whole ||
        (stats.ended_by != RECORD_ENDED_DURATION && stats.ended_by != RECORD_ENDED_TARGET_EXIT))
        fail_msg("%s: %llu events, %u notes, ended by %d, %llu ms, alive %d: %s", streams[i].mode,
                 (unsigned long long)stats.events, notes, stats.ended_by, (unsigned long long)took_ms, alive,
                 err.what);
    event_request_done(&request);
    fclose(file);
}

static void test_streams(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        run_stream(i);
}

/* No stream at all: nothing is written, and the reason is told. */
static void test_streams_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        bool collects = strncmp(failures[i].mode, "collect-", 8) == 0 || failures[i].untouched;
        if (!collects) /* it answers another question so */
            continue;
        struct fake f;
        fake_start(&f, failures[i].mode);
        struct event_provider runtime = { .name = (char *)RUNTIME_PROVIDER, .level = 4 };
        struct event_request request = { .buffer_mb = 4 };
        unsigned wait_ms = is_in_vain(i) ? SHORT_MS : LONG_MS;
        assert_true(event_providers_add(&request.providers, &runtime, NULL));
        const struct stream_recording_options options = {
            .peer = { f.pid, 0, wait_ms, wait_ms }, .request = &request, .out_fd = -1, .stop_fd = -1
        };
        struct record_stats stats;
        struct error err = { 0 };
        assert_false(stream_recording_run(&options, &stats, &err));
        if (!strstr(err.what, failures[i].what) || !fake_end(&f))
            fail_msg("%s: %s", failures[i].mode, err.what);
        event_request_done(&request);
    }
}

/* A program that just began has no environment yet, for who looks. */
static void wait_environment(pid_t pid)
{
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    ssize_t got = 0;
    for (int tries = 0; got <= 0 && tries < LONG_MS; tries++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        got = read(fd, &byte, 1);
        close(fd);
        usleep(1000);
    }
    assert_int_equal(got, 1);
}

/* A program without a runtime, with a folder of its own: in /tmp ended programs may have left sockets. */
static pid_t start_plain_program(char folder[static 64])
{
    folder_make(folder);
    char variable[96];
    snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    char *argv[] = { "sleep", "60", NULL };
    char *envp[] = { variable, NULL };
    pid_t pid;
    assert_int_equal(posix_spawnp(&pid, "sleep", NULL, NULL, argv, envp), 0);
    wait_environment(pid);
    return pid;
}

static void test_processes_without_a_runtime(void **state)
{
    (void)state;
    struct runtime_session *s = NULL;
    struct error err = { 0 };
    char folder[64], left[128];
    pid_t pid = start_plain_program(folder);
    assert_false(runtime_session_start(pid, 0, &patient, &s, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.what, "has no .NET diagnostics socket"));
    snprintf(left, sizeof left, "%s/dotnet-diagnostic-%d-1-socket", folder, (int)pid);
    close(open(left, O_CREAT | O_WRONLY, 0600));
    assert_false(runtime_session_start(pid, 0, &patient, &s, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.what, "is of an earlier process"));
    assert_false(runtime_session_start(pid, 1, &patient, &s, &err)); /* another start time */
    assert_non_null(strstr(err.what, "another one has its id now"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(runtime_session_start(pid, 0, &patient, &s, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_non_null(strstr(err.what, "is gone"));
    unlink(left);
    rmdir(folder);
}

/* The target dies in the middle: what came is kept, and stopping fails softly. */
static void test_death(void **state)
{
    (void)state;
    struct fake f;
    fake_start(&f, "net10");
    struct runtime_session *s = NULL;
    struct error err = { 0 };
    struct seen seen = { 0 };
    const struct runtime_sink sink = { .user = &seen, .method = see_method };
    assert_true(runtime_session_start(f.pid, 0, &patient, &s, &err));
    assert_true(drain(s, &sink, LONG_MS, (struct seen){ .unloads = 1 }, &err));
    kill(f.pid, SIGKILL);
    waitpid(f.pid, NULL, 0);
    assert_false(runtime_session_stop(s, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_true(drain(s, &sink, LONG_MS, never, &err));
    assert_true(runtime_session_ended(s));
    assert_false(runtime_session_complete(s));
    assert_int_equal(seen.loads, 1);
    runtime_session_close(s);
    fake_end(&f);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    fakert_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),    cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_collections), cmocka_unit_test(test_processes_without_a_runtime),
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_streams_refused),
        cmocka_unit_test(test_death),       cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
