#include "analyse/span_account.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/alloc_stats.h"
#include "analyse/exception_stats.h"
#include "analyse/gc_stats.h"
#include "analyse/lock_stats.h"
#include "analyse/row_times.h"
#include "analyse/span_lanes.h"
#include "analyse/told_events.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/sorted.h"
#include "clr/activity_path.h"
#include "clr/provider_names.h"
#include "clr/runtime_events.h"

/* How much of a span some thread worked for, as far as stretches were looked at. */
struct span_cover {
    uint64_t until_ns, covered_ns;
    bool by_several; /* threads at once */
};

struct span_accounting {
    const struct thread_course *course;
    struct span_account *rows; /* by span */
    struct span_cover *covers; /* by span */
    struct work_stretch stretch;
    struct row_times known; /* by span: when it is known of some thread what it did; of those by several */
    uint32_t span;          /* that it is found for */
};

bool span_accounts_wants(const char *provider, uint32_t event_id)
{
    return work_stretches_wants(provider, event_id) || thread_course_wants(provider, event_id);
}

/* Stretches come in the order they begin. */
static void add_stretch(void *user, const struct laned_span *span)
{
    struct span_accounting *a = user;
    const struct work_stretch *stretch = &a->stretch;
    struct span_account *row = &a->rows[span->row];
    struct span_cover *cover = &a->covers[span->row];
    uint64_t from = stretch->from_ns > span->start_ns ? stretch->from_ns : span->start_ns;
    uint64_t to = stretch->to_ns < span->stop_ns ? stretch->to_ns : span->stop_ns;
    if (to <= from)
        return;
    thread_course_add(a->course, stretch->thread, from, to, &row->times);
    row->stretches++;
    cover->by_several |= cover->until_ns > from;
    if (cover->until_ns < from)
        cover->until_ns = from;
    if (cover->until_ns < to) {
        cover->covered_ns += to - cover->until_ns;
        cover->until_ns = to;
    }
}

static void add_known(void *user, uint64_t from_ns, uint64_t to_ns)
{
    struct span_accounting *a = user;
    row_times_add(&a->known, a->span, from_ns, to_ns);
}

static void find_known(void *user, const struct laned_span *span)
{
    struct span_accounting *a = user;
    const struct work_stretch *stretch = &a->stretch;
    uint64_t from = stretch->from_ns > span->start_ns ? stretch->from_ns : span->start_ns;
    uint64_t to = stretch->to_ns < span->stop_ns ? stretch->to_ns : span->stop_ns;
    a->span = span->row;
    if (to > from && a->covers[span->row].by_several)
        thread_course_known(a->course, stretch->thread, from, to, add_known, a);
}

/* A stretch is work for its activity, and for all that this one was begun in. */
static void each_work(struct span_accounting *a, const struct span_lanes *lanes,
                      const struct span_accounts *accounts, span_lanes_fn *each)
{
    for (size_t i = 0; i < accounts->work.count; i++) {
        const struct work_stretch *stretch = &accounts->work.rows[i];
        struct span_owner owner = { .process = stretch->process, .path = stretch->path };
        a->stretch = *stretch;
        for (unsigned depth = 0; !activity_path_is_none(&owner.path) && depth < ACTIVITY_DEPTH_MAX; depth++) {
            span_lanes_each(lanes, &owner, stretch->from_ns, stretch->to_ns, each, a);
            owner.path = activity_parents_of(&accounts->parents, owner.process, &owner.path);
        }
    }
}

/* What is on one thread is one stretch of it. */
static void add_threads(struct span_accounting *a, const struct span_lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        const struct laned_span *span = &lanes->rows[i];
        if (!span->owner.thread)
            continue;
        a->stretch = (struct work_stretch){ .from_ns = span->start_ns,
                                            .to_ns = span->stop_ns,
                                            .thread = span->owner.thread };
        add_stretch(a, span);
    }
}

/*
 * What is not known of several threads at once is not more than the span's time. `known_ns`, by span: when it
 * is known of one of them. What samples took off the threads' time is taken off in the same share.
 */
static void count_unknown_once(const struct span_cover *cover, uint64_t known_ns, uint64_t unknown_before_ns,
                               struct span_account *row)
{
    uint64_t *ns = &row->times.ns[THREAD_UNKNOWN];
    if (cover->by_several && unknown_before_ns)
        *ns = (uint64_t)((double)(cover->covered_ns - known_ns) * ((double)*ns / (double)unknown_before_ns));
}

