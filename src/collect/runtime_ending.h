/*
 * runtime_ending: what runtimes still have to say at a recording's end, and how long they are waited for.
 *
 * First what they have sent until they are told to end, then the lists of their methods that some are asked
 * for. Who is silent is not waited for much longer than it takes to see that it has nothing, or is stuck.
 */
#ifndef CLRPERF_COLLECT_RUNTIME_ENDING_H
#define CLRPERF_COLLECT_RUNTIME_ENDING_H

#include "collect/runtime_names.h"

struct runtime_ending {
    struct runtime_names *runtimes; /* borrowed */
    bool wants_events;              /* all of them: it takes longer than for names */
    bool (*meanwhile)(void *user);  /* a piece of other work; false: none is left. NULL: there is none */
    void *user;                     /* of that */
    bool idle;                      /* none is left */
};

/* A piece of the other work. */
void runtime_ending_work(struct runtime_ending *ending);
/* After runtime_names_spare(): until who was spared has said all, or nothing for so long that it has not. */
void runtime_ending_hear(struct runtime_ending *ending);
/* After runtime_names_stop(): until the lists are there; those that are not are given up. */
void runtime_ending_await_lists(struct runtime_ending *ending);

#endif
