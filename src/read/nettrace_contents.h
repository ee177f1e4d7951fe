/*
 * nettrace_contents: what the blocks of an event stream say, each in the light of those before it.
 */
#ifndef CLRPERF_READ_NETTRACE_CONTENTS_H
#define CLRPERF_READ_NETTRACE_CONTENTS_H

#include "read/nettrace.h"
#include "read/nettrace_labels.h"
#include "read/nettrace_stacks.h"
#include "read/nettrace_tally.h"
#include "read/nettrace_thread_list.h"
#include "read/nettrace_threads.h"
#include "read/nettrace_types.h"

enum nettrace_content {
    NETTRACE_OTHER,
    NETTRACE_EVENTS,
    NETTRACE_METADATA,
    NETTRACE_STACKS,
    NETTRACE_SEQUENCE_POINT,
    NETTRACE_THREADS, /* from here on nettrace 6 only */
    NETTRACE_ENDED_THREADS,
    NETTRACE_LABELS,
};

struct nettrace_contents {
    struct nettrace_sink sink;
    bool has_info;
    struct nettrace_info info;
    struct nettrace_types types;
    struct nettrace_stacks stacks;
    struct nettrace_threads threads;
    struct nettrace_thread_list thread_list;
    struct nettrace_labels labels;
    struct nettrace_counts counts;
    struct nettrace_tally tally;
    bool refused; /* by a callback: that is no damage */
};

void nettrace_contents_init(struct nettrace_contents *r, const struct nettrace_sink *sink);
void nettrace_contents_done(struct nettrace_contents *r);
/* The first block of all. */
bool nettrace_contents_info(struct nettrace_contents *r, struct span content, uint32_t version,
                            struct error *err);
/* Any other. Fails when it is malformed or a callback does; events before that place were delivered. */
bool nettrace_contents_read(struct nettrace_contents *r, enum nettrace_content kind, struct span content,
                            struct error *err);

/* Whose an event is. */
static inline uint64_t nettrace_contents_process(struct nettrace_contents *r, uint64_t thread_id)
{
    if (r->info.version < 6)
        return r->info.process_id;
    const struct nettrace_listed_thread *thread = nettrace_thread_list_find(&r->thread_list, thread_id);
    return thread && thread->process_id ? thread->process_id : r->info.process_id;
}

#endif
