#include "cli/record_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/message.h"
#include "cli/text_fit.h"

enum { LINE_BYTES_MAX = 4096 };

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

static void put_samples(const struct record_progress *now, struct buffer *out)
{
    double broken = now->samples ? (double)now->broken * 100 / (double)now->samples : 0;
    buffer_format(out, " · %s samples · %s lost · %.1f %% broken stacks", units_count(now->samples).text,
                  units_count(now->lost).text, broken);
}

static void put_events(struct record_progress_line *line, const struct record_progress *now,
                       struct buffer *out)
{
    uint64_t passed_ns = now->elapsed_ns - line->seen_ns;
    if (passed_ns)
        line->rate = (uint64_t)((double)(now->events - line->seen_events) * 1e9 / (double)passed_ns);
    line->seen_ns = now->elapsed_ns;
    line->seen_events = now->events;
    buffer_format(out, " · %s events · %s/s · %s lost", units_count(now->events).text,
                  units_count(line->rate).text, units_count(now->events_lost).text);
}

/* A line that changes must be one: the terminal would go on in the next. Its last column stays free. */
static void print_line(const struct buffer *text, bool terminal)
{
    struct buffer line;
    size_t width = terminal ? text_columns(STDERR_FILENO) : 0;
    buffer_init(&line, LINE_BYTES_MAX);
    text_cut(&line, buffer_span(text), width ? width - 1 : SIZE_MAX, false);
    fprintf(stderr, "%s%.*s%s", terminal ? "\r" : "", (int)line.size, (const char *)line.data,
            terminal ? "\033[K" : "\n");
    fflush(stderr);
    buffer_done(&line);
}

void record_progress_show(struct record_progress_line *line, const struct record_progress *now,
                          uint64_t duration_ns)
{
    if (!line->on || (!line->terminal && now->elapsed_ns - line->logged_ns < PROGRESS_LOG_NS))
        return;
    line->logged_ns = now->elapsed_ns;
    struct buffer text;
    buffer_init(&text, LINE_BYTES_MAX);
    buffer_format(&text, "%.1f s", (double)now->elapsed_ns / 1e9);
    if (duration_ns)
        buffer_format(&text, " of %s", units_duration(duration_ns).text);
    if (line->samples)
        put_samples(now, &text);
    if (line->events)
        put_events(line, now, &text);
    buffer_format(&text, " · %s", units_size(now->file_bytes).text);
    print_line(&text, line->terminal);
    buffer_done(&text);
    line->shown = line->terminal;
}
