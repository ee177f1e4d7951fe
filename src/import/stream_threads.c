#include "import/stream_threads.h"

uint32_t stream_threads_row(struct stream_threads *threads, struct trace_builder *b, uint32_t process,
                            uint64_t tid, uint64_t time_ns)
{
    uint32_t thread = stream_threads_known(threads, process, tid);
    if (thread || tid == 0 || tid > UINT32_MAX || !process)
        return thread;
    thread = trace_builder_thread(b, b->trace.processes.rows[process].pid, (uint32_t)tid, time_ns);
    threads->known[(tid ^ tid >> 8) & (STREAM_THREADS_KNOWN - 1)] =
        (struct stream_thread){ tid, process, thread };
    return thread;
}
