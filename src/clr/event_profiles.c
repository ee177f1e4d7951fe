#include "clr/event_profiles.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/provider_names.h"
#include "clr/runtime_events.h"

#define RUNTIME         RUNTIME_PROVIDER
#define SAMPLE_PROFILER RUNTIME_SAMPLER_PROVIDER

/* What every command on a database says of itself, and when it is done. */
#define SQL_CLIENT "SqlClientDiagnosticListener/System.Data.SqlClient."
#define ENTITIES   "Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command."
#define CONNECTION(of)                                                                                       \
    of "ServerVersion;Command.CommandTimeout;Command.CommandType;" of "ConnectionString;" of "Database;" of  \
       "DataSource;" of "PacketSize"
#define DATABASE                                                                                             \
    SQL_CLIENT                                                                                               \
    "WriteCommandBefore@Activity1Start:-Command;Command.CommandText;ConnectionId;Operation;" CONNECTION(     \
        "Command.Connection.") "\\r\\n" SQL_CLIENT "WriteCommandAfter@Activity1Stop:\\r\\n" ENTITIES         \
                               "CommandExecuting@Activity2Start:-Command.CommandText;Command;ConnectionId;"  \
                               "IsAsync;"                                                                    \
                               "Command.Connection.ClientConnectionId;" CONNECTION(                          \
                                   "Command.Connection.") "\\r\\n" ENTITIES "CommandExecuted@Activity2Stop:"

const struct event_profile event_profiles[] = {
    { "dotnet-common", "collections, loading, jitting, exceptions, threads: light", RUNTIME ":100003801D:4",
      IPC_RUNDOWN_DEFAULT },
    { "dotnet-sampled-thread-time", "where threads are, running or waiting, some 100 times a second",
      SAMPLE_PROFILER ":F00000000000:4", IPC_RUNDOWN_DEFAULT },
    { "gc-verbose", "collections, and every 100 KB allocated", RUNTIME ":8003:5", IPC_RUNDOWN_DEFAULT },
    { "gc-collect", "collections: hardly any cost", RUNTIME ":1:4," RUNTIME_PRIVATE_PROVIDER ":1:4", 1 },
    { "database", "commands of ADO.NET and Entity Framework",
      TASKS_PROVIDER ":80:4,Microsoft-Diagnostics-DiagnosticSource:3:5:FilterAndPayloadSpecs=\"" DATABASE
                     "\"",
      IPC_RUNDOWN_DEFAULT },
    { "cpu-sampling", "as dotnet-trace before version 9.0.6: where threads are, and what the runtime does",
      SAMPLE_PROFILER ":0:4," RUNTIME ":14C14FCCBD:4", IPC_RUNDOWN_DEFAULT },
    { "none", "nothing but what --providers says", "", 0 },
    { 0 },
};

static const struct event_profile *find_profile(const char *name)
{
    for (const struct event_profile *p = event_profiles; p->name; p++)
        if (strcasecmp(p->name, name) == 0)
            return p;
    return NULL;
}

static bool add_profile(struct event_providers *p, const struct event_profile *profile, struct error *err)
{
    struct event_providers its;
    event_providers_init(&its);
    bool ok = event_providers_parse(&its, profile->providers, err);
    for (size_t i = 0; ok && i < its.count; i++) {
        its.items[i].asked_by = "--profile";
        if (!event_providers_find(p, its.items[i].name))
            ok = event_providers_add(p, &its.items[i], err);
    }
    event_providers_done(&its);
    return ok;
}

bool event_profiles_add(struct event_providers *p, const char *list, uint64_t *rundown_keywords,
                        struct error *err)
{
    AUTO_FREE char *copy = mem_copy_string(list);
    char *rest = copy;
    for (char *name; (name = strsep(&rest, ","));) {
        name += strspn(name, " ");
        for (size_t size = strlen(name); size && name[size - 1] == ' '; size--)
            name[size - 1] = '\0';
        if (!*name)
            continue;
        const struct event_profile *profile = find_profile(name);
        if (!profile) {
            error_set(err, ERROR_USAGE, "there is no profile '%s'", name);
            return error_hint(err, "dotnet-common, dotnet-sampled-thread-time, gc-verbose, gc-collect, "
                                   "database, cpu-sampling or none");
        }
        if (!add_profile(p, profile, err))
            return false;
        *rundown_keywords |= profile->rundown_keywords;
    }
    return true;
}

/* "managedheadcollect" is how dotnet-trace spells it. */
static const struct {
    const char *name;
    uint64_t keyword;
} clr_keywords[] = {
    { "gc", 0x1 },
    { "gchandle", 0x2 },
    { "assemblyloader", 0x4 },
    { "fusion", 0x4 },
    { "loader", 0x8 },
    { "jit", 0x10 },
    { "ngen", 0x20 },
    { "startenumeration", 0x40 },
    { "endenumeration", 0x80 },
    { "security", 0x400 },
    { "appdomainresourcemanagement", 0x800 },
    { "jittracing", 0x1000 },
    { "interop", 0x2000 },
    { "contention", 0x4000 },
    { "exception", 0x8000 },
    { "threading", 0x10000 },
    { "jittedmethodiltonativemap", 0x20000 },
    { "overrideandsuppressngenevents", 0x40000 },
    { "type", 0x80000 },
    { "gcheapdump", 0x100000 },
    { "gcsampledobjectallocationhigh", 0x200000 },
    { "gcheapsurvivalandmovement", 0x400000 },
    { "gcheapcollect", 0x800000 },
    { "managedheadcollect", 0x800000 },
    { "managedheapcollect", 0x800000 },
    { "gcheapandtypenames", 0x1000000 },
    { "gcsampledobjectallocationlow", 0x2000000 },
    { "perftrack", 0x20000000 },
    { "stack", 0x40000000 },
    { "threadtransfer", 0x80000000 },
    { "debugger", 0x100000000 },
    { "monitoring", 0x200000000 },
    { "codesymbols", 0x400000000 },
    { "eventsource", 0x800000000 },
    { "compilation", 0x1000000000 },
    { "compilationdiagnostic", 0x2000000000 },
    { "methoddiagnostic", 0x4000000000 },
    { "typediagnostic", 0x8000000000 },
    { "jitinstrumentationdata", 0x10000000000 },
    { "profiler", 0x20000000000 },
    { "waithandle", 0x40000000000 },
    { "allocationsampling", RUNTIME_KEYWORD_ALLOCATION_SAMPLING },
};

