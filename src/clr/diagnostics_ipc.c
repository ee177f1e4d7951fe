#include "clr/diagnostics_ipc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf16.h"

enum { FORMAT_NETTRACE = 1, LEVEL_MAX = 5, STREAMING_SESSION = 0, TEXT_MAX = 1 << 20 };

/* Bits 44 to 47: EventSource checks some events a second time against the session mask kept there. */
#define EVENT_SOURCE_KEYWORDS UINT64_C(0xF00000000000)

static const uint8_t magic[14] = "DOTNET_IPC_V1";

static void append_header(struct buffer *out, enum ipc_command command, uint16_t size)
{
    buffer_append(out, magic, sizeof magic);
    buffer_u16le(out, size);
    buffer_u8(out, (uint8_t)(command >> 8));
    buffer_u8(out, (uint8_t)command);
    buffer_u16le(out, 0);
}

static void append_string(struct buffer *out, const char *text)
{
    size_t start = out->size;
    buffer_u32le(out, 0);
    size_t units = utf16_append(out, text ? text : "") + 1; /* an empty one, too, as dotnet-trace has it */
    buffer_u16le(out, 0);
    if (out->failed)
        return;
    for (unsigned i = 0; i < 4; i++)
        out->data[start + i] = (uint8_t)(units >> 8 * i);
}

/* Runtimes use only the first of two entries of one provider, so they become one. */
static bool merge(struct ipc_provider *into, const struct ipc_provider *more, struct error *err)
{
    if (into->filter != IPC_FILTER_NONE || more->filter != IPC_FILTER_NONE)
        return error_set(err, ERROR_USAGE, "provider '%s' is asked for twice, once with a choice of events",
                         into->name);
    bool has_args = more->args && *more->args;
    if (has_args && into->args && *into->args && strcmp(into->args, more->args) != 0)
        return error_set(err, ERROR_USAGE, "provider '%s' is asked for twice, with different arguments",
                         into->name);
    into->keywords |= more->keywords;
    into->is_event_source |= more->is_event_source;
    if (more->level > into->level)
        into->level = more->level;
    if (has_args)
        into->args = more->args;
    return true;
}

static bool merge_providers(const struct ipc_session_request *request, struct ipc_provider *out,
                            size_t *out_count, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < request->provider_count; i++) {
        const struct ipc_provider *p = &request->providers[i];
        if (!p->name || !*p->name)
            return error_set(err, ERROR_USAGE, "a provider without a name");
        if (p->level > LEVEL_MAX)
            return error_set(err, ERROR_USAGE, "level %" PRIu32 " of provider '%s' (0 to %d)", p->level,
                             p->name, LEVEL_MAX);
        size_t same = 0;
        while (same < count && strcmp(out[same].name, p->name) != 0)
            same++;
        if (same == count)
            out[count++] = *p;
        else if (!merge(&out[same], p, err))
            return false;
    }
    *out_count = count;
    return true;
}

/* A repeated id in the list makes the provider deliver nothing at all. */
static void append_filter(struct buffer *out, const struct ipc_provider *p)
{
    size_t start = out->size + 1;
    uint32_t count = 0;
    buffer_u8(out, p->filter == IPC_FILTER_ALLOW);
    buffer_u32le(out, 0);
    for (size_t i = 0; p->filter != IPC_FILTER_NONE && i < p->event_id_count; i++) {
        size_t first = 0;
        while (p->event_ids[first] != p->event_ids[i])
            first++;
        if (first != i)
            continue;
        buffer_u32le(out, p->event_ids[i]);
        count++;
    }
    for (unsigned i = 0; i < 4 && !out->failed; i++)
        out->data[start + i] = (uint8_t)(count >> 8 * i);
}

static bool chooses_rundown(const struct ipc_session_request *request)
{
    return request->rundown_keywords && request->rundown_keywords != IPC_RUNDOWN_DEFAULT;
}

static bool wants_any_rundown(const struct ipc_session_request *request)
{
    return request->rundown_keywords && !(request->rundown_chosen_only && chooses_rundown(request));
}

