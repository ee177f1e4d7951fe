/*
 * fakert: a diagnostics server that behaves like a .NET runtime, or like a broken or hostile one.
 *
 * Usage: fakert MODE. Listens where a runtime would (TMPDIR, own pid and start time), prints "ready" and
 * serves until its stdin closes. At each connection it prints how many bytes came with the first read, so
 * that a test can tell that nothing was sent to a socket that ought to be refused. The modes are in `modes`
 * below.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../nettrace_sample.h"
#include "clr/runtime_events.h"

enum answer {
    ANSWER_WELL,
    ANSWER_NEVER,
    ANSWER_SLOWLY,      /* a byte each 100 ms, until nobody reads any more */
    ANSWER_HALF_HEADER, /* then nothing */
    ANSWER_AND_CLOSE,   /* half a header, then the end */
    ANSWER_WRONG_MAGIC,
    ANSWER_SIZE_0,
    ANSWER_SIZE_19,
    ANSWER_SIZE_65535,  /* and 4 bytes of it */
    ANSWER_ERROR,       /* 0x80004005 */
    ANSWER_ALL_UNKNOWN, /* 0x80131385 whatever is asked */
    ANSWER_BY_CLOSING,
};

enum stream {
    STREAM_WELL,
    STREAM_SILENT,  /* never a byte, not even after Stop: a suspended runtime */
    STREAM_ENDLESS, /* never ends after Stop */
    STREAM_BREAKS,  /* closed in the middle of the rundown */
    STREAM_GARBAGE,
    STREAM_HUGE_BLOCK, /* claims 2 GB */
    STREAM_ODD,        /* clock back, frequency 0, lone surrogates, sequence reset, empty names */
    STREAM_STUCK,      /* starts, then nothing, whatever happens */
    STREAM_LATE,       /* works for a while after Stop before it sends its list */
};

enum { WORK_S = 3 };

enum listen {
    LISTEN_WELL,
    LISTEN_IN_CHILD,
    LISTEN_LINK,
    LISTEN_FIFO,
    LISTEN_DEAD,
    LISTEN_STALE,
    LISTEN_CROWD,
    LISTEN_FULL
};

struct mode {
    const char *name;
    uint8_t newest_collect; /* command id; older ones are known too */
    uint8_t newest_info;    /* 8, 4, 0; 0xff: not even ProcessInfo */
    enum answer answer;     /* to ProcessInfo */
    enum answer collect_answer;
    enum stream stream;
    enum listen listen;
    enum answer second_answer; /* to a request for collections alone */
    bool ahead_of_time;        /* looks like a program of Native AOT, also from outside */
};

/* What every such program exports. */
extern const char DotNetRuntimeDebugHeader[];
const char DotNetRuntimeDebugHeader[] = "\0DotNetRuntimeDebugHeader";

