#include "cli/trace_tally.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/json_put.h"

enum {
    NAMES_BYTES_MAX = 4 << 20, /* what does not fit is counted without a name */
    TOP = 10,
};

static void ranking_init(struct trace_ranking *r)
{
    *r = (struct trace_ranking){ 0 };
    intern_init(&r->names, NAMES_BYTES_MAX);
}

static void ranking_done(struct trace_ranking *r)
{
    intern_done(&r->names);
    free(r->rows);
}

void trace_tally_init(struct trace_tally *t)
{
    *t = (struct trace_tally){ 0 };
    ranking_init(&t->allocated);
    ranking_init(&t->thrown);
    ranking_init(&t->other);
}

void trace_tally_done(struct trace_tally *t)
{
    ranking_done(&t->allocated);
    ranking_done(&t->thrown);
    ranking_done(&t->other);
}

void trace_ranking_add(struct trace_ranking *r, struct span name, uint64_t bytes)
{
    uint32_t id = intern_add(&r->names, name);
    r->rows = mem_grow_zeroed(r->rows, &r->capacity, id + 1, sizeof *r->rows);
    r->rows[id].count++;
    r->rows[id].bytes += bytes;
    r->count++;
    r->bytes += bytes;
}

void trace_tally_collection(struct trace_tally *t, const struct gc_watch_one *gc)
{
    t->collections[gc->generation < 2 ? gc->generation : 2]++;
    t->induced += gc_reason_is_induced(gc->reason);
    t->background += gc->type == RUNTIME_GC_BACKGROUND;
    t->pause_ns += gc->pause_ns;
    if (gc->pause_ns > t->longest_ns)
        t->longest_ns = gc->pause_ns;
}

/* The heaviest names, by bytes, and by count where there are none. Returns how many. */
static size_t ranking_top(const struct trace_ranking *r, uint32_t out[TOP])
{
    size_t count = 0;
    for (uint32_t id = 0; id < r->names.count && id < r->capacity; id++) {
        const struct trace_rank *row = &r->rows[id];
        if (!row->count)
            continue;
        size_t at = count < TOP ? count++ : TOP;
        for (; at > 0; at--) {
            const struct trace_rank *above = &r->rows[out[at - 1]];
            if (above->bytes > row->bytes || (above->bytes == row->bytes && above->count >= row->count))
                break;
            if (at < TOP)
                out[at] = out[at - 1];
        }
        if (at < TOP)
            out[at] = id;
    }
    return count;
}

static const char *rank_name(const struct trace_ranking *r, uint32_t id)
{
    return id ? intern_text(&r->names, id) : "[others]";
}

static uint64_t per_second(uint64_t count, uint64_t duration_ns)
{
    return duration_ns ? (uint64_t)((double)count * 1e9 / (double)duration_ns) : 0;
}

static void text_ranking(const struct trace_ranking *r, struct buffer *out)
{
    uint32_t top[TOP];
    size_t count = ranking_top(r, top);
    for (size_t i = 0; i < count; i++) {
        const struct trace_rank *row = &r->rows[top[i]];
        double share =
            r->bytes ? (double)row->bytes / (double)r->bytes : (double)row->count / (double)r->count;
        buffer_format(out, "  %6.1f %%  %10s  %s\n", share * 100,
                      r->bytes ? units_size(row->bytes).text : units_count(row->count).text,
                      rank_name(r, top[i]));
    }
}

static void text_collections(const struct trace_tally *t, uint64_t duration_ns, struct buffer *out)
{
    uint64_t all = t->collections[0] + t->collections[1] + t->collections[2];
    buffer_format(out, "collections %s", units_count(all).text);
    for (unsigned i = 0; i < ARRAY_LEN(t->collections); i++)
        buffer_format(out, "%s gen %u %s", i ? "," : ":", i, units_count(t->collections[i]).text);
    buffer_format(out, "; %s asked for, %s in the background\n", units_count(t->induced).text,
                  units_count(t->background).text);
    buffer_format(out, "paused      %s in all (%.2f %% of the time)", units_duration(t->pause_ns).text,
                  duration_ns ? (double)t->pause_ns * 100 / (double)duration_ns : 0);
    if (all)
        buffer_format(out, ", mean %s, longest %s", units_duration(t->pause_ns / all).text,
                      units_duration(t->longest_ns).text);
    buffer_string(out, "\n");
}

void trace_tally_text(const struct trace_tally *t, uint64_t duration_ns, struct buffer *out)
{
    if (t->collections[0] + t->collections[1] + t->collections[2])
        text_collections(t, duration_ns, out);
    if (t->heap_known) {
        buffer_string(out, "heap       ");
        for (unsigned i = 0; i < GC_EVENT_GENS; i++)
            buffer_format(out, "%s %s %s", i ? "," : "", gc_gen_name(i), units_size(t->heap_bytes[i]).text);
        buffer_string(out, " after the last collection\n");
    }
    if (t->allocated.count) {
        buffer_format(out, "allocated   %s (%s/s), by type:\n", units_size(t->allocated.bytes).text,
                      units_size(per_second(t->allocated.bytes, duration_ns)).text);
        text_ranking(&t->allocated, out);
    }
    if (t->thrown.count || t->rethrown) {
        buffer_format(out, "exceptions  %s (%s/s)", units_count(t->thrown.count).text,
                      units_count(per_second(t->thrown.count, duration_ns)).text);
        if (t->rethrown)
            buffer_format(out, ", %s times thrown again", units_count(t->rethrown).text);
        buffer_string(out, ", by type:\n");
        text_ranking(&t->thrown, out);
    }
    if (t->other.count) {
        buffer_format(out, "others      %s events:\n", units_count(t->other.count).text);
        text_ranking(&t->other, out);
    }
    if (t->lost)
        buffer_format(out, "lost        at least %s events\n", units_count(t->lost).text);
}

