#include "collect/kernel_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/process_scan.h"
#include "collect/queue_item.h"

enum {
    RECORDS_QUEUE_BYTES = 64 << 20,
    RECORDS_A_LOOK = 16, /* at the clock, which takes a tenth of a record's time, or of an event's */
    RECENT_THREADS = 32,
};

#define MS_NS UINT64_C(1000000)

/* A thread that was sampled lately, by its numbers; until anything but samples is told. */
struct recent_thread {
    uint32_t pid, tid;
    uint32_t process, thread; /* rows; 0: free */
};

struct kernel_records {
    struct kernel_records_options options;
    struct time_queue queue; /* of what was read, until all rings were */
    struct kernel_records_counts counts;
    uint64_t drained_ns;
    bool draining;                                /* a ring is being read */
    bool following;                               /* the queue hands over what is due */
    unsigned unlooked;                            /* since the last look at the clock */
    struct recent_thread threads[RECENT_THREADS]; /* by tid */
};

static void count_loss(struct kernel_records *r, enum loss_reason reason, uint64_t count, uint64_t time_ns)
{
    trace_builder_loss(r->options.b, reason, 0, time_ns, time_ns, count);
}

static void count_lost(struct kernel_records *r, enum loss_reason reason, uint64_t count, uint64_t time_ns)
{
    count_loss(r, reason, count, time_ns);
    r->counts.lost += count;
}

/* What is followed. */

/* All zero when its process is not one that is recorded. */
static struct recent_thread thread_of(struct kernel_records *r, const struct perf_sample_id *who)
{
    const struct kernel_records_options *o = &r->options;
    struct recent_thread *recent = &r->threads[who->tid % RECENT_THREADS];
    if (recent->thread && recent->tid == who->tid && recent->pid == who->pid)
        return *recent;
    if (o->events->system_wide && !o->everybody && !trace_builder_process(o->b, who->pid))
        return (struct recent_thread){ 0 };
    uint32_t process = watched_processes_row(o->watched, who->pid, who->time_ns);
    uint32_t thread = trace_builder_thread(o->b, who->pid, who->tid, who->time_ns);
    *recent = (struct recent_thread){ who->pid, who->tid, process, thread };
    return *recent;
}

static void follow_sample(struct kernel_records *r, const struct perf_sample *sample)
{
    const struct kernel_records_options *o = &r->options;
    const struct perf_sample_id *who = &sample->who;
    struct recent_thread recent = { 0 };
    if (!o->from_exec || o->watched->execs)
        recent = thread_of(r, who);
    if (!recent.thread) {
        r->counts.filtered++;
        return;
    }
    bool is_switch = perf_events_source(o->events, who->id) == PERF_EVENT_SWITCH;
    struct raw_sample raw = {
        .time_ns = who->time_ns,
        .weight = is_switch ? 1 : o->events->period_ns,
        .thread = recent.thread,
        .cpu = (uint16_t)who->cpu,
        .kind = is_switch ? SAMPLE_EVENT : SAMPLE_CPU,
    };
    if (!sample_stacks_find(o->stacks, recent.process, sample, &raw, o->queue))
        count_lost(r, LOSS_QUEUE, 1, who->time_ns);
}

static void follow_mmap(struct kernel_records *r, const struct perf_mmap *mmap, uint64_t time_ns)
{
    uint32_t process = trace_builder_process(r->options.b, mmap->pid);
    if (!process || mmap->pid == UINT32_MAX)
        return;
    process_scan_mapping(r->options.b, process, mmap, time_ns);
    sample_stacks_mapped(r->options.stacks, process, mmap->addr);
}

/* Of the whole machine also one of whom nobody has heard is followed from its program on, which may be short.
 */
static void follow_comm(struct kernel_records *r, const struct perf_record *record)
{
    const struct kernel_records_options *o = &r->options;
    uint32_t pid = record->comm.pid, tid = record->comm.tid;
    bool begins = record->comm.is_exec && pid == tid;
    if (!trace_builder_process(o->b, pid) && (!begins || !o->everybody))
        return;
    if (begins)
        watched_processes_exec(o->watched, pid, record->comm.name, record->who.time_ns);
    trace_builder_thread_name(o->b, pid, tid, record->comm.name, record->who.time_ns);
}

/* Of the whole machine, what a process that nobody has seen yet starts is told of, too: its name is that
 * one's. */
static void follow_fork(struct kernel_records *r, const struct perf_task *task)
{
    const struct kernel_records_options *o = &r->options;
    if (o->everybody && task->pid != task->ppid)
        watched_processes_row(o->watched, task->ppid, task->time_ns);
    watched_processes_fork(o->watched, task);
}