static const struct mode modes[] = {
    { "net10", 6, 8, 0, 0, 0, 0 },
    { "net9", 5, 8, 0, 0, 0, 0 },
    { "net8", 3, 8, 0, 0, 0, 0 },
    { "net6", 3, 4, 0, 0, 0, 0 },
    { "net5", 3, 0, 0, 0, 0, 0 },
    { "core3", 2, 0xff, 0, 0, 0, 0 },
    { "never", 6, 8, ANSWER_NEVER, 0, 0, 0 },
    { "slow", 6, 8, ANSWER_SLOWLY, 0, 0, 0 },
    { "half", 6, 8, ANSWER_HALF_HEADER, 0, 0, 0 },
    { "half-close", 6, 8, ANSWER_AND_CLOSE, 0, 0, 0 },
    { "magic", 6, 8, ANSWER_WRONG_MAGIC, 0, 0, 0 },
    { "size-0", 6, 8, ANSWER_SIZE_0, 0, 0, 0 },
    { "size-19", 6, 8, ANSWER_SIZE_19, 0, 0, 0 },
    { "size-65535", 6, 8, ANSWER_SIZE_65535, 0, 0, 0 },
    { "error", 6, 8, ANSWER_ERROR, 0, 0, 0 },
    { "closing", 6, 8, ANSWER_BY_CLOSING, 0, 0, 0 },
    { "unknown", 6, 0xff, 0, ANSWER_ALL_UNKNOWN, 0, 0 },
    { "collect-error", 6, 8, 0, ANSWER_ERROR, 0, 0 },
    { "collect-never", 6, 8, 0, ANSWER_NEVER, 0, 0 },
    { "collect-closing", 6, 8, 0, ANSWER_BY_CLOSING, 0, 0 },
    { "suspended", 6, 8, 0, 0, STREAM_SILENT, 0 },
    { "endless", 6, 8, 0, 0, STREAM_ENDLESS, 0 },
    { "breaks", 6, 8, 0, 0, STREAM_BREAKS, 0 },
    { "garbage", 6, 8, 0, 0, STREAM_GARBAGE, 0 },
    { "huge-block", 6, 8, 0, 0, STREAM_HUGE_BLOCK, 0 },
    { "odd", 6, 8, 0, 0, STREAM_ODD, 0 },
    { "stuck", 6, 8, 0, 0, STREAM_STUCK, 0 },
    { "foreign", 6, 8, 0, 0, 0, LISTEN_IN_CHILD },
    { "link", 6, 8, 0, 0, 0, LISTEN_LINK },
    { "fifo", 6, 8, 0, 0, 0, LISTEN_FIFO },
    { "dead", 6, 8, 0, 0, 0, LISTEN_DEAD },
    { "stale", 6, 8, 0, 0, 0, LISTEN_STALE },
    { "crowd", 6, 8, 0, 0, 0, LISTEN_CROWD },
    { "full", 6, 8, 0, 0, 0, LISTEN_FULL },
    { "second-never", 5, 8, 0, 0, 0, 0, .second_answer = ANSWER_NEVER },
    { "second-error", 5, 8, 0, 0, 0, 0, .second_answer = ANSWER_ERROR },
    { "second-closing", 3, 8, 0, 0, 0, 0, .second_answer = ANSWER_BY_CLOSING },
    { "ahead-of-time", 6, 8, 0, 0, 0, 0, .ahead_of_time = true },
    { "ahead-of-time-never", 6, 8, ANSWER_NEVER, ANSWER_NEVER, 0, 0, .ahead_of_time = true },
    { "ahead-of-time-collect-never", 6, 8, 0, ANSWER_NEVER, 0, 0, .ahead_of_time = true },
    { "ahead-of-time-stuck", 6, 8, 0, 0, STREAM_STUCK, 0, .ahead_of_time = true },
    { "ahead-of-time-late", 6, 8, 0, 0, STREAM_LATE, 0, .ahead_of_time = true },
};

/* What the third stream is known by: no other asks for exceptions alone. */
enum { EXCEPTION_KEYWORD = 0x8000, EXCEPTION_START = 80 };

static const uint64_t session_id = 0x7f12ac003450;

static void say(const char *text, size_t number)
{
    printf("%s %zu\n", text, number);
    fflush(stdout);
}

static bool send_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return true;
}

static void reply(int fd, uint8_t id, const void *content, size_t size, size_t claimed)
{
    struct buffer b;
    buffer_init(&b, 1 << 16);
    buffer_append(&b, "DOTNET_IPC_V1", 14);
    buffer_u16le(&b, (uint16_t)claimed);
    buffer_u8(&b, 0xff);
    buffer_u8(&b, id);
    buffer_u16le(&b, 0);
    buffer_append(&b, content, size);
    send_all(fd, b.data, b.size);
    buffer_done(&b);
}

static void reply_error(int fd, uint32_t result)
{
    uint8_t bytes[4] = { (uint8_t)result, (uint8_t)(result >> 8), (uint8_t)(result >> 16),
                         (uint8_t)(result >> 24) };
    reply(fd, 0xff, bytes, 4, 24);
}

