/*
 * type_job: what an import does with the events of a type, besides keeping them.
 */
#ifndef CLRPERF_IMPORT_TYPE_JOB_H
#define CLRPERF_IMPORT_TYPE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/runtime_events.h"

enum type_job {
    JOB_NONE,
    JOB_SAMPLE,
    JOB_METHOD,
    JOB_MODULE,
    JOB_PROCESS_INFO,
    JOB_RUNTIME_INFO,
    JOB_UNIVERSAL,   /* of a recorder of the whole machine */
    JOB_KEPT_SAMPLE, /* of clrperf's own, which is no event of the capture */
};

struct type_job_facts {
    const char *provider;
    uint32_t event_id;
    enum runtime_event_kind kind;
    bool universal; /* an event of a recorder of the whole machine */
    bool rundown;   /* of the provider that lists what there was */
    bool kept;      /* of a version that only clrperf writes, in a file of its own */
};

enum type_job type_job_of(const struct type_job_facts *facts);
/* Samples and names of methods are for who looks at stacks. */
bool type_job_is_for_stacks(enum type_job job);

#endif
