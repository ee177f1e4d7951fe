#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "clr/runtime_events.h"
#include "import/folded_import.h"
#include "import/import_note.h"
#include "import/nettrace_import.h"
#include "import/perf_data_import.h"
#include "import/perf_script_import.h"
#include "read/byte_stream.h"
#include "read/folded.h"
#include "read/nettrace.h"
#include "read/perf_data.h"
#include "read/perf_script.h"
#include "trace/trace_check.h"

enum { SNIFF_BYTES = 64 * 1024 };

typedef bool import_fn(struct byte_stream *stream, const struct import_options *options,
                       struct trace_builder *b, struct error *err);

/* In the order in which they are asked: from the surest sign to the weakest. */
static const struct {
    bool (*recognises)(struct span head);
    import_fn *import;
} formats[] = {
    { perf_header_recognises, perf_data_import },
    { nettrace_recognises, nettrace_import },
    { perf_script_recognises, perf_script_import },
    { folded_recognises, folded_import },
};

/* What people send files in, by how it begins. */
static const struct {
    const char *magic;
    size_t size;
    const char *name, *hint;
} packings[] = {
    { "\x1f\x8b", 2, "gzip", "unpack it: gunzip -c FILE | clrperf report -" },
    { "PK\3\4", 4, "zip",
      "unpack it, and name the .nettrace in it, or the perf.data.txt of perfcollect: "
      "unzip -p FILE '*.nettrace' | clrperf report -" },
    { "\x28\xb5\x2f\xfd", 4, "zstd", "unpack it: zstd -dc FILE | clrperf report -" },
    { "\xfd"
      "7zXZ",
      5, "xz", "unpack it: xz -dc FILE | clrperf report -" },
};

static bool import_is_packed(struct span head, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(packings); i++)
        if (head.size >= packings[i].size && memcmp(head.data, packings[i].magic, packings[i].size) == 0) {
            error_set(err, ERROR_INPUT, "it is packed by %s", packings[i].name);
            error_hint(err, "%s", packings[i].hint);
            return true;
        }
    return false;
}

/* JSON, HTML or SVG, as other tools are given: names and times without what they were made of. */
static void import_hint_export(struct span head, struct error *err)
{
    if (head.data[0] == '{' || head.data[0] == '[' || head.data[0] == '<')
        error_hint(err, "what was exported is not read: name the capture, perf.data or .nettrace that it was "
                        "made of");
}

/* `head` is what the file holds from `off` on. */
static bool import_unknown(struct span head, uint64_t off, struct error *err)
{
    if (head.size == 0)
        return error_set(err, ERROR_INPUT, "it is empty");
    if (import_is_packed(head, err))
        return false;
    const uint8_t *nul = memchr(head.data, 0, head.size);
    struct span before = span_of(head.data, nul ? (size_t)(nul - head.data) : 0);
    if (perf_script_recognises(before) || folded_recognises(before))
        return error_set(err, ERROR_INPUT,
                         "it begins as text of perf script or folded stacks, but is no text: it holds a NUL "
                         "at byte %" PRIu64,
                         off + before.size);
    struct folded_head seen = folded_look(head);
    if (!nul && seen.first_bad > 1 && seen.has_callers)
        return error_set(err, ERROR_INPUT,
                         "line %" PRIu64 " is no folded stack ('a;b;c 12'), as %u of the first %u are none: "
                         "too many for a file of folded stacks",
                         seen.first_bad, seen.bad, seen.good + seen.bad);
    char start[9] = "";
    for (size_t i = 0; i < 8 && i < head.size; i++)
        start[i] = head.data[i] >= ' ' && head.data[i] < 0x7f ? (char)head.data[i] : '.';
    error_set(err, ERROR_INPUT,
              "it begins at byte 0 with '%s', and not as a perf.data ('PERFILE2'), a .nettrace "
              "('Nettrace'), the text of perf script ('comm pid time: event:') or folded stacks "
              "('a;b;c 12')",
              start);
    import_hint_export(head, err);
    return false;
}