/* Whether the connection must stay open (the rest is the client's deadline). */
static bool misanswer(int fd, enum answer answer)
{
    static const char header[] = "DOTNET_IPC_V1\0\xff\xff\xff\0\0\0"; /* of 65535 bytes */
    switch (answer) {
    case ANSWER_WELL:
    case ANSWER_NEVER:
        return true;
    case ANSWER_SLOWLY:
        for (size_t i = 0; send_all(fd, &header[i < sizeof header ? i : sizeof header - 1], 1); i++)
            usleep(100000);
        return false;
    case ANSWER_HALF_HEADER:
        send_all(fd, header, 10);
        return true;
    case ANSWER_AND_CLOSE:
        send_all(fd, header, 10);
        return false;
    case ANSWER_WRONG_MAGIC:
        send_all(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
        return false;
    case ANSWER_SIZE_0:
        reply(fd, 0, "", 0, 0);
        return false;
    case ANSWER_SIZE_19:
        reply(fd, 0, "", 0, 19);
        return false;
    case ANSWER_SIZE_65535:
        reply(fd, 0, "abcd", 4, 65535);
        return true;
    case ANSWER_ERROR:
        reply_error(fd, 0x80004005);
        return false;
    case ANSWER_ALL_UNKNOWN:
        reply_error(fd, 0x80131385);
        return false;
    case ANSWER_BY_CLOSING:
        return false;
    }
    return false;
}

static void append_text(struct buffer *b, const char *text)
{
    buffer_u32le(b, (uint32_t)strlen(text) + 1);
    sample_utf16z(b, text);
}

static void reply_info(int fd, uint8_t command)
{
    struct buffer b;
    buffer_init(&b, 4096);
    if (command == 8)
        buffer_u32le(&b, 1);
    buffer_u64le(&b, (uint64_t)getpid());
    buffer_append(&b, "0123456789abcdef", 16);
    append_text(&b, "fakert --x");
    append_text(&b, "Linux");
    append_text(&b, "x64");
    if (command != 0) {
        append_text(&b, "fakert");
        append_text(&b, "10.0.12");
    }
    if (command == 8)
        append_text(&b, "linux-x64");
    reply(fd, 0, b.data, b.size, 20 + b.size);
    buffer_done(&b);
}

static void method_event(struct buffer *out, uint32_t type, uint32_t sequence, uint64_t ticks, uint64_t addr,
                         uint32_t flags, const char *name)
{
    struct buffer payload;
    buffer_init(&payload, 4096);
    sample_method(&payload, addr, 0x40, flags, *name ? "Fake.Type" : "", name, "void  (int32)");
    if (strcmp(name, "Lone") == 0)
        payload.data[36 + 20 + 1] = 0xdc; /* in place of the 'L' */
    const struct sample_event event = { type, sequence, 77, 0, ticks, buffer_span(&payload) };
    sample_events(out, &event, 1);
    buffer_done(&payload);
}

/* A collection that stops all threads, told by the one that does it. */
static void collection_events(struct buffer *out)
{
    static const uint32_t ids[] = { 9, 1, 2, 3 };
    static const uint8_t payload[32] = { RUNTIME_SUSPEND_GC };
    for (uint32_t i = 0; i < sizeof ids / sizeof *ids; i++)
        sample_type(out, 10 + i, RUNTIME_PROVIDER, ids[i], 1);
    for (uint32_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct sample_event event = { 10 + i, i + 1, 78, 0, 1500 + i, { payload, sizeof payload } };
        sample_events(out, &event, 1);
    }
}

/* What comes at once, up to what comes after Stop. */
static void make_collections(struct buffer *out, size_t *out_live)
{
    sample_begin(out, 1000000000, 8);
    collection_events(out);
    *out_live = out->size;
    sample_end(out);
}

static void make_asked(struct buffer *out, size_t *out_live)
{
    static const uint8_t payload[32];
    const struct sample_event event = { 1, 1, 78, 0, 1500, { payload, sizeof payload } };
    sample_begin(out, 1000000000, 8);
    sample_type(out, 1, RUNTIME_PROVIDER, EXCEPTION_START, 1);
    sample_events(out, &event, 1);
    *out_live = out->size;
    sample_end(out);
}

static void make_stream(const struct mode *mode, bool collections, struct buffer *out, size_t *out_live)
{
    bool odd = mode->stream == STREAM_ODD;
    sample_begin(out, odd ? 0 : 1000000000, 8);
    if (mode->stream == STREAM_HUGE_BLOCK) {
        sample_object_start(out, "EventBlock", 2);
        buffer_u32le(out, 0x7fffffff);
    }
    sample_type(out, 1, RUNTIME_PROVIDER, 143, 1);
    sample_type(out, 2, RUNTIME_PROVIDER, 144, 1);
    sample_type(out, 3, RUNTIME_RUNDOWN_PROVIDER, 144, 1);
    sample_type(out, 4, RUNTIME_RUNDOWN_PROVIDER, 146, 0);
    method_event(out, 1, 1, 1000, 0x10000, RUNTIME_METHOD_JITTED | 3u << 7, "First");
    method_event(out, 1, 2, 2000, 0x20000, 0, "Precompiled");
    method_event(out, 2, odd ? 1 : 3, odd ? 500 : 3000, 0x10000, RUNTIME_METHOD_JITTED | 3u << 7,
                 odd ? "Lone" : "First");
    if (collections)
        collection_events(out);
    *out_live = out->size;
    for (uint32_t i = 0; i < 50; i++)
        method_event(out, 3, 4 + i, 5000 + i, 0x30000 + 0x100 * (uint64_t)i, RUNTIME_METHOD_JITTED | 4u << 7,
                     odd && i == 7 ? "" : "Old");
    const struct sample_event done = { 4, 54, 77, 0, 9000, { (const uint8_t *)"\0\0", 2 } };
    sample_events(out, &done, 1);
    sample_point(out, 9500, 77, 54);
    sample_end(out);
}

/* The stream's connection, while there is one. */
struct session {
    uint64_t id;
    int fd;
    struct buffer bytes;
    size_t live;
};

enum { METHODS, COLLECTIONS, ASKED, SESSIONS };

/* What a request for events asks for: the keywords of its first provider. */
static uint64_t request_keywords(const uint8_t *request, size_t size)
{
    static const uint8_t offsets[] = { 32, 33, 34, 41, 45 }; /* by command, from CollectTracing on */
    uint8_t command = request[17];
    size_t at = command >= 2 && command < 2 + sizeof offsets ? offsets[command - 2] : size;
    return at + 8 <= size ? load_u64le(request + at) : 0;
}

static void start_stream(const struct mode *mode, struct session *s, int fd, uint64_t keywords)
{
    uint8_t id[8];
    for (unsigned i = 0; i < 8; i++)
        id[i] = (uint8_t)(s->id >> 8 * i);
    reply(fd, 0, id, 8, 28);
    s->fd = fd;
    buffer_init(&s->bytes, 1 << 20);
    if (keywords == RUNTIME_KEYWORD_GC || keywords == EXCEPTION_KEYWORD) {
        (keywords == RUNTIME_KEYWORD_GC ? make_collections : make_asked)(&s->bytes, &s->live);
        send_all(fd, s->bytes.data, s->live);
        return;
    }
    make_stream(mode, keywords & RUNTIME_KEYWORD_GC, &s->bytes, &s->live);
    if (mode->stream == STREAM_GARBAGE)
        send_all(fd, "this is no trace, but long enough to be taken for one", 53);
    else if (mode->stream != STREAM_SILENT)
        send_all(fd, s->bytes.data, mode->stream == STREAM_HUGE_BLOCK ? s->bytes.size : s->live);
}

/* Events for ever, in a process of their own. */
static void stream_endlessly(const struct session *s)
{
    if (fork() != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uint64_t off = s->live;
    for (uint32_t sequence = 4;; sequence++) {
        struct buffer block;
        buffer_init(&block, 1 << 16);
        size_t before = off % 4; /* blocks are aligned from the stream's start */
        buffer_append(&block, "\0\0\0", before);
        method_event(&block, 1, sequence, 4000 + sequence, 0x10000, RUNTIME_METHOD_JITTED, "Again");
        if (send(s->fd, block.data + before, block.size - before, MSG_NOSIGNAL) < 0)
            _exit(0);
        off += block.size - before;
        buffer_done(&block);
    }
}

/* As one does that has many methods. */
static void work(void)
{
    struct timespec used;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec < WORK_S);
}

static void stop_stream(const struct mode *mode, struct session *s, int fd)
{
    size_t rest = s->bytes.size - s->live;
    if (s->fd < 0)
        return;
    switch (s->id == session_id ? mode->stream : STREAM_WELL) {
    case STREAM_SILENT:
    case STREAM_STUCK:
        return;
    case STREAM_ENDLESS:
        stream_endlessly(s);
        return;
    case STREAM_BREAKS:
        rest /= 2;
        break;
    case STREAM_LATE:
        work();
        break;
    default:
        break;
    }
    send_all(s->fd, s->bytes.data + s->live, rest);
    close(s->fd);
    s->fd = -1;
    reply(fd, 0, &s->id, 8, 28);
}

/* One request. The connection is closed here unless it is the stream's or the mode keeps it. */
static void serve(const struct mode *mode, struct session *sessions, int fd)
{
    uint8_t request[1024];
    ssize_t got = recv(fd, request, sizeof request, 0);
    say("got", got < 0 ? 0 : (size_t)got);
    if (got < 20) {
        close(fd);
        return;
    }
    uint8_t set = request[16], id = request[17];
    bool known = (set == 4 && mode->newest_info != 0xff && id <= mode->newest_info && id % 4 == 0) ||
                 (set == 2 && id <= mode->newest_collect);
    uint64_t keywords = set == 2 ? request_keywords(request, (size_t)got) : 0;
    bool second = keywords == RUNTIME_KEYWORD_GC;
    enum answer answer = set == 4  ? mode->answer
                         : id == 1 ? ANSWER_WELL
                         : second  ? mode->second_answer
                                   : mode->collect_answer;
    bool keep = false;
    if (answer != ANSWER_WELL)
        keep = misanswer(fd, answer);
    else if (!known)
        reply_error(fd, 0x80131385);
    else if (set == 4)
        reply_info(fd, id);
    else if (id == 1)
        stop_stream(mode, &sessions[got >= 28 ? (load_u64le(request + 20) - session_id) % SESSIONS : METHODS],
                    fd);
    else {
        size_t which = second ? COLLECTIONS : keywords == EXCEPTION_KEYWORD ? ASKED : METHODS;
        start_stream(mode, &sessions[which], fd, keywords);
        keep = true;
    }
    if (!keep)
        close(fd);
}

static uint64_t own_start_ticks(void)
{
    char text[4096] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file || !fgets(text, sizeof text, file))
        exit(3);
    fclose(file);
    const char *at = strrchr(text, ')');
    for (unsigned i = 2; at && i < 22; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static int listen_at(const char *path, int backlog)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0600) < 0 ||
        listen(fd, backlog) < 0)
        exit(4);
    return fd;
}