static void settle(struct span_account *row, bool told, uint64_t rest_ns)
{
    thread_times_settle(&row->times);
    enum span_threads known = told             ? SPAN_THREADS_TOLD
                              : row->stretches ? SPAN_THREADS_ASSUMED
                                               : SPAN_THREADS_UNKNOWN;
    row->known[known] = 1;
    *(told ? &row->away_ns : &row->unknown_ns) = rest_ns;
}

/*
 * A sample can stand for more time than a part of a span has: that lies before it. A thread that the CPU was
 * taken from is not seen again before its next sample.
 */
static void spread_samples(struct span_account *rows, size_t parts)
{
    uint64_t before_ns = 0;
    for (size_t i = parts; i-- > 0;) {
        struct thread_times *times = &rows[i].times;
        uint64_t stands_for = before_ns + times->sampled_ns, ran = times->ns[THREAD_RAN];
        before_ns = stands_for > ran ? thread_times_claim(times, stands_for - ran) : 0;
        times->sampled_ns = 0;
    }
}

/* Fills a row for each span of the table, whose rows are so many parts of each. Returns how many are left
 * out. */
static uint64_t account_all(const struct span_accounts *accounts, const struct span_table *table,
                            size_t parts, struct span_account *rows)
{
    struct span_lanes lanes;
    const struct work_stretches *work = &accounts->work;
    AUTO_FREE struct span_cover *covers = mem_alloc(table->count + 1, sizeof *covers);
    AUTO_FREE bool *told = mem_alloc(table->count + 1, sizeof *told); /* by span: all that was done for it */
    AUTO_FREE uint64_t *known_ns = mem_alloc(table->count + 1, sizeof *known_ns);
    AUTO_FREE uint64_t *unknown_ns = mem_alloc(table->count + 1, sizeof *unknown_ns); /* of all threads */
    struct span_accounting a = { .course = &accounts->course, .rows = rows, .covers = covers };
    span_lanes_init(&lanes, table);
    each_work(&a, &lanes, accounts, add_stretch);
    add_threads(&a, &lanes);
    each_work(&a, &lanes, accounts, find_known);
    row_times_sum(&a.known, known_ns);
    row_times_done(&a.known);
    for (size_t i = 0; i < table->count; i++)
        unknown_ns[i] = rows[i].times.ns[THREAD_UNKNOWN];
    for (size_t i = 0; i < lanes.count; i++)
        told[lanes.rows[i].row] = !lanes.rows[i].owner.thread && work->told[lanes.rows[i].owner.process];
    for (size_t i = 0; parts > 1 && i < table->count; i += parts)
        spread_samples(&rows[i], parts);
    for (size_t i = 0; i < table->count; i++) {
        settle(&rows[i], told[i], span_ns(&table->rows[i]) - covers[i].covered_ns);
        count_unknown_once(&covers[i], known_ns[i], unknown_ns[i], &rows[i]);
    }
    uint64_t left_out = lanes.left_out;
    span_lanes_done(&lanes);
    return left_out;
}

/* When the part begins; that of number `parts` is the span's end. */
static uint64_t part_ns(const struct span_row *span, size_t part, size_t parts)
{
    uint64_t whole = span_ns(span);
    return span->start_ns + whole / parts * part + whole % parts * part / parts;
}

void span_accounts_parts(const struct span_accounts *accounts, const struct span_row *const *spans,
                         size_t count, size_t parts, struct span_account *out)
{
    struct span_table cut = { .rows = mem_alloc(count * parts + 1, sizeof *cut.rows) };
    for (size_t i = 0; i < count; i++)
        for (size_t part = 0; part < parts; part++) {
            struct span_row *row = &cut.rows[cut.count++];
            *row = *spans[i];
            row->start_ns = part_ns(spans[i], part, parts);
            row->stop_ns = part_ns(spans[i], part + 1, parts);
        }
    memset(out, 0, cut.count * sizeof *out);
    account_all(accounts, &cut, parts, out);
    free(cut.rows);
}

/* Begins and ends of collections, each in order. */
struct gc_times {
    uint64_t *begin, *end;
    size_t count;
};

