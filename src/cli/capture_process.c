#include "cli/capture_process.h"

#include <string.h>
#include <sys/utsname.h>

#include "collect/proc_file.h"
#include "collect/target.h"
#include "trace/facts.h"

bool capture_process_lives(const struct trace_process *row)
{
    uint64_t start_ticks;
    return row->start_ticks && proc_file_start_ticks((pid_t)row->pid, &start_ticks, NULL) &&
           start_ticks == row->start_ticks;
}

/* Made on another machine, as far as it says: its pids mean nothing here. */
static bool is_foreign(const struct trace *t)
{
    struct utsname name;
    const char *host = trace_fact_value(t, FACT_HOST);
    return host && uname(&name) == 0 && strcmp(host, name.nodename) != 0;
}

bool capture_process_find(struct trace *t, uint32_t process)
{
    struct trace_process *row = &t->processes.rows[process];
    if (capture_process_lives(row))
        return true;
    uint64_t made_ns = UINT64_MAX;
    trace_fact_number(t, FACT_STARTED_REALTIME_NS, &made_ns);
    struct target target;
    if (row->start_ticks || is_foreign(t) || !target_open((pid_t)row->pid, &target, NULL))
        return false;
    bool fits = target.runtime == RUNTIME_CORECLR && target.started_ns < made_ns;
    if (fits) {
        row->start_ticks = target.start_ticks;
        row->runtime_version = trace_add_string(t, target.version.text);
    }
    target_done(&target);
    return fits;
}
