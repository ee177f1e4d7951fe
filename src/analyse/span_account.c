#include "analyse/span_account.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/alloc_stats.h"
#include "analyse/exception_stats.h"
#include "analyse/gc_stats.h"
#include "analyse/lock_stats.h"
#include "analyse/told_events.h"
#include "analyse/work_stretches.h"
#include "base/id_map.h"
#include "base/mem.h"
#include "clr/activity_path.h"
#include "clr/provider_names.h"
#include "clr/runtime_events.h"

/* A thread works for a span. */
struct span_piece {
    uint64_t from_ns, to_ns;
    uint32_t span, thread;
};

struct span_matching {
    const struct span_table *table;
    struct activity_path *paths; /* by span */
    struct id_map ids;           /* of one more than the span that ended last with a path */
    uint32_t *next;              /* by span: one more than another one of the same path; 0: none */
    struct span_piece *pieces;
    size_t count, capacity;
};

bool span_accounts_wants(const char *provider, uint32_t event_id)
{
    return work_stretches_wants(provider, event_id) || thread_course_wants(provider, event_id);
}

struct path_key {
    const struct activity_path *path;
    uint32_t process;
};

static uint64_t key_hash(const struct path_key *key)
{
    return hash_pair(hash_bytes(key->path, sizeof *key->path), key->process);
}

static bool span_same(const void *matching, uint32_t id, const void *key)
{
    const struct span_matching *m = matching;
    const struct path_key *wanted = key;
    return m->table->rows[id - 1].process == wanted->process &&
           memcmp(&m->paths[id - 1], wanted->path, sizeof *wanted->path) == 0;
}

static void index_spans(struct span_matching *m)
{
    for (uint32_t i = 0; i < m->table->count; i++) {
        const struct span_row *row = &m->table->rows[i];
        if (!activity_path_read(row->activity, &m->paths[i]))
            continue;
        struct path_key key = { &m->paths[i], row->process };
        uint32_t same = id_map_find(&m->ids, key_hash(&key), span_same, m, &key);
        m->next[i] = same;
        if (same)
            id_map_replace(&m->ids, key_hash(&key), same, i + 1);
        else
            id_map_add(&m->ids, key_hash(&key), i + 1);
    }
}

static void add_piece(struct span_matching *m, uint32_t span, uint32_t thread, uint64_t from_ns,
                      uint64_t to_ns)
{
    const struct span_row *row = &m->table->rows[span];
    uint64_t from = from_ns > row->start_ns ? from_ns : row->start_ns;
    uint64_t to = to_ns < row->stop_ns ? to_ns : row->stop_ns;
    if (to <= from)
        return;
    m->pieces = mem_grow(m->pieces, &m->capacity, m->count + 1, sizeof *m->pieces);
    m->pieces[m->count++] = (struct span_piece){ from, to, span, thread };
}

/* It is work for its activity, and for all that this one was begun in. */
static void match_stretch(struct span_matching *m, const struct work_stretch *stretch)
{
    struct activity_path path = stretch->path;
    for (; !activity_path_is_none(&path); path = activity_path_parent(&path)) {
        struct path_key key = { &path, stretch->process };
        uint32_t id = id_map_find(&m->ids, key_hash(&key), span_same, m, &key);
        for (; id; id = m->next[id - 1])
            add_piece(m, id - 1, stretch->thread, stretch->from_ns, stretch->to_ns);
    }
}

static bool has_path(const struct span_matching *m, uint32_t span)
{
    return !activity_path_is_none(&m->paths[span]);
}

static int piece_compare(const void *a, const void *b)
{
    const struct span_piece *x = a, *y = b;
    if (x->span != y->span)
        return x->span < y->span ? -1 : 1;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool thread_is_new(const struct span_piece *pieces, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (pieces[i].thread == pieces[at].thread)
            return false;
    return true;
}

/* A span's pieces, in time order. */
static void account(const struct span_matching *m, const struct thread_course *course,
                    const struct work_stretches *work, const struct span_piece *pieces, size_t count,
                    uint32_t span, struct span_account *out)
{
    enum { THREADS_COUNTED = 64 }; /* pieces of one span that are searched for threads */
    const struct span_row *row = &m->table->rows[span];
    uint64_t covered_ns = 0, until_ns = 0;
    for (size_t i = 0; i < count; i++) {
        const struct span_piece *p = &pieces[i];
        thread_course_add(course, p->thread, p->from_ns, p->to_ns, &out->times);
        uint64_t from = p->from_ns > until_ns ? p->from_ns : until_ns;
        covered_ns += p->to_ns > from ? p->to_ns - from : 0;
        until_ns = p->to_ns > until_ns ? p->to_ns : until_ns;
        out->threads += i < THREADS_COUNTED && thread_is_new(pieces, i);
    }
    thread_times_settle(&out->times);
    out->stretches = (uint32_t)count;
    bool told = work->told[row->process] && has_path(m, span);
    enum span_threads known = told ? SPAN_THREADS_TOLD : count ? SPAN_THREADS_ASSUMED : SPAN_THREADS_UNKNOWN;
    out->known[known] = 1;
    *(told ? &out->away_ns : &out->unknown_ns) = span_ns(row) - covered_ns;
}

static void account_all(struct span_matching *m, const struct thread_course *course,
                        const struct work_stretches *work, struct span_accounts *accounts)
{
    if (m->count)
        qsort(m->pieces, m->count, sizeof *m->pieces, piece_compare);
    size_t at = 0;
    for (uint32_t span = 0; span < m->table->count; span++) {
        size_t begin = at;
        while (at < m->count && m->pieces[at].span == span)
            at++;
        account(m, course, work, m->pieces + begin, at - begin, span, &accounts->rows[span]);
    }
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

/* How many are below. */
static size_t below(const uint64_t *times, size_t count, uint64_t limit)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (times[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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
            accounts->rows[i].collections = below(times->begin, times->count, row->stop_ns) -
                                            below(times->end, times->count, row->start_ns);
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
    struct span_matching m = { .table = table };
    struct thread_course course;
    struct work_stretches work;
    *accounts = (struct span_accounts){ .count = table->count };
    accounts->rows = mem_alloc(table->count + 1, sizeof *accounts->rows);
    m.paths = mem_alloc(table->count + 1, sizeof *m.paths);
    m.next = mem_alloc(table->count + 1, sizeof *m.next);
    index_spans(&m);
    work_stretches_init(&work, t);
    thread_course_init(&course, t);
    for (size_t i = 0; i < work.count; i++)
        match_stretch(&m, &work.rows[i]);
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].on_one_thread && !has_path(&m, i))
            add_piece(&m, i, table->rows[i].thread, table->rows[i].start_ns, table->rows[i].stop_ns);
    account_all(&m, &course, &work, accounts);
    add_collections(table, t, accounts);
    set_told(accounts, t);
    for (size_t i = 0; i < accounts->count; i++)
        span_account_add(&accounts->total, &accounts->rows[i]);
    accounts->has_cpu = course.has_cpu;
    accounts->has_switches = course.has_switches;
    thread_course_done(&course);
    work_stretches_done(&work);
    id_map_done(&m.ids);
    free(m.paths);
    free(m.next);
    free(m.pieces);
}

void span_accounts_done(struct span_accounts *accounts)
{
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
    sum->threads += one->threads;
    for (unsigned i = 0; i <= SPAN_THREADS_TOLD; i++)
        sum->known[i] += one->known[i];
}