static int time_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void count_collections(const struct span_table *table, const struct gc_stats *gc, uint32_t process,
                              struct gc_times *times, struct span_accounts *accounts)
{
    times->count = 0;
    for (size_t i = 0; i < gc->row_count; i++) {
        const struct gc_record *row = &gc->rows[i];
        if (row->process != process || !row->complete)
            continue;
        times->begin[times->count] = row->start_ns;
        times->end[times->count++] = row->end_ns;
    }
    if (!times->count)
        return;
    qsort(times->begin, times->count, sizeof *times->begin, time_compare);
    qsort(times->end, times->count, sizeof *times->end, time_compare);
    for (size_t i = 0; i < table->count; i++) {
        const struct span_row *row = &table->rows[i];
        if (row->process == process) /* had begun, without those that were over */
            accounts->rows[i].collections = sorted_from(times->begin, times->count, row->stop_ns) -
                                            sorted_from(times->end, times->count, row->start_ns);
    }
}

static void add_collections(const struct span_table *table, const struct trace *t,
                            struct span_accounts *accounts)
{
    struct gc_stats gc;
    gc_stats_init(&gc, t, 0, 0);
    struct gc_times times = { .begin = mem_alloc(gc.row_count + 1, sizeof *times.begin),
                              .end = mem_alloc(gc.row_count + 1, sizeof *times.end) };
    for (uint32_t process = 1; gc.row_count && process < t->processes.count; process++)
        count_collections(table, &gc, process, &times, accounts);
    free(times.begin);
    free(times.end);
    gc_stats_done(&gc);
}

static bool was_told(const struct trace *t, uint64_t keywords, uint8_t level,
                     bool (*wants)(const char *, uint32_t))
{
    if (told_was_asked(t, RUNTIME_PROVIDER, keywords, level))
        return true;
    for (size_t i = 1; i < t->event_types.count; i++)
        if (wants(trace_string(t, t->event_types.rows[i].provider), t->event_types.rows[i].event_id))
            return true;
    return false;
}

/* What was not told is not 'none'. */
static void set_told(struct span_accounts *accounts, const struct trace *t)
{
    enum { GC = 0x1, LOCKS = 0x4000, EXCEPTIONS = 0x8000, ERRORS = 2, INFORMATION = 4, VERBOSE = 5 };
    accounts->has_collections = was_told(t, GC, INFORMATION, gc_stats_wants);
    accounts->has_locks = was_told(t, LOCKS, INFORMATION, lock_stats_wants);
    accounts->has_exceptions = was_told(t, EXCEPTIONS, ERRORS, exception_stats_wants);
    accounts->has_allocations =
        was_told(t, GC, VERBOSE, alloc_stats_wants) ||
        told_was_asked(t, RUNTIME_PROVIDER, RUNTIME_KEYWORD_ALLOCATION_SAMPLING, INFORMATION);
}

void span_accounts_init(struct span_accounts *accounts, const struct span_table *table, const struct trace *t)
{
    *accounts = (struct span_accounts){ .count = table->count };
    accounts->rows = mem_alloc(table->count + 1, sizeof *accounts->rows);
    thread_course_init(&accounts->course, t);
    activity_parents_init(&accounts->parents, t);
    work_stretches_init(&accounts->work, t, &accounts->parents);
    accounts->left_out = account_all(accounts, table, 1, accounts->rows);
    accounts->has_cpu = accounts->course.has_cpu;
    accounts->has_switches = accounts->course.has_switches;
    add_collections(table, t, accounts);
    set_told(accounts, t);
    for (size_t i = 0; i < accounts->count; i++)
        span_account_add(&accounts->total, &accounts->rows[i]);
}

void span_accounts_done(struct span_accounts *accounts)
{
    thread_course_done(&accounts->course);
    work_stretches_done(&accounts->work);
    activity_parents_done(&accounts->parents);
    free(accounts->rows);
}

void span_account_add(struct span_account *sum, const struct span_account *one)
{
    for (unsigned i = 0; i < THREAD_STATES; i++)
        sum->times.ns[i] += one->times.ns[i];
    sum->times.sampled_ns += one->times.sampled_ns;
    sum->times.exceptions += one->times.exceptions;
    sum->times.allocated_bytes += one->times.allocated_bytes;
    sum->away_ns += one->away_ns;
    sum->unknown_ns += one->unknown_ns;
    sum->collections += one->collections;
    sum->stretches += one->stretches;
    for (unsigned i = 0; i <= SPAN_THREADS_TOLD; i++)
        sum->known[i] += one->known[i];
}
