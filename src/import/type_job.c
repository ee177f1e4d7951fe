#include "import/type_job.h"

#include <string.h>

#include "clr/provider_names.h"

bool type_job_is_for_stacks(enum type_job job)
{
    return job == JOB_SAMPLE || job == JOB_METHOD || job == JOB_MODULE || job == JOB_UNIVERSAL;
}

enum type_job type_job_of(const struct type_job_facts *facts)
{
    const char *provider = facts->provider;
    if (facts->universal)
        return JOB_UNIVERSAL;
    if (strcmp(provider, RUNTIME_SAMPLER_PROVIDER) == 0 && facts->event_id == 0)
        return facts->kept ? JOB_KEPT_SAMPLE : JOB_SAMPLE;
    if (strcmp(provider, RUNTIME_STREAM_PROVIDER) == 0)
        return facts->event_id == 1 ? JOB_PROCESS_INFO : JOB_NONE;
    if ((strcmp(provider, RUNTIME_PROVIDER) == 0 || facts->rundown) && facts->event_id == 187)
        return JOB_RUNTIME_INFO;
    switch (facts->kind) {
    case RUNTIME_EVENT_METHOD_LOAD:
    case RUNTIME_EVENT_METHOD_UNLOAD:
    case RUNTIME_EVENT_METHOD_EXISTS:
        return JOB_METHOD;
    case RUNTIME_EVENT_MODULE_LOAD:
    case RUNTIME_EVENT_MODULE_UNLOAD:
    case RUNTIME_EVENT_MODULE_EXISTS:
        return JOB_MODULE;
    default:
        return JOB_NONE;
    }
}
