#include "import/thread_time.h"

#include "base/mem.h"
#include "base/own.h"

/* What is known of a process's rounds behind the sample that is looked at, from the last one backwards. */
struct later_rounds {
    uint64_t start_ns; /* of the next round; 0: there is none */
    uint64_t first_ns; /* the earliest sample of this round so far */
    uint32_t round;    /* this one */
};

struct later_sample {
    uint64_t time_ns;
    uint32_t round; /* 0: none */
};

/* Numbers each sample's round: a new one begins when a thread comes again. The caller frees. */
static uint32_t *rounds_of(const struct trace *t)
{
    const struct trace_samples *s = &t->samples;
    uint32_t *rounds = mem_alloc(s->count, sizeof *rounds);
    AUTO_FREE uint32_t *of_thread = mem_alloc(t->threads.count, sizeof *of_thread);
    AUTO_FREE uint32_t *of_process = mem_alloc(t->processes.count, sizeof *of_process);
    for (size_t i = 0; i < s->count; i++) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        uint32_t thread = s->thread[i], process = t->threads.rows[thread].process;
        if (of_process[process] == 0 || of_thread[thread] == of_process[process])
            of_process[process]++;
        rounds[i] = of_thread[thread] = of_process[process];
    }
    return rounds;
}

void thread_time_weigh(struct trace *t, uint64_t last_ns)
{
    struct trace_samples *s = &t->samples;
    AUTO_FREE uint32_t *rounds = rounds_of(t);
    AUTO_FREE struct later_rounds *later = mem_alloc(t->processes.count, sizeof *later);
    AUTO_FREE struct later_sample *next = mem_alloc(t->threads.count, sizeof *next);
    for (size_t i = s->count; i-- > 0;) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        uint64_t time_ns = s->time_ns[i], until_ns;
        struct later_rounds *after = &later[t->threads.rows[s->thread[i]].process];
        struct later_sample *same = &next[s->thread[i]];
        if (after->round != rounds[i]) {
            after->start_ns = after->first_ns;
            after->round = rounds[i];
        }
        after->first_ns = time_ns;
        until_ns = same->round == rounds[i] + 1 ? same->time_ns : after->start_ns;
        s->weight[i] = !after->start_ns ? last_ns : until_ns > time_ns ? until_ns - time_ns : 0;
        *same = (struct later_sample){ time_ns, rounds[i] };
    }
}
