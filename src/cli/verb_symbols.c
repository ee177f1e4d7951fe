/*
 * verb_symbols: `clrperf symbols list|fetch|path`, the files with symbols of native code and assemblies.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/symbol_fetch.h"
#include "cli/symbol_images.h"
#include "cli/symbol_list.h"
#include "cli/symbol_store.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "fetch/symbol_key.h"

enum { ARGS_MAX = 64, REDIRECTS_MAX = 3, STALL_S = 20, TIMEOUT_S = 600 };

#define FILE_BYTES_MAX  (UINT64_C(512) << 20)
#define CACHE_BYTES_MAX (UINT64_C(2) << 30)

struct symbols_values {
    struct target_options target;
    struct option_list servers;
    uint64_t timeout_ns, file_bytes_max, cache_bytes_max;
    bool native, managed, json;
};

static const struct option_spec symbols_options[] = {
    { "native", 0, OPTION_FLAG, offsetof(struct symbols_values, native), "only native images" },
    { "managed", 0, OPTION_FLAG, offsetof(struct symbols_values, managed), "only assemblies" },
    { "json", 0, OPTION_FLAG, offsetof(struct symbols_values, json), "print JSON instead of a table" },
    { .kind = OPTION_HEADING, .help = "fetch" },
    { "server", 0, OPTION_STRING_LIST, offsetof(struct symbols_values, servers),
      "ask this symbol server or debuginfod; may be given several times", "URL" },
    { "timeout", 0, OPTION_DURATION, offsetof(struct symbols_values, timeout_ns), "for each file (10m)" },
    { "max-size", 0, OPTION_SIZE, offsetof(struct symbols_values, file_bytes_max),
      "take no larger file (512M)" },
    { "cache-size", 0, OPTION_SIZE, offsetof(struct symbols_values, cache_bytes_max),
      "of more than that, files used longest ago are removed (2G)" },
    { .kind = OPTION_GROUP,
      .offset = offsetof(struct symbols_values, target),
      .group = one_target_option_specs },
    { 0 },
};

static volatile sig_atomic_t symbols_stopped;

static void symbols_on_signal(int signal_number)
{
    symbols_stopped = signal_number;
}

/* How the same images are named again on a command line. The caller frees. */
static char *subject_text(const struct symbol_subject *subject, const struct symbol_images *images)
{
    return subject->file ? mem_copy_string(subject->file) : mem_format("-p %d", (int)images->pid);
}

static bool list_print(const struct symbol_images *images, const struct symbols_values *values,
                       struct error *err)
{
    return values->json ? symbol_list_json(images, err) : symbol_list_text(images, err);
}

static bool symbols_list(const struct symbols_values *values, const struct symbol_subject *subject,
                         struct symbol_images *images, struct error *err)
{
    AUTO_FREE char *again = subject_text(subject, images);
    if (!list_print(images, values, err))
        return false;
    if (!values->json)
        symbol_list_advise(images, again);
    return true;
}