static bool clr_keyword(const char *name, uint64_t *keywords)
{
    for (size_t i = 0; i < ARRAY_LEN(clr_keywords); i++)
        if (strcasecmp(clr_keywords[i].name, name) == 0) {
            *keywords |= clr_keywords[i].keyword;
            return true;
        }
    return false;
}

bool event_profiles_add_clr(struct event_providers *p, const char *names, const char *level,
                            bool *out_ignored, struct error *err)
{
    struct event_provider runtime = { .name = (char *)RUNTIME,
                                      .level = EVENT_LEVEL_INFORMATIONAL,
                                      .asked_by = "--clrevents" };
    AUTO_FREE char *copy = mem_copy_string(names);
    char *rest = copy;
    for (char *name; (name = strsep(&rest, "+"));)
        if (!clr_keyword(name, &runtime.keywords)) {
            error_set(err, ERROR_USAGE, "'%s' is no event of the runtime that --clrevents knows", name);
            return error_hint(err,
                              "names with '+' between: gc, jit, loader, exception, contention, threading, "
                              "...");
        }
    if (level && *level && !event_level_parse(level, &runtime.level)) {
        error_set(err, ERROR_USAGE, "'%s' is no level", level);
        return error_hint(err,
                          "0 to 5, or one of LogAlways, Critical, Error, Warning, Informational, Verbose");
    }
    *out_ignored = event_providers_find(p, RUNTIME);
    return *out_ignored || event_providers_add(p, &runtime, err);
}

const struct event_topic event_topics[] = {
    { "gc", "collections, what they found, who asked for them" },
    { "jit", "methods as they are compiled" },
    { "alloc", "every 100 KB allocated: type and stack" },
    { "alloc-sampled",
      "objects picked at random, of all sizes (.NET 10); switches `alloc` off for everybody" },
    { "exceptions", "exceptions as they are thrown" },
    { "locks", "locks that had to be waited for" },
    { "threadpool", "threads of the pool, and why their number changes" },
    { "http", "requests, served and sent" },
    { "tasks", "tasks: scheduled, started, awaited" },
    { 0 },
};

enum { TOPIC_IDS_MAX = 24 };

/* What a topic asks of one provider. The ids are those that answer its question; 0 ends them. */
static const struct topic_provider {
    const char *topic, *provider;
    uint64_t keywords;
    uint32_t level, light_level; /* 0: it needs its level */
    uint32_t ids[TOPIC_IDS_MAX];
} topic_providers[] = {
    { "gc", RUNTIME, 0x1, 4, 4, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 35, 39, 202, 204, 205, 208 } },
    { "jit", RUNTIME, 0x1000000010, 5, 0, { 141, 143, 145, 281, 282, 283, 284 } },
    { "alloc", RUNTIME, 0x1, 5, 0, { RUNTIME_ALLOCATION_TICK } },
    { "alloc-sampled", RUNTIME, RUNTIME_KEYWORD_ALLOCATION_SAMPLING, 4, 4, { 303 } },
    { "exceptions", RUNTIME, 0x8000, 2, 2, { 80 } },
    { "locks", RUNTIME, 0x4000, 4, 4, { 81, 90, 91 } },
    { "threadpool", RUNTIME, 0x10000, 4, 4, { 50, 51, 52, 53, 54, 55, 57, 59 } },
    { "http", HTTP_SENT_PROVIDER, 0, 4, 4, { 0 } },
    { "http", HTTP_SERVED_PROVIDER, 0, 4, 4, { 0 } },
    { "http", HTTP_KESTREL_PROVIDER, 0, 4, 4, { 0 } },
    /* activities, and (0x40000) which one a thread takes up */
    { "http", TASKS_PROVIDER, 0x40080, 4, 4, { 0 } },
    /* the end of a wait is verbose */
    { "tasks", TASKS_PROVIDER, 0x400c3, 5, 0, { 7, 8, 9, 10, 11, 25 } },
};

bool event_topics_add(struct event_providers *p, const char *name, size_t size)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(topic_providers); i++) {
        const struct topic_provider *t = &topic_providers[i];
        if (strlen(t->topic) != size || memcmp(t->topic, name, size) != 0)
            continue;
        struct event_provider one = { .name = (char *)t->provider,
                                      .keywords = t->keywords,
                                      .level = t->level,
                                      .light_keywords = t->light_level ? t->keywords : 0,
                                      .light_level = t->light_level,
                                      .event_ids = (uint32_t *)t->ids,
                                      .asked_by = "-e" };
        while (one.event_id_count < TOPIC_IDS_MAX && t->ids[one.event_id_count])
            one.event_id_count++;
        /* no arguments in topics, and few providers: there is nothing to fail */
        found = event_providers_add(p, &one, NULL) || found;
    }
    return found;
}
