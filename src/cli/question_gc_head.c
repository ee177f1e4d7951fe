#include "cli/question_gc.h"

#include <string.h>

#include "base/units.h"
#include "base/utf8.h"

enum { FINALIZED_TYPES_SHOWN = 5 };

static void head_counts(const struct gc_process_stats *p, struct buffer *out)
{
    const struct gc_sum *all = &p->all;
    buffer_format(out, "collections %s", all->count ? units_count(all->count).text : "none");
    const char *comma = ": ";
    for (unsigned gen = 0; gen < 3; gen++) {
        if (!p->by_generation[gen].count)
            continue;
        buffer_format(out, "%sgen %u %s", comma, gen, units_count(p->by_generation[gen].count).text);
        comma = ", ";
    }
    if (all->background)
        buffer_format(out, " (%s in the background)", units_count(all->background).text);
    if (all->induced)
        buffer_format(out, "; %s induced", units_count(all->induced).text);
    if (p->incomplete)
        buffer_format(out, "; %s more of which the begin or the end is missing",
                      units_count(p->incomplete).text);
    buffer_u8(out, '\n');
}

static void head_pauses(const struct gc_answer *a, const struct gc_process_stats *p, struct buffer *out)
{
    const struct gc_sum *all = &p->all;
    uint64_t told_ns = gc_answer_told_ns(a, p->process), pause_ns = all->pause_ns + p->other_pause_ns;
    if (!all->count)
        return;
    buffer_format(out, "pauses      %s in all", units_duration(pause_ns).text);
    if (told_ns)
        buffer_format(out, " (%.2f %% of the time)", question_share(pause_ns, told_ns) * 100);
    buffer_format(out, "; mean %s, longest %s, to stop the threads at most %s",
                  units_duration(all->pause_ns / all->count).text, units_duration(all->pause_max_ns).text,
                  units_duration(all->suspend_max_ns).text);
    if (p->other_pauses)
        buffer_format(out, "; %s for no collection that was told", units_count(p->other_pauses).text);
    buffer_u8(out, '\n');
}

static void head_sizes(const struct gc_answer *a, const struct gc_process_stats *p, struct buffer *out)
{
    const struct gc_record *last = NULL;
    uint64_t told_ns = gc_answer_told_ns(a, p->process);
    for (size_t i = 0; i < p->count; i++)
        if (a->stats.rows[p->first + i].has_stats)
            last = &a->stats.rows[p->first + i];
    if (!last)
        return;
    buffer_string(out, "heap        ");
    if (p->all.peak_max)
        buffer_format(out, "at most %s, ", units_size(p->all.peak_max).text);
    buffer_format(out, "%s after the last", units_size(last->heap_after).text);
    /* what collections freed that were not told is not known: those that make room for a no-GC region */
    if (p->all.allocated)
        buffer_format(out, "; allocated %s%s", p->other_pauses ? "at least " : "",
                      units_size(p->all.allocated).text);
    if (p->all.allocated && told_ns)
        buffer_format(out, " (%s/s)",
                      units_size((uint64_t)((double)p->all.allocated * 1e9 / (double)told_ns)).text);
    buffer_format(out, "; promoted %s\n", units_size(p->all.promoted).text);
}

/* The heap's size over the capture: what it was after the last collection until then. */
static void head_strip(const struct gc_answer *a, const struct gc_process_stats *p, struct buffer *out)
{
    double sizes[QUESTION_STRIP], most = 0;
    size_t next = 0;
    double size = -1;
    for (size_t i = 0; i < QUESTION_STRIP; i++) {
        double to_s = (double)a->scope.shown.duration_ns / 1e9 * (double)(i + 1) / QUESTION_STRIP, peak = -1;
        for (; next < p->count; next++) {
            const struct gc_record *row = &a->stats.rows[p->first + next];
            if (capture_time_s(&a->scope.shown, row->start_ns) > to_s)
                break;
            if (row->has_before && (double)row->heap_before > peak)
                peak = (double)row->heap_before;
            if (row->has_stats)
                size = (double)row->heap_after;
        }
        sizes[i] = peak > size ? peak : size;
        most = sizes[i] > most ? sizes[i] : most;
    }
    if (most <= 0)
        return;
    buffer_string(out, "heap size   ");
    question_strip(sizes, QUESTION_STRIP, out);
    buffer_format(out, "  0 to %s\n", units_size((uint64_t)most).text);
}

/* "finalized   200 objects: 150 App.Connection, 50 App.Cursor" */
static void put_finalized(const struct gc_answer *a, const struct gc_process_stats *p, struct buffer *out)
{
    const char *comma = ": ";
    unsigned shown = 0;
    buffer_format(out, "finalized   %s objects", units_count(p->finalized).text);
    for (size_t i = 0; i < a->finalized.count && shown < FINALIZED_TYPES_SHOWN; i++) {
        const struct finalized_type *type = &a->finalized.rows[i];
        if (type->process != p->process || !type->name)
            continue;
        buffer_format(out, "%s%s ", comma, units_count(type->count).text);
        utf8_escape(out, span_of(type->name, strlen(type->name)));
        comma = ", ";
        shown++;
    }
    buffer_u8(out, '\n');
}

void question_gc_head(const struct gc_answer *a, const struct gc_process_stats *p, bool named,
                      struct buffer *out)
{
    size_t from = out->size;
    if (named) {
        buffer_u8(out, '\n');
        question_process(&a->scope, p->process, out);
        buffer_u8(out, '\n');
    }
    head_counts(p, out);
    head_pauses(a, p, out);
    head_sizes(a, p, out);
    head_strip(a, p, out);
    if (p->all.count && !p->all.with_stats)
        buffer_string(out, "sizes       were not told; record them with: clrperf record -e gc\n");
    if (p->finalized)
        put_finalized(a, p, out);
    question_wrap(out, from);
}
