/*
 * live_target: a running process under the eye of `clrperf stack`.
 *
 * What stacks nearly always lead through is read on other threads, while the runtime's code is found.
 */
#ifndef CLRPERF_CLI_LIVE_TARGET_H
#define CLRPERF_CLI_LIVE_TARGET_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/live_memory.h"
#include "collect/process_stacks.h"
#include "collect/target_files.h"
#include "collect/target_select.h"
#include "collect/thread_stopper.h"
#include "symbolize/images_ahead.h"

/* What a look takes, about, and what of it each look takes. */
enum { LIVE_TARGET_MEMORY_BYTES = 8 << 20, LIVE_TARGET_READY_BYTES = 6 << 20 };

struct live_target {
    struct target_list list; /* the one process */
    struct target_files files;
    uint32_t process; /* its row, in every look's trace */
    struct live_memory *memory;
    struct thread_stopper *stopper;
    struct process_stacks stacks; /* of the last look */
    struct file_finder finder;
    struct images_ahead ahead; /* the reader's, as are the tables of images, until it is joined */
    pthread_t reader;
    bool looked, reading;
};

/* Fails as target_select(), live_memory_attach() and target_finish(). Stays where it is until it is closed,
 * also on failure.
 */
bool live_target_open(struct live_target *live, const struct target_query *query,
                      const struct symbol_cache *cache, const struct kept_folder *kept, struct error *err);
void live_target_close(struct live_target *live);
/* Takes the stacks of all threads, or of one; fails as taken_threads_take(). Not unwound yet. */
bool live_target_take(struct live_target *live, pid_t only_tid, struct error *err);
/* Unwinds what was taken, as process_stacks_unwind(). */
void live_target_unwind(struct live_target *live, struct trace_builder *b);
/* No more stacks are taken. */
void live_target_finish_taking(struct live_target *live);

#endif
