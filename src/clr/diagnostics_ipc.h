/*
 * diagnostics_ipc: the bytes of requests to a .NET runtime's diagnostics server and of its replies.
 *
 * Specified in dotnet/diagnostics, documentation/design-docs/ipc-protocol.md. Runtimes 8 and 9 die of
 * some malformed requests (format 2, a buffer of 0 MB, more than 1000 providers), so requests are made
 * here only, and what could harm a target cannot be made at all.
 */
#ifndef CLRPERF_CLR_DIAGNOSTICS_IPC_H
#define CLRPERF_CLR_DIAGNOSTICS_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

enum {
    IPC_HEADER_BYTES = 20,
    IPC_MESSAGE_MAX = 65535,
    IPC_PROVIDERS_MAX = 1000,
    IPC_BUFFER_MB_MAX = 16384,
};

/* What older ways to ask for a rundown mean. */
#define IPC_RUNDOWN_DEFAULT UINT64_C(0x80020139)

/* Command set above command id. */
enum ipc_command {
    IPC_STOP_TRACING = 0x0201,
    IPC_COLLECT_TRACING = 0x0202,  /* 3.0: rundown always */
    IPC_COLLECT_TRACING2 = 0x0203, /* 3.0: rundown or not */
    IPC_COLLECT_TRACING3 = 0x0204, /* 9: stacks or not */
    IPC_COLLECT_TRACING4 = 0x0205, /* 9: which rundown */
    IPC_COLLECT_TRACING5 = 0x0206, /* 10: which event ids */
    IPC_PROCESS_INFO = 0x0400,     /* 5 */
    IPC_RESUME_RUNTIME = 0x0401,   /* 5 */
    IPC_SET_ENVIRONMENT = 0x0403,  /* 6 */
    IPC_PROCESS_INFO2 = 0x0404,    /* 6 */
    IPC_PROCESS_INFO3 = 0x0408,    /* 8 */
};

/* HRESULTs the server answers with. */
enum ipc_result {
    IPC_OK = 0,
    IPC_BAD_ENCODING = (int)0x80131384,
    IPC_UNKNOWN_COMMAND = (int)0x80131385, /* an older runtime: ask in an older way */
    IPC_UNKNOWN_MAGIC = (int)0x80131386,
    IPC_NOT_SUPPORTED = (int)0x80131515,
    IPC_FAILED = (int)0x80004005, /* CollectTracing: all 64 session slots are taken */
    IPC_NOT_YET_AVAILABLE = (int)0x8013135b,
    IPC_UNINITIALIZED = (int)0x80131371,
    IPC_INVALID_ARGUMENT = (int)0x80070057,
};

enum ipc_filter { IPC_FILTER_NONE, IPC_FILTER_ALLOW, IPC_FILTER_DENY };

struct ipc_provider {
    const char *name; /* UTF-8, not empty */
    uint64_t keywords;
    uint32_t level;   /* 0 always .. 5 verbose */
    const char *args; /* "key=value;...", or NULL */
    /* A managed EventSource: it gets the session-mask keywords, without which many of its events never come.
     */
    bool is_event_source;
    enum ipc_filter filter; /* needs IPC_COLLECT_TRACING5; not for EventCounters, whose ids are not fixed */
    const uint32_t *event_ids;
    size_t event_id_count;
};

struct ipc_session_request {
    uint32_t buffer_mb; /* 1 to IPC_BUFFER_MB_MAX, of the target's memory */
    bool stacks;
    /* Rundown events at the end: 0 none. A command that cannot choose gives all of the default, or none. */
    uint64_t rundown_keywords;
    bool rundown_chosen_only;             /* none where the choice cannot be said */
    const struct ipc_provider *providers; /* 1 and more; several of one name are merged */
    size_t provider_count;
};

/*
 * Appends a request to collect events as `command`, one of IPC_COLLECT_TRACING to IPC_COLLECT_TRACING5.
 * Always asks for nettrace (format 1). Fails with ERROR_USAGE when `request` is out of bounds, names no
 * provider, sets filters on two entries of one provider or needs more than 64 KiB. What an older command
 * cannot say is left out: filters (more comes), stacks (they come), the choice of rundown.
 */
bool ipc_append_collect(struct buffer *out, enum ipc_command command,
                        const struct ipc_session_request *request, struct error *err);
/* The newest command `request` needs; step down from it with ipc_older_collect(). */
enum ipc_command ipc_best_collect(const struct ipc_session_request *request);
/* The next older way to ask for less of `request`, or for more than it wants; 0 when there is none. */
enum ipc_command ipc_older_collect(enum ipc_command command, const struct ipc_session_request *request);
void ipc_append_stop(struct buffer *out, uint64_t session_id);
/* Sets a variable of the target's environment, for processes it starts from now on. Neither is NULL. */
void ipc_append_set_environment(struct buffer *out, const char *name, const char *value);
/* A request without content: IPC_PROCESS_INFO*, IPC_RESUME_RUNTIME. */
void ipc_append_plain(struct buffer *out, enum ipc_command command);

/*
 * Reads a reply's first IPC_HEADER_BYTES: how many bytes of content follow and whether it reports an
 * error. Fails with ERROR_INPUT when it is no reply.
 */
bool ipc_read_header(struct span header, uint32_t *out_content_bytes, bool *out_is_error, struct error *err);
/* The HRESULT of an error reply's content; IPC_FAILED when it holds none. */
uint32_t ipc_read_result(struct span content);
/* The content of the reply to a request to collect or stop. */
bool ipc_read_session_id(struct span content, uint64_t *out, struct error *err);
/* "unknown command", "the runtime is still starting", ...; never NULL. */
const char *ipc_result_name(uint32_t result);

/* Texts are offsets into `text`, which has a NUL behind each; see ipc_process_text(). */
struct ipc_process_info {
    uint64_t pid; /* in the target's pid namespace */
    uint8_t cookie[16];
    struct buffer text;
    size_t command_line, os, arch;
    size_t entry_assembly;  /* ProcessInfo2 and 3 */
    size_t runtime_version; /* "8.0.31+hash" */
    size_t runtime_id;      /* "linux-x64"; ProcessInfo3 */
};

/* Reads the content of a reply to `command`. On success the caller ends with ipc_process_info_done(). */
bool ipc_read_process_info(struct span content, enum ipc_command command, struct ipc_process_info *out,
                           struct error *err);
void ipc_process_info_done(struct ipc_process_info *info);
/* The text at one of the offsets; "" when the reply did not have it. Owned by `info`. */
const char *ipc_process_text(const struct ipc_process_info *info, size_t off);

#endif