/* Another process listens at our name, as one that wants to be taken for us would. */
static int listen_in_child(const char *path)
{
    int ready[2];
    if (pipe(ready) < 0)
        exit(5);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = listen_at(path, 5);
        close(ready[1]);
        struct session none[SESSIONS] = { { .id = session_id, .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
        for (;;)
            serve(&modes[0], none, accept(fd, NULL, NULL));
    }
    close(ready[1]);
    char byte;
    (void)!read(ready[0], &byte, 1);
    return -1;
}

static int start_listening(enum listen how, const char *folder)
{
    char path[90], other[90];
    uint64_t ticks = own_start_ticks();
    snprintf(path, sizeof path, "%s/dotnet-diagnostic-%d-%" PRIu64 "-socket", folder, (int)getpid(), ticks);
    snprintf(other, sizeof other, "%s/dotnet-diagnostic-%d-%" PRIu64 "-socket", folder, (int)getpid(),
             ticks - 1);
    int fd;
    switch (how) {
    case LISTEN_WELL:
        break;
    case LISTEN_IN_CHILD:
        return listen_in_child(path);
    case LISTEN_LINK:
        fd = listen_in_child(other);
        return symlink(other, path) < 0 ? exit(6), 0 : fd;
    case LISTEN_FIFO:
        return mkfifo(path, 0600) < 0 ? exit(6), 0 : -1;
    case LISTEN_DEAD:
        close(listen_at(path, 5));
        return -1;
    case LISTEN_STALE:
        return listen_at(other, 5);
    case LISTEN_CROWD:
        fd = listen_at(path, 5);
        for (int i = 1; i <= 200; i++) {
            snprintf(other, sizeof other, "%s/dotnet-diagnostic-%d-%d-socket", folder, (int)getpid(), i);
            close(listen_at(other, 5));
        }
        return fd;
    case LISTEN_FULL: /* nobody accepts, and the queue has its one connection */
        fd = listen_at(path, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)!connect(client, (struct sockaddr *)&address, sizeof address);
        return -1;
    }
    return listen_at(path, 5);
}

static void *sleep_as_runtime(void *user)
{
    prctl(PR_SET_NAME, ".NET Finalizer");
    for (;;)
        pause();
    return user;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *folder = getenv("TMPDIR");
    const struct mode *mode = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            mode = &modes[i];
    if (!mode || !folder)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    int fd = start_listening(mode->listen, folder);
    struct session sessions[SESSIONS] = {
        [METHODS] = { .id = session_id, .fd = -1 },
        [COLLECTIONS] = { .id = session_id + 1, .fd = -1 },
        [ASKED] = { .id = session_id + 2, .fd = -1 },
    };
    if (mode->ahead_of_time && pthread_create(&thread, NULL, sleep_as_runtime, NULL) != 0)
        return 5;
    say("ready", 0);
    struct pollfd waits[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    while (poll(waits, 2, -1) >= 0 && !waits[0].revents)
        if (waits[1].revents) {
            int connection = accept(fd, NULL, NULL);
            if (connection >= 0)
                serve(mode, sessions, connection);
        }
    for (size_t i = 0; i < SESSIONS; i++)
        buffer_done(&sessions[i].bytes);
    return 0;
}
