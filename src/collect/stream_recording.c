#include "collect/stream_recording.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_write.h"
#include "base/mem.h"
#include "collect/proc_file.h"
#include "read/nettrace.h"

enum {
    RECEIVE_BYTES = 1 << 20,
    TICK_MS = 50,
    PROGRESS_MS = 250,
    /* how long a runtime may take to end, how long it may be silent, how often it is asked */
    END_MS = 60000,
    SILENCE_MS = 15000,        /* while it lists its methods it sends nothing */
    NO_LIST_SILENCE_MS = 2000, /* it only has to send what it has */
    STOPPED_SILENCE_MS = 1000, /* whose process is stopped */
    /* an answer is not waited for much longer than the recording is to last, but for so long at least */
    ANSWER_AFTER_MS = 500,
    ANSWER_MIN_MS = 1000,
    ASK_AGAIN_MS = 500,
    READS_AT_ONCE = 64,
};

#define MS_NS UINT64_C(1000000)

struct stream_recording {
    const struct stream_recording_options *options;
    struct event_stream stream;
    struct nettrace_reader *reader;
    bool malformed; /* and no longer looked at; written it is all the same */
    bool stop_seen;
    uint8_t *received;
    uint64_t bytes, started_ns, progress_ns, heard_ns;
};

static bool on_event(void *user, const struct nettrace_event *event, struct error *err)
{
    struct stream_recording *r = user;
    (void)err;
    const struct nettrace_info *info = nettrace_reader_info(r->reader);
    uint32_t pointer_size = info ? info->pointer_size : 8;
    if (!r->stop_seen && r->options->stopping)
        r->stop_seen = stopping_event_is(r->options->stopping, event->type, pointer_size, event->payload);
    if (r->options->event)
        r->options->event(r->options->user, event, pointer_size);
    return true;
}

static bool write_whole(struct stream_recording *r, size_t size, struct error *err)
{
    for (size_t done = 0; r->options->out_fd >= 0 && done < size;) {
        ssize_t put = write(r->options->out_fd, r->received + done, size - done);
        if (put < 0 && errno != EINTR)
            return fd_write_failed(err, errno, r->bytes + done, "cannot write the event stream");
        done += put > 0 ? (size_t)put : 0;
    }
    r->bytes += size;
    return true;
}

/* Takes what has come. A connection that breaks ends the stream; only a file that takes no more is a failure.
 */
static bool take(struct stream_recording *r, struct error *err)
{
    for (unsigned i = 0; i < READS_AT_ONCE; i++) {
        ssize_t got = event_stream_read(&r->stream, r->received, RECEIVE_BYTES, NULL);
        if (got <= 0)
            return true;
        r->heard_ns = clock_monotonic_ns();
        if (!write_whole(r, (size_t)got, err))
            return false;
        if (!r->malformed)
            r->malformed = !nettrace_reader_feed(r->reader, span_of(r->received, (size_t)got), NULL);
    }
    return true;
}

static void tell_progress(struct stream_recording *r, uint64_t now_ns)
{
    if (!r->options->progress || now_ns - r->progress_ns < PROGRESS_MS * MS_NS)
        return;
    const struct nettrace_counts *counts = nettrace_reader_counts(r->reader);
    r->progress_ns = now_ns;
    r->options->progress(r->options->user, &(struct record_progress){
                                               .elapsed_ns = now_ns - r->started_ns,
                                               .events = counts->events,
                                               .events_lost = counts->lost,
                                               .file_bytes = r->bytes,
                                           });
}