enum import_want import_wants_samples(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    if (runtime_event_kind_named(provider, event_id) >= RUNTIME_EVENT_GC_START)
        return IMPORT_COLLECTIONS;
    return strcmp(provider, RUNTIME_STREAM_PROVIDER) == 0 ? IMPORT_EVENTS : IMPORT_NOTHING;
}

enum import_want import_want_event(const char *provider, bool is_looked_at)
{
    if (is_looked_at)
        return IMPORT_PAYLOADS;
    return strcmp(provider, RUNTIME_SAMPLER_PROVIDER) == 0 ? IMPORT_COUNTS : IMPORT_NOTHING;
}

static void limit_weights(struct trace *t)
{
    uint64_t most, cut = trace_limit_weights(t, &most);
    if (cut)
        import_note(t, "%" PRIu64 " samples count as %" PRIu64 ", as more would be beyond 2^63 together", cut,
                    most);
}

/* Editors of Windows put a mark in front of text. */
static bool import_begin(struct byte_stream *stream, struct span *out_head, struct error *err)
{
    static const uint8_t mark[] = { 0xef, 0xbb, 0xbf };
    if (!byte_stream_peek(stream, SNIFF_BYTES, out_head, err))
        return false;
    if (out_head->size < sizeof mark || memcmp(out_head->data, mark, sizeof mark) != 0)
        return true;
    byte_stream_take(stream, sizeof mark);
    return byte_stream_peek(stream, SNIFF_BYTES, out_head, err);
}

bool import_stream(struct byte_stream *stream, const struct import_options *options, struct trace_builder *b,
                   bool *out_recognised, struct error *err)
{
    static const struct import_options defaults = { 0 };
    struct span head;
    *out_recognised = false;
    if (!import_begin(stream, &head, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (!formats[i].recognises(head))
            continue;
        *out_recognised = true;
        if (!formats[i].import(stream, options ? options : &defaults, b, err))
            return false;
        limit_weights(&b->trace);
        return true;
    }
    return import_unknown(head, stream->pos, err);
}

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *import_shown_path(const char *path)
{
    return is_stdin(path) ? "standard input" : path;
}

/* `perf record --kcore` and `--threads` make a folder, of which the file `data` is the perf.data. */
static int open_file_or_folder(const char *path)
{
    AUTO_FD int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (opened < 0 || fstat(opened, &st) < 0 || !S_ISDIR(st.st_mode))
        return take_fd(&opened);
    AUTO_FD int data = openat(opened, "data", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint8_t head[8];
    bool is_perf = data >= 0 && pread(data, head, sizeof head, 0) == (ssize_t)sizeof head &&
                   perf_header_recognises(span_of(head, sizeof head));
    return is_perf ? take_fd(&data) : take_fd(&opened);
}

bool import_open_stream(const char *path, int *out_fd, struct byte_stream *out, struct error *err)
{
    AUTO_FD int opened = -1;
    if (!is_stdin(path)) {
        opened = open_file_or_folder(path);
        if (opened < 0)
            return error_system(err, errno, "cannot open '%s'", path);
    }
    if (!byte_stream_open(out, is_stdin(path) ? STDIN_FILENO : opened, PERF_DATA_WINDOW_BYTES, err))
        return error_context(err, "cannot read '%s'", import_shown_path(path));
    *out_fd = take_fd(&opened);
    return true;
}

bool import_open(const char *path, const struct import_options *options, struct trace_builder *b,
                 bool *out_recognised, struct error *err)
{
    AUTO_FD int fd = -1;
    struct byte_stream stream;
    *out_recognised = false;
    if (!import_open_stream(path, &fd, &stream, err))
        return false;
    bool ok = import_stream(&stream, options, b, out_recognised, err);
    byte_stream_close(&stream);
    return ok || error_context(err, "cannot read '%s'", import_shown_path(path));
}
