/*
 * runtime_session: what one .NET runtime tells while a recording runs.
 *
 * Asks the runtime over its diagnostics socket for an event stream: every method it jits or frees from
 * then on, every module it loads, at the end a list of the methods that exist; and events that are wanted.
 * Costs the target a bounded buffer; a full one loses events, never blocks it. Nothing of this waits for the
 * target without a deadline.
 *
 * Method events come at the most talkative level only. Since .NET 10 single events can be chosen, and one
 * stream is enough; earlier runtimes would tell of every 100 KB allocated as well, so there what is less
 * talkative comes in a second stream, at a lower level. What the user asked for in so many words comes in a
 * stream of its own, asked for exactly so.
 *
 *     start -> poll, drain, ... -> stop -> poll, drain, ... until ended -> close
 */
#ifndef CLRPERF_COLLECT_RUNTIME_SESSION_H
#define CLRPERF_COLLECT_RUNTIME_SESSION_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/error.h"
#include "clr/event_providers.h"
#include "clr/stopping_event.h"
#include "read/nettrace.h"
#include "trace/trace.h"

enum runtime_method_change {
    RUNTIME_METHOD_LOADED,        /* lives from time_ns on */
    RUNTIME_METHOD_UNLOADED,      /* lived until time_ns */
    RUNTIME_METHOD_EXISTS_AT_END, /* lives at time_ns; since when is told by a LOADED, or it is older than the
                                     session */
};

/*
 * One region of machine code of one method. Records come in stream order: in time order per thread of
 * the target only, so sort by time_ns before asking what lived at an address. Where events were lost
 * (runtime_session_counts()) an UNLOADED may be missing: a LOADED at the same address ends what was there.
 */
struct runtime_method {
    enum runtime_method_change change;
    uint64_t time_ns; /* CLOCK_MONOTONIC of this machine */
    uint64_t addr;    /* virtual, in the target */
    uint64_t size_bytes;
    uint64_t method_id, module_id; /* unique only while what they name lives */
    uint64_t rejit_id;             /* 0: the code of the method's own IL */
    uint32_t token;                /* metadata token, of no use when dynamic */
    /* "Ns.Type`1+Nested[Args]::Method(args)" in UTF-8, see clr/code_name.h; valid during the call. */
    struct span name;
    struct span
        type_params; /* what an IL stub serves, as clr/code_name.h has it, where memory tells; else empty */
    uint8_t tier;    /* enum code_tier */
    bool dynamic;    /* without metadata: DynamicMethod, IL stubs */
    bool jitted;     /* false: a helper written in machine code */
    bool generic;
    bool cold; /* the lesser part of a method split in two */
};

struct runtime_module {
    enum runtime_method_change change;
    uint64_t time_ns;
    uint64_t module_id;
    struct span
        path; /* of the IL, UTF-8, in the target's root; a bare name when in no file. Valid during the call */
};

/* An event that is kept as it is. Spans are valid during the call. */
struct runtime_event {
    uint64_t time_ns;   /* CLOCK_MONOTONIC of this machine */
    uint64_t thread_id; /* in the target's pid namespace */
    const struct nettrace_type *type;
    uint32_t *type_memo; /* the receiver's, of this type in this session; 0 at first */
    uint32_t pointer_size;
    struct span stack; /* addresses of pointer_size bytes, leaf first; empty: none */
    struct span payload;
    struct span activity, related_activity; /* 16 bytes, or empty */
};

/* Callbacks of a drain; each may be NULL. */
struct runtime_sink {
    void *user;
    void (*method)(void *user, const struct runtime_method *method);
    void (*module)(void *user, const struct runtime_module *module);
    void (*event)(void *user, const struct runtime_event *event);
};

struct runtime_session_options {
    uint32_t buffer_mb;          /* of the target's memory; 0: 16 */
    unsigned connect_timeout_ms; /* 0: RUNTIME_SOCKET_CONNECT_MS */
    unsigned reply_timeout_ms;   /* of each question; 0: RUNTIME_SOCKET_REPLY_MS */
    unsigned first_timeout_ms;   /* of who it is, which takes a runtime no work; 0: as of the others */
    const atomic_bool *given_up; /* set by another thread when it is not waited for any more; or NULL */
    bool precompiled;            /* tell of ReadyToRun methods too; their names are in their files */
    bool collections;            /* tell when it collects, too */
    bool no_list;                /* no list of methods at the end, which costs time */
    /* both borrowed during the start, or NULL */
    const struct event_providers *topics; /* what else to tell: only the events they choose are told */
    const struct event_request *asked;    /* another stream, as it is; all its events are told */
    struct stopping_event *stopping;      /* looked for among the events that are told; or NULL */
};

enum { RUNTIME_SESSION_STREAMS = 3 };

struct runtime_session;

/*
 * Opens a session with the runtime of process `pid`. `start_ticks`: field 22 of its /proc/PID/stat, or 0. A
 * runtime that is suspended at its start accepts, and streams once resumed; we never resume it. Fails with
 * ERROR_TARGET, ERROR_PERMISSION or, where there is nobody to listen to, ERROR_UNSUPPORTED. On success the
 * caller ends with runtime_session_close().
 */
bool runtime_session_start(pid_t pid, uint64_t start_ticks, const struct runtime_session_options *options,
                           struct runtime_session **out, struct error *err);
/* Sets what becomes readable when there is something to drain. Returns how many; 0 once ended. */
size_t runtime_session_polls(const struct runtime_session *s, struct pollfd out[RUNTIME_SESSION_STREAMS]);
/*
 * Takes what has come, without waiting, at most some MiB a call. Fails when the stream is malformed or
 * the connection breaks: then the session has ended, and what was told before stays true.
 */
bool runtime_session_drain(struct runtime_session *s, const struct runtime_sink *sink, struct error *err);
/*
 * Asks the runtime to list its methods, unless that was not wanted, and to end. Does not wait: keep draining
 * until runtime_session_ended() or until your patience ends (10^5 methods take seconds). Fails when the
 * runtime cannot be reached any more; what was already sent can still be drained.
 */
bool runtime_session_stop(struct runtime_session *s, struct error *err);
/* Nothing more will come. */
bool runtime_session_ended(const struct runtime_session *s);
/* The list of existing methods is to come at the end. */
bool runtime_session_lists(const struct runtime_session *s);
/* The providers whose events it tells, as they were asked for. Owned by `s`. */
const struct event_providers *runtime_session_told(const struct runtime_session *s);
/* The stopping event was among those that were told. */
bool runtime_session_stop_seen(const struct runtime_session *s);
/* The list of existing methods arrived to its end. */
bool runtime_session_complete(const struct runtime_session *s);
/* Drops the connection, whereupon the runtime ends its side by itself. NULL is fine. */
void runtime_session_close(struct runtime_session *s);

/* From the runtime itself: "10.0.12", or "" when it is older than .NET 6. Owned by `s`. */
const char *runtime_session_version(const struct runtime_session *s);
const char *runtime_session_entry_assembly(const struct runtime_session *s);
const char *runtime_session_command_line(const struct runtime_session *s);

struct runtime_session_counts {
    uint64_t bytes, events;
    uint64_t lost;     /* events the runtime dropped, at least */
    uint64_t told;     /* events that were kept as they are */
    uint64_t skipped;  /* method events that were malformed or without a name */
    uint64_t replaced; /* characters that were none: shown as U+FFFD */
};
struct runtime_session_counts runtime_session_counts(const struct runtime_session *s);

#endif