static void append_body(struct buffer *out, enum ipc_command command,
                        const struct ipc_session_request *request, const struct ipc_provider *providers,
                        size_t count)
{
    if (command == IPC_COLLECT_TRACING5)
        buffer_u32le(out, STREAMING_SESSION);
    buffer_u32le(out, request->buffer_mb);
    buffer_u32le(out, FORMAT_NETTRACE);
    if (command >= IPC_COLLECT_TRACING4)
        buffer_u64le(out, request->rundown_keywords);
    else if (command >= IPC_COLLECT_TRACING2)
        buffer_u8(out, wants_any_rundown(request));
    if (command >= IPC_COLLECT_TRACING3)
        buffer_u8(out, request->stacks);
    buffer_u32le(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        const struct ipc_provider *p = &providers[i];
        buffer_u64le(out, p->keywords | (p->is_event_source ? EVENT_SOURCE_KEYWORDS : 0));
        buffer_u32le(out, p->level);
        append_string(out, p->name);
        append_string(out, p->args);
        if (command == IPC_COLLECT_TRACING5)
            append_filter(out, p);
    }
}

bool ipc_append_collect(struct buffer *out, enum ipc_command command,
                        const struct ipc_session_request *request, struct error *err)
{
    if (command < IPC_COLLECT_TRACING || command > IPC_COLLECT_TRACING5)
        return error_set(err, ERROR_USAGE, "no command to collect events");
    if (request->buffer_mb < 1 || request->buffer_mb > IPC_BUFFER_MB_MAX)
        return error_set(err, ERROR_USAGE, "an event buffer of %" PRIu32 " MB (1 to %d)", request->buffer_mb,
                         IPC_BUFFER_MB_MAX);
    if (request->provider_count < 1 || request->provider_count > IPC_PROVIDERS_MAX)
        return error_set(err, ERROR_USAGE, "%zu event providers (1 to %d)", request->provider_count,
                         IPC_PROVIDERS_MAX);
    static const struct ipc_provider none;
    AUTO_FREE struct ipc_provider *providers = calloc(request->provider_count, sizeof none);
    size_t count;
    if (!providers)
        return error_set(err, ERROR_LIMIT, "no memory for %zu providers", request->provider_count);
    if (!merge_providers(request, providers, &count, err))
        return false;
    struct buffer body;
    buffer_init(&body, IPC_MESSAGE_MAX - IPC_HEADER_BYTES);
    append_body(&body, command, request, providers, count);
    bool fits = !body.failed;
    if (fits) {
        append_header(out, command, (uint16_t)(IPC_HEADER_BYTES + body.size));
        buffer_append(out, body.data, body.size);
    }
    buffer_done(&body);
    return fits || error_set(err, ERROR_USAGE, "the event providers do not fit into a request of 64 KiB");
}

enum ipc_command ipc_best_collect(const struct ipc_session_request *request)
{
    for (size_t i = 0; i < request->provider_count; i++)
        if (request->providers[i].filter != IPC_FILTER_NONE)
            return IPC_COLLECT_TRACING5;
    if (chooses_rundown(request))
        return IPC_COLLECT_TRACING4;
    return request->stacks ? IPC_COLLECT_TRACING2 : IPC_COLLECT_TRACING3;
}

enum ipc_command ipc_older_collect(enum ipc_command command, const struct ipc_session_request *request)
{
    if (command <= IPC_COLLECT_TRACING || command > IPC_COLLECT_TRACING5)
        return 0;
    command--;
    if (command == IPC_COLLECT_TRACING4 && !chooses_rundown(request))
        command--;
    if (command == IPC_COLLECT_TRACING3 && request->stacks)
        command--;
    /* the oldest lists everything at the end, wanted or not */
    return command == IPC_COLLECT_TRACING && !wants_any_rundown(request) ? 0 : command;
}

void ipc_append_stop(struct buffer *out, uint64_t session_id)
{
    append_header(out, IPC_STOP_TRACING, IPC_HEADER_BYTES + 8);
    buffer_u64le(out, session_id);
}

void ipc_append_set_environment(struct buffer *out, const char *name, const char *value)
{
    struct buffer body;
    buffer_init(&body, IPC_MESSAGE_MAX - IPC_HEADER_BYTES);
    append_string(&body, name);
    append_string(&body, value);
    if (body.failed)
        out->failed = true;
    append_header(out, IPC_SET_ENVIRONMENT, (uint16_t)(IPC_HEADER_BYTES + body.size));
    buffer_append(out, body.data, body.size);
    buffer_done(&body);
}

void ipc_append_plain(struct buffer *out, enum ipc_command command)
{
    append_header(out, command, IPC_HEADER_BYTES);
}