/* Sleeps until something comes or it is time to look. False when the user wants the end. */
static bool wait_for(const struct stream_recording *r, int stop_fd)
{
    struct pollfd polls[] = { { .fd = r->stream.fd, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
    int ready = poll(polls, 2, TICK_MS);
    return !(ready > 0 && polls[1].revents);
}

static bool is_over(struct stream_recording *r, bool going, enum record_end *out)
{
    const struct stream_recording_options *o = r->options;
    if (r->stream.fd < 0)
        *out = RECORD_ENDED_TARGET_EXIT;
    else if (r->stop_seen)
        *out = RECORD_ENDED_STOP_WHEN;
    else if (!going || (o->stop && *o->stop))
        *out = RECORD_ENDED_SIGNAL;
    else if (o->duration_ns && clock_monotonic_ns() - r->started_ns >= o->duration_ns)
        *out = RECORD_ENDED_DURATION;
    else
        return false;
    return true;
}

static bool record(struct stream_recording *r, enum record_end *out, struct error *err)
{
    bool going = true;
    while (!is_over(r, going, out)) {
        going = wait_for(r, r->options->stop_fd);
        if (!take(r, err))
            return false;
        tell_progress(r, clock_monotonic_ns());
        if (r->options->looked)
            r->options->looked(r->options->user, clock_monotonic_ns());
    }
    return true;
}

/* Whether it was silent for so long that nothing more will come. */
static bool is_mute(const struct stream_recording *r, uint64_t now_ns)
{
    const struct stream_recording_options *o = r->options;
    unsigned silence_ms = o->silence_ms                       ? o->silence_ms
                          : o->request->rundown_keywords != 0 ? SILENCE_MS
                                                              : NO_LIST_SILENCE_MS;
    uint64_t silent_ns = now_ns - r->heard_ns;
    return silent_ns >= silence_ms * MS_NS ||
           (silent_ns >= STOPPED_SILENCE_MS * MS_NS && proc_file_is_stopped(o->peer.pid));
}

/* Whoever reads on gets the rest, and the list of methods. */
static bool end(struct stream_recording *r, struct error *err)
{
    uint64_t begin_ns = clock_monotonic_ns(), asked_ns = 0, now_ns = begin_ns;
    r->heard_ns = begin_ns;
    uint64_t end_ns = (r->options->end_ms ? r->options->end_ms : END_MS) * MS_NS;
    while (r->stream.fd >= 0 && now_ns - begin_ns < end_ns && !is_mute(r, now_ns)) {
        if (now_ns - asked_ns >= ASK_AGAIN_MS * MS_NS) {
            asked_ns = now_ns;
            event_stream_stop(&r->options->peer, &r->stream, NULL);
        }
        wait_for(r, -1);
        if (!take(r, err))
            return false;
        now_ns = clock_monotonic_ns();
    }
    return true;
}

static void tell_end(const struct stream_recording *r)
{
    if (!r->options->note)
        return;
    if (r->malformed)
        r->options->note(r->options->user, "what the runtime sent is no event stream from some place on");
    else if (!nettrace_reader_ended(r->reader))
        r->options->note(r->options->user,
                         "the event stream has no end: the target ended, or did not answer; "
                         "what came before is there");
}

/* A recording ends soon after its time also where the runtime does not answer. */
static bool open_stream(struct stream_recording *r, struct error *err)
{
    const struct stream_recording_options *o = r->options;
    struct event_peer peer = o->peer;
    uint64_t limit_ms = o->duration_ns / MS_NS + ANSWER_AFTER_MS;
    bool unknown;
    if (limit_ms < ANSWER_MIN_MS)
        limit_ms = ANSWER_MIN_MS;
    if (o->duration_ns && limit_ms < peer.reply_timeout_ms)
        peer.reply_timeout_ms = (unsigned)limit_ms;
    if (o->choose && event_stream_open(&peer, o->request, true, &r->stream, &unknown, err))
        return true;
    return (!o->choose || unknown) && event_stream_open(&peer, o->request, false, &r->stream, &unknown, err);
}

static bool run(struct stream_recording *r, struct record_stats *stats, struct error *err)
{
    const struct stream_recording_options *o = r->options;
    if (!open_stream(r, err))
        return false;
    r->started_ns = clock_monotonic_ns();
    if (o->started && !o->started(o->user, err))
        return false;
    bool ok = record(r, &stats->ended_by, err);
    stats->stopped_ns = clock_monotonic_ns();
    stats->duration_ns = stats->stopped_ns - r->started_ns;
    ok = ok && end(r, err);
    stats->rundown_ns = clock_monotonic_ns() - stats->stopped_ns;
    if (ok)
        tell_end(r);
    else
        stats->ended_by = RECORD_ENDED_ERROR;
    return ok;
}

bool stream_recording_run(const struct stream_recording_options *options, struct record_stats *stats,
                          struct error *err)
{
    struct stream_recording r = { .options = options, .stream = EVENT_STREAM_NONE };
    const struct nettrace_sink sink = { .user = &r, .on_event = on_event };
    *stats = (struct record_stats){ .processes = 1 };
    r.received = mem_alloc(RECEIVE_BYTES, 1);
    r.reader = nettrace_reader_new(&sink);
    bool ok = run(&r, stats, err);
    const struct nettrace_counts *counts = nettrace_reader_counts(r.reader);
    stats->events = counts->events;
    stats->events_lost = counts->lost;
    event_stream_close(&r.stream);
    if (options->drained)
        options->drained(options->user);
    nettrace_reader_free(r.reader);
    free(r.received);
    return ok;
}
