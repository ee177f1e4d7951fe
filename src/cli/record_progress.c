#include "cli/record_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/message.h"

#define PROGRESS_LOG_NS 10000000000ull

void record_progress_begin(struct record_progress_line *line, const char *name, size_t processes,
                           uint64_t rate_hz)
{
    *line = (struct record_progress_line){ .on = true, .terminal = isatty(STDERR_FILENO) };
    char what[300];
    if (processes > 1)
        snprintf(what, sizeof what, "%zu processes", processes);
    else
        snprintf(what, sizeof what, "%.250s", name);
    message_note("recording %s: CPU samples at %llu Hz%s", what, (unsigned long long)rate_hz,
                 line->terminal ? " (Ctrl-C or Enter ends it)" : "");
}

void record_progress_clear(struct record_progress_line *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
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
    double broken = now->samples ? (double)now->broken * 100 / (double)now->samples : 0;
    fprintf(stderr, "%s%.1f s%s · %s samples · %s lost · %.1f %% broken stacks · %s%s",
            line->terminal ? "\r" : "", (double)now->elapsed_ns / 1e9, until, units_count(now->samples).text,
            units_count(now->lost).text, broken, units_size(now->file_bytes).text,
            line->terminal ? "\033[K" : "\n");
    line->shown = line->terminal;
    fflush(stderr);
}
