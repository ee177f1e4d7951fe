/*
 * provider_names: providers of events, as runtimes and libraries spell them.
 */
#ifndef CLRPERF_CLR_PROVIDER_NAMES_H
#define CLRPERF_CLR_PROVIDER_NAMES_H

#define RUNTIME_PROVIDER         "Microsoft-Windows-DotNETRuntime"
#define RUNTIME_RUNDOWN_PROVIDER "Microsoft-Windows-DotNETRuntimeRundown"
#define RUNTIME_PRIVATE_PROVIDER "Microsoft-Windows-DotNETRuntimePrivate"
#define RUNTIME_STRESS_PROVIDER  "Microsoft-Windows-DotNETRuntimeStress"
/* Event 0: where a thread is. */
#define RUNTIME_SAMPLER_PROVIDER "Microsoft-DotNETCore-SampleProfiler"
/* Event 1: whose stream it is, at its end. */
#define RUNTIME_STREAM_PROVIDER "Microsoft-DotNETCore-EventPipe"

#define TASKS_PROVIDER "System.Threading.Tasks.TplEventSource"

enum { TASKS_EVENT_SET_ACTIVITY = 25 }; /* a thread takes up another activity */

/* What DiagnosticSources and ActivitySources tell, under names of their own. */
#define DIAGNOSTIC_SOURCE_PROVIDER "Microsoft-Diagnostics-DiagnosticSource"

/* HTTP requests: served, also as the server itself sees them, and sent. */
#define HTTP_SERVED_PROVIDER  "Microsoft.AspNetCore.Hosting"
#define HTTP_KESTREL_PROVIDER "Microsoft-AspNetCore-Server-Kestrel"
#define HTTP_SENT_PROVIDER    "System.Net.Http"

/* Ids of their events. */
enum {
    HTTP_SERVED_EVENT_START = 3,
    HTTP_SERVED_EVENT_STOP = 4,
    HTTP_SERVED_EVENT_FAILED = 5,
    HTTP_KESTREL_EVENT_START = 3,
    HTTP_KESTREL_EVENT_STOP = 4,
    HTTP_SENT_EVENT_START = 1,
    HTTP_SENT_EVENT_STOP = 2,
    HTTP_SENT_EVENT_FAILED = 3,
};

#endif