static void follow_record(struct kernel_records *r, struct span bytes)
{
    struct perf_record record;
    if (!perf_record_decode(bytes, &r->options.events->layout, &record, NULL)) {
        count_loss(r, LOSS_MALFORMED, 1, clock_monotonic_ns());
        return;
    }
    if (record.type != PERF_RECORD_SAMPLE)
        memset(r->threads, 0, sizeof r->threads);
    switch (record.type) {
    case PERF_RECORD_SAMPLE:
        follow_sample(r, &record.sample);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        follow_mmap(r, &record.mmap, record.who.time_ns);
        break;
    case PERF_RECORD_FORK:
        follow_fork(r, &record.task);
        break;
    case PERF_RECORD_EXIT:
        watched_processes_exit(r->options.watched, &record.task);
        break;
    case PERF_RECORD_COMM:
        follow_comm(r, &record);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        count_lost(r, LOSS_RING, record.lost.count, record.who.time_ns);
        r->counts.lost_in_rings += record.lost.count;
        break;
    case PERF_RECORD_THROTTLE:
        count_loss(r, LOSS_THROTTLED, 1, record.throttle.time_ns);
        r->counts.throttled++;
        break;
    default:
        break;
    }
}

/* What is seen for the first time can take long (an image's tables, a runtime's memory): the rings go on
 * filling. */
static void follow_item(void *user, const struct time_item *item, struct span bytes)
{
    struct kernel_records *r = user;
    (void)item;
    follow_record(r, bytes);
    kernel_records_relieve(r, !r->options.kernel_chains);
}

static void follow(struct kernel_records *r, uint64_t until_ns)
{
    r->following = true;
    memset(r->threads, 0, sizeof r->threads); /* others add threads, too */
    time_queue_release(&r->queue, until_ns, follow_item, r);
    r->following = false;
}

/* Out of the rings. */

/* Without the stack bytes that will not be needed. */
static bool queue_record(struct kernel_records *r, uint64_t time_ns, struct span bytes)
{
    const struct kernel_records_options *o = &r->options;
    uint8_t *room = time_queue_room(&r->queue, bytes.size);
    if (!room)
        return false;
    size_t size = o->kernel_chains ? 0 : sample_stacks_trim(o->stacks, &o->events->layout, bytes, room);
    if (size == 0) {
        size = bytes.size;
        memcpy(room, bytes.data, size);
    }
    time_queue_add_made(&r->queue, time_ns, QUEUE_PERF_RECORD, size);
    return true;
}

/* A full queue gives up waiting for stragglers. */
static bool take_record(void *user, struct span bytes)
{
    struct kernel_records *r = user;
    uint64_t time_ns = perf_record_time_ns(bytes, &r->options.events->layout);
    bool queued = queue_record(r, time_ns, bytes);
    if (!queued && !r->following) {
        follow(r, UINT64_MAX);
        queued = queue_record(r, time_ns, bytes);
    }
    if (!queued)
        count_lost(r, LOSS_QUEUE, 1, time_ns);
    return true;
}

static void empty_rings(struct kernel_records *r)
{
    const struct perf_events *events = r->options.events;
    r->drained_ns = clock_monotonic_ns();
    r->draining = true;
    for (size_t i = 0; i < events->ring_count; i++)
        if (events->rings[i].page && perf_ring_drain(&events->rings[i], take_record, r) < 0)
            count_loss(r, LOSS_MALFORMED, 1, r->drained_ns);
    r->draining = false;
}

void kernel_records_relieve(struct kernel_records *r, bool after_long_work)
{
    if (!after_long_work && ++r->unlooked < RECORDS_A_LOOK)
        return;
    r->unlooked = 0;
    if (!r->draining && clock_monotonic_ns() - r->drained_ns > r->options.tick_ms * MS_NS)
        empty_rings(r);
}

uint64_t kernel_records_drain(struct kernel_records *r, bool last)
{
    empty_rings(r);
    uint64_t until_ns = last ? UINT64_MAX : r->drained_ns - MS_NS;
    follow(r, until_ns);
    return until_ns;
}

struct kernel_records_counts kernel_records_counts(const struct kernel_records *r)
{
    return r->counts;
}

struct kernel_records *kernel_records_new(const struct kernel_records_options *options)
{
    struct kernel_records *r = mem_alloc(1, sizeof *r);
    r->options = *options;
    time_queue_init(&r->queue, RECORDS_QUEUE_BYTES);
    return r;
}

void kernel_records_free(struct kernel_records *r)
{
    if (!r)
        return;
    time_queue_done(&r->queue);
    free(r);
}
