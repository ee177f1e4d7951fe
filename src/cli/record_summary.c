#include "cli/record_summary.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/capture.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/standard_output.h"

enum { LINE_BYTES = 1024 };

static void put_json(const struct record_summary *r, struct json_writer *j)
{
    static const char *const ends[] = { "duration", "signal", "target_exit", "stop_when", "error" };
    const struct record_stats *s = r->stats;
    json_begin_object(j);
    json_put_string(j, "schema", "clrperf.record/1");
    json_put_string(j, "file", r->path);
    json_put_double(j, "duration_s", (double)s->duration_ns / 1e9);
    json_put_u64(j, "samples", s->samples);
    json_put_u64(j, "attempted", s->samples + s->lost);
    json_put_u64(j, "lost", s->lost);
    json_put_object(j, "lost_by");
    if (r->trace)
        capture_json_losses(j, r->trace);
    json_end_object(j);
    json_put_u64(j, "events", s->events);
    json_put_u64(j, "events_lost", s->events_lost);
    json_put_double(j, "cpu_missed_s", (double)s->cpu_missed_ns / 1e9);
    json_put_object(j, "stacks");
    json_put_u64(j, "whole", s->whole);
    json_put_u64(j, "truncated", s->truncated);
    json_put_u64(j, "broken", s->broken);
    json_end_object(j);
    json_put_u64(j, "processes", s->processes);
    json_put_u64(j, "threads", s->threads);
    json_put_u64(j, "bytes", r->file_bytes);
    json_put_object(j, "self");
    json_put_double(j, "cpu_s", (double)clock_own_cpu_ns() / 1e9);
    json_put_u64(j, "peak_rss_bytes", clock_own_peak_rss_bytes());
    json_put_double(j, "stop_to_closed_ms", (double)r->stop_to_closed_ns / 1e6);
    json_put_double(j, "rundown_ms", (double)s->rundown_ns / 1e6);
    json_end_object(j);
    json_put_string(j, "ended_by", ends[s->ended_by]);
    json_end_object(j);
}

bool record_summary_json(const struct record_summary *s, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    stdout_json(&j, &text);
    put_json(s, &j);
    return stdout_json_end(&j, err);
}

void record_summary_text(const struct record_summary *r)
{
    const struct record_stats *s = r->stats;
    double seconds = (double)s->duration_ns / 1e9;
    struct buffer what;
    buffer_init(&what, LINE_BYTES);
    if (r->samples)
        buffer_format(&what, "%s samples, %s lost", units_count(s->samples).text, units_count(s->lost).text);
    if (r->events)
        buffer_format(&what, "%s%s events, %s lost", r->samples ? "; " : "", units_count(s->events).text,
                      units_count(s->events_lost).text);
    buffer_u8(&what, 0);
    message_note("%s, of %s process%s in %.1f s -> %s (%s)", (const char *)what.data,
                 units_count(s->processes).text, s->processes == 1 ? "" : "es", seconds, r->path,
                 units_size(r->file_bytes).text);
    buffer_done(&what);
    message_note("clrperf used %s, %s", units_cpu_share(clock_own_cpu_ns(), s->duration_ns).text,
                 units_size(clock_own_peak_rss_bytes()).text);
}

void record_summary_warn_stopping(const struct record_stats *stats, const struct stopping_event *stopping)
{
    struct buffer what;
    if (!stopping || stats->ended_by == RECORD_ENDED_STOP_WHEN)
        return;
    buffer_init(&what, LINE_BYTES);
    stopping_event_append_missed(stopping, &what);
    buffer_u8(&what, 0);
    message_warning("the stopping event did not come: %s", (const char *)what.data);
    buffer_done(&what);
}
