#include "cli/record_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/message.h"

#define PROGRESS_LOG_NS 10000000000ull

void record_progress_begin(struct record_progress_line *line, const char *name, size_t processes,
                           const char *what, bool by_enter)
{
    *line = (struct record_progress_line){ .on = true, .terminal = isatty(STDERR_FILENO) };
    char whom[300];
    if (processes > 1)
        snprintf(whom, sizeof whom, "%zu processes", processes);
    else
        snprintf(whom, sizeof whom, "%.250s", name);
    message_note("recording %s: %s%s", whom, what,
                 !line->terminal ? ""
                 : by_enter      ? " (Ctrl-C or Enter ends it)"
                                 : " (Ctrl-C ends it)");
}

void record_progress_clear(struct record_progress_line *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
}

static void show_samples(const struct record_progress *now)
{
    double broken = now->samples ? (double)now->broken * 100 / (double)now->samples : 0;
    fprintf(stderr, " · %s samples · %s lost · %.1f %% broken stacks", units_count(now->samples).text,
            units_count(now->lost).text, broken);
}

static void show_events(struct record_progress_line *line, const struct record_progress *now)
{
    uint64_t passed_ns = now->elapsed_ns - line->seen_ns;
    if (passed_ns)
        line->rate = (uint64_t)((double)(now->events - line->seen_events) * 1e9 / (double)passed_ns);
    line->seen_ns = now->elapsed_ns;
    line->seen_events = now->events;
    fprintf(stderr, " · %s events · %s/s · %s lost", units_count(now->events).text,
            units_count(line->rate).text, units_count(now->events_lost).text);
}

void record_progress_show(struct record_progress_line *line, const struct record_progress *now,
                          uint64_t duration_ns)
{
    if (!line->on || (!line->terminal && now->elapsed_ns - line->logged_ns < PROGRESS_LOG_NS))
        return;
    line->logged_ns = now->elapsed_ns;
    char until[40] = "";
    if (duration_ns)
        snprintf(until, sizeof until, " of %s", units_duration(duration_ns).text);
    fprintf(stderr, "%s%.1f s%s", line->terminal ? "\r" : "", (double)now->elapsed_ns / 1e9, until);
    if (line->samples)
        show_samples(now);
    if (line->events)
        show_events(line, now);
    fprintf(stderr, " · %s%s", units_size(now->file_bytes).text, line->terminal ? "\033[K" : "\n");
    line->shown = line->terminal;
    fflush(stderr);
}