static bool symbols_path(const struct symbol_subject *subject, const struct symbol_images *images,
                         struct error *err)
{
    AUTO_FREE char *again = subject_text(subject, images);
    if (images->count != 1) {
        error_set(err, ERROR_USAGE, "'path' is of one image, and %zu of %s fit", images->count,
                  images->label);
        return error_hint(err,
                          "clrperf symbols list %s says which there are; then: clrperf symbols path %s IMAGE",
                          again, again);
    }
    const struct symbol_image *image = &images->rows[0];
    AUTO_FREE char *found = symbol_images_found(images, image);
    if (!found[0]) {
        error_set(err, ERROR_INPUT, "symbols of '%s' are not here%s%s", image->path,
                  image->problem ? ": " : "", image->problem ? image->problem : "");
        return error_hint(err, "clrperf symbols fetch %s --server URL", again);
    }
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_format(&out, "%s\n", found);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

static bool gather_servers(const struct symbols_values *values, struct symbol_servers *out, struct error *err)
{
    const char *debuginfod = getenv("DEBUGINFOD_URLS"), *symbol_path = getenv("_NT_SYMBOL_PATH");
    for (size_t i = 0; i < values->servers.count; i++)
        if (!symbol_servers_add(out, values->servers.items[i], PROTOCOL_SSQP | PROTOCOL_DEBUGINFOD, err))
            return false;
    if (debuginfod)
        symbol_servers_add_debuginfod(out, debuginfod);
    if (symbol_path)
        symbol_servers_add_symbol_path(out, symbol_path);
    if (out->count)
        return true;
    error_set(err, ERROR_USAGE, "no symbol server is named, and none is asked on its own");
    return error_hint(err, "--server URL, or set DEBUGINFOD_URLS or _NT_SYMBOL_PATH");
}

/* One that was asked for and is still missing may be on no server at all; only if none came the run was in
 * vain. */
static bool fetch_outcome(const struct symbol_fetch *fetch, const char *label, struct error *err)
{
    if (fetch->removed)
        message_note("removed from the cache, as used longest ago: %zu", fetch->removed);
    if (fetch->stopped)
        return error_set(err, ERROR_LIMIT, "stopped; fetched before: %zu", fetch->fetched);
    if (fetch->wanted == 0)
        message_note("%s: nothing is missing", label);
    else
        message_note("%s: fetched %zu of %zu that are missing", label, fetch->fetched, fetch->wanted);
    return fetch->wanted == 0 || fetch->fetched ||
           error_set(err, ERROR_INPUT,
                     fetch->failed ? "no symbols were fetched, as servers failed"
                                   : "no server has these symbols");
}

static bool fetch_into(const struct symbols_values *values, struct symbol_servers *servers,
                       const struct symbol_cache *cache, struct symbol_images *images, struct error *err)
{
    struct symbol_fetch fetch = {
        .servers = servers,
        .cache = cache,
        .limits = { values->file_bytes_max, values->timeout_ns / 1000000, STALL_S, REDIRECTS_MAX },
        .cache_bytes_max = values->cache_bytes_max,
        .stop = &symbols_stopped,
    };
    struct sigaction action = { .sa_handler = symbols_on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return symbol_fetch_run(&fetch, images, err) && (!values->json || symbol_list_json(images, err)) &&
           fetch_outcome(&fetch, images->label, err);
}

static bool symbols_fetch(const struct symbols_values *values, struct symbol_images *images,
                          struct error *err)
{
    struct symbol_servers servers = { 0 };
    struct symbol_cache cache = { .directory_fd = -1 };
    if (values->timeout_ns / 1000000 == 0 || values->timeout_ns / 1000000 > INT32_MAX)
        return error_set(err, ERROR_USAGE, "--timeout wants from 1ms to 24 days");
    bool ok = gather_servers(values, &servers, err) && symbol_store_create(&cache, err) &&
              fetch_into(values, &servers, &cache, images, err);
    symbol_cache_close(&cache);
    symbol_servers_done(&servers);
    return ok;
}

static bool symbols_do(const char *action, const struct symbols_values *values,
                       const struct symbol_subject *subject, struct error *err)
{
    struct symbol_images images;
    struct symbol_cache cache;
    symbol_store_open(&cache);
    bool ok = symbol_images_find(subject, &cache, &images, err);
    symbol_cache_close(&cache);
    if (!ok)
        return false;
    if (strcmp(action, "list") == 0)
        ok = symbols_list(values, subject, &images, err);
    else if (strcmp(action, "fetch") == 0)
        ok = symbols_fetch(values, &images, err);
    else
        ok = symbols_path(subject, &images, err);
    symbol_images_done(&images);
    return ok;
}

static bool symbols_run(struct verb_call *call, struct error *err)
{
    const struct symbols_values *values = call->values;
    struct target_query query = target_options_query(&values->target);
    const char *action = call->arg_count ? call->args[0] : "list";
    size_t used = call->arg_count > 0;
    if (strcmp(action, "list") != 0 && strcmp(action, "fetch") != 0 && strcmp(action, "path") != 0) {
        error_set(err, ERROR_USAGE, "'symbols' cannot '%s'", action);
        return error_hint(err, "clrperf symbols list, fetch or path");
    }
    struct symbol_subject subject = { .target = query, .native = values->native, .managed = values->managed };
    if (target_query_is_empty(&query) && call->arg_count > 1)
        subject.file = call->args[used++];
    subject.names = call->args + used;
    subject.name_count = call->arg_count - used;
    return symbols_do(action, values, &subject, err);
}

const struct verb verb_symbols = {
    .name = "symbols",
    .args = "list|fetch|path [FILE] [IMAGE...]",
    .summary = "find or fetch the symbol files of native code and assemblies",
    .details =
        "  list   what symbols each image has, where, and what is missing\n"
        "  fetch  get what is missing from symbol servers into the cache, where record, report, stack and "
        "addr\n"
        "         find it. Asked are only servers given by --server, DEBUGINFOD_URLS and _NT_SYMBOL_PATH\n"
        "  path   print where the symbols of one image are; the exit code says whether they are here\n"
        "\n"
        "  Of a process (see below), or of FILE: a core dump, a capture, an ELF file or an assembly.\n"
        "  IMAGE: only those with this file name; * and ? match.\n"
        "  The cache: $CLRPERF_SYMBOLS, else clrperf/symbols in $XDG_CACHE_HOME or ~/.cache.",
    .options = symbols_options,
    .defaults =
        &(const struct symbols_values){
            .timeout_ns = TIMEOUT_S * UINT64_C(1000000000),
            .file_bytes_max = FILE_BYTES_MAX,
            .cache_bytes_max = CACHE_BYTES_MAX,
        },
    .values_size = sizeof(struct symbols_values),
    .args_max = ARGS_MAX,
    .run = symbols_run,
};