bool ipc_read_header(struct span header, uint32_t *out_content_bytes, bool *out_is_error, struct error *err)
{
    struct cursor c = cursor_over(header);
    struct span start = cursor_bytes(&c, sizeof magic);
    uint16_t size = cursor_u16le(&c);
    uint8_t set = cursor_u8(&c);
    uint8_t id = cursor_u8(&c);
    cursor_u16le(&c);
    if (!cursor_finish(&c, err, "the reply's header"))
        return false;
    if (!span_equals(start, span_of(magic, sizeof magic)))
        return error_set(err, ERROR_INPUT, "the reply is not one of a diagnostics server");
    if (size < IPC_HEADER_BYTES)
        return error_set(err, ERROR_INPUT, "the reply claims a size of %u bytes", size);
    if (set != 0xff || (id != 0 && id != 0xff))
        return error_set(err, ERROR_INPUT, "the reply has the unknown kind %#x.%#x", set, id);
    *out_content_bytes = (uint32_t)size - IPC_HEADER_BYTES;
    *out_is_error = id == 0xff;
    return true;
}

uint32_t ipc_read_result(struct span content)
{
    return content.size >= 4 ? load_u32le(content.data) : (uint32_t)IPC_FAILED;
}

bool ipc_read_session_id(struct span content, uint64_t *out, struct error *err)
{
    struct cursor c = cursor_over(content);
    uint64_t id = cursor_u64le(&c);
    if (!cursor_finish(&c, err, "the reply with the session's id"))
        return false;
    *out = id;
    return true;
}

const char *ipc_result_name(uint32_t result)
{
    static const struct {
        uint32_t result;
        const char *name;
    } names[] = {
        { (uint32_t)IPC_BAD_ENCODING, "malformed request" },
        { (uint32_t)IPC_UNKNOWN_COMMAND, "unknown command" },
        { (uint32_t)IPC_UNKNOWN_MAGIC, "unknown protocol" },
        { (uint32_t)IPC_NOT_SUPPORTED, "not supported by this runtime" },
        { (uint32_t)IPC_FAILED, "refused: no free session slot, or invalid arguments" },
        { (uint32_t)IPC_NOT_YET_AVAILABLE, "the runtime is still starting" },
        { (uint32_t)IPC_UNINITIALIZED, "the runtime is not initialized" },
        { (uint32_t)IPC_INVALID_ARGUMENT, "invalid argument" },
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].result == result)
            return names[i].name;
    return "error";
}

/* u32 count of UTF-16 units with the terminator, then the units. Yields the text's offset in `text`. */
static size_t read_string(struct cursor *c, struct buffer *text)
{
    uint32_t units = cursor_u32le(c);
    struct span utf16 = cursor_bytes(c, (uint64_t)units * 2);
    if (utf16.size && load_u16le(utf16.data + utf16.size - 2) == 0)
        utf16.size -= 2;
    size_t off = text->size;
    utf16_append_utf8(text, utf16);
    buffer_u8(text, 0);
    return off;
}

bool ipc_read_process_info(struct span content, enum ipc_command command, struct ipc_process_info *out,
                           struct error *err)
{
    struct cursor c = cursor_over(content);
    struct ipc_process_info info = { 0 };
    buffer_init(&info.text, TEXT_MAX);
    buffer_u8(&info.text, 0); /* offset 0 is "" */
    if (command == IPC_PROCESS_INFO3)
        cursor_u32le(&c); /* its version: later ones only append */
    info.pid = cursor_u64le(&c);
    struct span cookie = cursor_bytes(&c, sizeof info.cookie);
    if (cookie.size)
        memcpy(info.cookie, cookie.data, cookie.size);
    info.command_line = read_string(&c, &info.text);
    info.os = read_string(&c, &info.text);
    info.arch = read_string(&c, &info.text);
    if (command != IPC_PROCESS_INFO) {
        info.entry_assembly = read_string(&c, &info.text);
        info.runtime_version = read_string(&c, &info.text);
    }
    if (command == IPC_PROCESS_INFO3)
        info.runtime_id = read_string(&c, &info.text);
    if (!cursor_finish(&c, err, "the reply about the process")) {
        ipc_process_info_done(&info);
        return false;
    }
    *out = info;
    return true;
}

void ipc_process_info_done(struct ipc_process_info *info)
{
    buffer_done(&info->text);
    *info = (struct ipc_process_info){ 0 };
}

const char *ipc_process_text(const struct ipc_process_info *info, size_t off)
{
    return off < info->text.size ? (const char *)info->text.data + off : "";
}