void trace_tally_allocating(struct trace_tally *t, uint64_t *seen_bytes, uint64_t passed_ns,
                            struct buffer *out)
{
    uint32_t top[TOP];
    uint64_t more = t->allocated.bytes - *seen_bytes;
    *seen_bytes = t->allocated.bytes;
    size_t count = ranking_top(&t->allocated, top);
    buffer_format(out, "alloc      %s/s; so far", units_size(per_second(more, passed_ns)).text);
    for (size_t i = 0; i < count && i < 3; i++)
        buffer_format(out, "%s %s %s", i ? "," : "", units_size(t->allocated.rows[top[i]].bytes).text,
                      rank_name(&t->allocated, top[i]));
    buffer_string(out, "\n");
}

/* Leaves the object open, as its members go on. */
static void json_ranking(const struct trace_ranking *r, bool bytes, struct json_writer *j)
{
    uint32_t top[TOP];
    size_t count = ranking_top(r, top);
    json_begin_object(j);
    json_put_u64(j, "count", r->count);
    if (bytes)
        json_put_u64(j, "bytes", r->bytes);
    json_put_array(j, "top");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(j);
        json_put_string(j, "name", rank_name(r, top[i]));
        json_put_u64(j, "count", r->rows[top[i]].count);
        if (bytes)
            json_put_u64(j, "bytes", r->rows[top[i]].bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

/* Begins a member; false when it is null, as nothing of it is known. */
static bool json_known(struct json_writer *j, const char *key, bool known)
{
    json_key(j, key);
    if (!known)
        json_absent(j);
    return known;
}

static void json_collections(const struct trace_tally *t, bool asked, struct json_writer *j)
{
    bool any = t->collections[0] + t->collections[1] + t->collections[2] > 0;
    if (!json_known(j, "gc", asked || any))
        return;
    json_begin_object(j);
    json_put_array(j, "by_generation");
    for (unsigned i = 0; i < ARRAY_LEN(t->collections); i++)
        json_u64(j, t->collections[i]);
    json_end_array(j);
    json_put_u64(j, "induced", t->induced);
    json_put_u64(j, "background", t->background);
    json_put_u64(j, "pause_ns", t->pause_ns);
    json_put_u64(j, "longest_ns", t->longest_ns);
    json_end_object(j);
}

static void json_heap(const struct trace_tally *t, struct json_writer *j)
{
    static const char *const keys[GC_EVENT_GENS] = { "gen0", "gen1", "gen2", "large", "pinned" };
    json_put_object(j, "heap_bytes");
    for (unsigned i = 0; i < GC_EVENT_GENS; i++)
        json_put_known_u64(j, keys[i], t->heap_known, t->heap_bytes[i]);
    json_end_object(j);
}

static void json_exceptions(const struct trace_tally *t, bool asked, struct json_writer *j)
{
    if (!json_known(j, "exceptions", asked || t->thrown.count || t->rethrown))
        return;
    json_ranking(&t->thrown, false, j);
    json_put_u64(j, "rethrown", t->rethrown);
    json_end_object(j);
}

static void json_requests(const struct trace_requests *r, bool asked, struct json_writer *j)
{
    if (!json_known(j, "requests", asked))
        return;
    json_begin_object(j);
    json_put_u64(j, "count", r->ended);
    json_put_known_u64(j, "mean_ns", r->ended, r->ended ? r->total_ns / r->ended : 0);
    json_put_known_u64(j, "longest_ns", r->ended, r->longest_ns);
    json_put_u64(j, "running", r->count);
    json_end_object(j);
}

void trace_tally_json(const struct trace_tally *t, const struct trace_wants *asked,
                      const struct trace_requests *requests, uint64_t duration_ns, struct json_writer *j)
{
    json_begin_object(j);
    json_put_string(j, "schema", "clrperf.trace.summary/1");
    json_put_double(j, "duration_s", (double)duration_ns / 1e9);
    json_collections(t, asked->gc || asked->heap, j);
    json_heap(t, j);
    if (json_known(j, "alloc", asked->alloc || t->allocated.count)) {
        json_ranking(&t->allocated, true, j);
        json_end_object(j);
    }
    json_exceptions(t, asked->exceptions, j);
    json_requests(requests, asked->http, j);
    json_key(j, "others");
    json_ranking(&t->other, false, j);
    json_end_object(j);
    json_put_u64(j, "lost", t->lost);
    json_put_object(j, "self");
    json_put_double(j, "cpu_s", (double)clock_own_cpu_ns() / 1e9);
    json_put_u64(j, "peak_rss_bytes", clock_own_peak_rss_bytes());
    json_end_object(j);
    json_end_object(j);
}
