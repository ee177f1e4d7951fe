#include "cli/record_shortfall.h"

#include <inttypes.h>

#include "base/units.h"
#include "cli/message.h"
#include "collect/proc_file.h"

enum { RATE_LOW = 20 };

/* The kernel counts CPU time for each thread and CPU by itself: at a low rate a sample may be that of
 * seconds.
 */
static void tell_no_samples(const struct record_shortfall *s, pid_t stopped)
{
    if (stopped)
        message_note(
            "no samples: process %d is stopped, by a signal (kill -CONT %d) or a debugger; clrperf stack "
            "-p %d shows where",
            (int)stopped, (int)stopped, (int)stopped);
    else if (s->rate_hz < RATE_LOW)
        message_note("no samples: at %" PRIu64
                     " Hz one stands for %s of a thread's CPU time; a higher -F sees more",
                     s->rate_hz, units_duration(1000000000u / s->rate_hz).text);
    else if (s->stats->cpu_missed_ns == 0)
        message_note(
            "no samples: the target used the CPU too briefly for one, or not at all, while it was watched");
}

static void tell_end(const struct record_shortfall *s, pid_t stopped)
{
    if (s->stats->ended_by == RECORD_ENDED_TARGET_EXIT && !s->launched)
        message_note("%s ended after %s: there was nothing more to record",
                     s->targets == 1 ? "the process" : "all processes",
                     units_duration(s->stats->duration_ns).text);
    else if (stopped && s->stats->samples)
        message_note(
            "process %d is stopped, by a signal (kill -CONT %d) or a debugger: it has no samples since "
            "then",
            (int)stopped, (int)stopped);
}

void record_shortfall_tell(const struct record_shortfall *s)
{
    pid_t stopped = s->only_target && proc_file_is_stopped(s->only_target) ? s->only_target : 0;
    tell_end(s, stopped);
    if (s->rate_hz && s->stats->samples == 0)
        tell_no_samples(s, stopped);
}
