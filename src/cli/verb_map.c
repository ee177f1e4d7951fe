/*
 * verb_map: `clrperf map`, the names of a running process for perf, bcc and bpftrace.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/replaced_file.h"
#include "base/target_root.h"
#include "cli/code_listing.h"
#include "cli/jit_dump_file.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/symbol_files.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "render/perf_map_text.h"

struct map_values {
    struct target_options target;
    const char *output, *elf, *jitdump;
    bool raw_names, json;
};

static const struct option_spec map_options[] = {
    { "output", 'o', OPTION_STRING, offsetof(struct map_values, output),
      "where to write it (/tmp/perf-PID.map in the process's own file system); - for stdout", "FILE" },
    { "elf", 0, OPTION_STRING, offsetof(struct map_values, elf),
      "also write ELF files with the symbols of precompiled and jitted code, for perf report --symfs DIR",
      "DIR" },
    { "jitdump", 0, OPTION_STRING, offsetof(struct map_values, jitdump),
      "also write a jitdump with the code and the source lines of jitted methods, for perf inject --jit",
      "DIR" },
    { "raw-names", 0, OPTION_FLAG, offsetof(struct map_values, raw_names),
      "the runtime's own spelling of names" },
    { "json", 0, OPTION_FLAG, offsetof(struct map_values, json), "say in JSON what was written" },
    { .kind = OPTION_GROUP, .offset = offsetof(struct map_values, target), .group = one_target_option_specs },
    { 0 },
};

/* The process's own /tmp: that is where perf, bcc and bpftrace look, inside its mount namespace. */
static bool open_target_tmp(const struct target *target, int *out_fd, struct error *err)
{
    int root_fd = -1;
    if (!target_root_open(target->pid, &root_fd, err))
        return false;
    struct target_file_rules rules = { .kind = TARGET_FILE_DIRECTORY };
    bool ok = target_root_open_path(root_fd, "/tmp", rules, out_fd, err);
    close(root_fd);
    return ok;
}

static bool open_folder_of(const char *path, int *out_fd, const char **out_name, struct error *err)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *folder = slash ? mem_format("%.*s/", (int)(slash - path), path) : mem_copy_string(".");
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return error_set(err, ERROR_USAGE, "'%s' is not a regular file", path);
    AUTO_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_system(err, errno, "cannot open the directory of '%s'", path);
    *out_fd = take_fd(&fd);
    *out_name = slash ? slash + 1 : path;
    return true;
}

/*
 * perf believes a map that belongs to root or to who runs perf. So what root wrote stays root's, and the
 * process's group may read it.
 */
static void let_group_read(int fd, const struct target *target)
{
    if (geteuid() == 0 && target->uid != 0 && fchown(fd, (uid_t)-1, target->gid) == 0)
        (void)!fchmod(fd, 0640);
}

static bool write_map(const struct map_values *values, const struct target *target,
                      const struct code_listing *listing, char *out_path, size_t path_size, struct error *err)
{
    AUTO_FREE char *name = mem_format("perf-%d.map", (int)target->ns_pid);
    const char *file_name = name;
    AUTO_FD int folder_fd = -1;
    struct replaced_file file;
    if (values->output) {
        snprintf(out_path, path_size, "%s", values->output);
        if (!open_folder_of(values->output, &folder_fd, &file_name, err))
            return false;
    } else {
        snprintf(out_path, path_size, "/tmp/%s", name);
        if (!open_target_tmp(target, &folder_fd, err))
            return error_hint(err, "write it elsewhere with -o FILE");
    }
    if (!replaced_file_open(folder_fd, file_name, &file, err))
        return error_context(err, "'%s'", out_path);
    struct output out;
    output_over_fd(&out, file.fd);
    perf_map_text_write(&listing->census->b.trace, &listing->symbols, &out);
    if (!output_close(&out, err)) {
        replaced_file_abandon(&file);
        return error_context(err, "'%s'", out_path);
    }
    if (!values->output)
        let_group_read(file.fd, target);
    return replaced_file_commit(&file, err);
}

static bool print_map(const struct code_listing *listing, struct error *err)
{
    struct output out;
    output_over_fd(&out, STDOUT_FILENO);
    perf_map_text_write(&listing->census->b.trace, &listing->symbols, &out);
    return output_close(&out, err);
}

struct map_result {
    char path[PATH_MAX]; /* "" when it went to stdout */
    struct symbol_files files;
    struct jit_dump_file dump;
};

static bool say_json(const struct target *target, const struct code_listing *listing,
                     const struct map_result *result, const char *elf, struct error *err)
{
    struct json_writer w;
    struct buffer buffer;
    stdout_json(&w, &buffer);
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        { "pid", (uint64_t)target->pid },
        { "ns_pid", (uint64_t)target->ns_pid },
        { "symbols", listing->symbols.count },
        { "jitted", listing->jitted },
        { "precompiled", listing->precompiled },
        { "stubs", listing->stubs },
        { "images", listing->result.images },
        { "unreadable_images", listing->result.unreadable },
        { "elf_files", result->files.written },
        { "jitdump_methods", result->dump.methods },
        { "jitdump_lines", result->dump.with_lines },
    };
    json_begin_object(&w);
    json_key(&w, "schema");
    json_quoted(&w, "clrperf.map/1");
    json_key(&w, "file");
    json_quoted(&w, result->path);
    json_key(&w, "elf");
    json_quoted(&w, elf);
    json_key(&w, "jitdump");
    json_quoted(&w, result->dump.path[0] ? result->dump.path : NULL);
    json_key(&w, "resolver");
    json_quoted(&w, resolver_name(listing->census->told_by));
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        json_key(&w, counts[i].key);
        json_u64(&w, counts[i].value);
    }
    json_end_object(&w);
    bool ok = json_finish(&w, err);
    buffer_done(&buffer);
    return ok;
}

static void say_text(const struct target *target, const struct code_listing *listing,
                     const struct map_result *result, const char *elf)
{
    bool memory = listing->census->told_by == RESOLVER_MEMORY;
    message_note("process %d: %zu jitted methods (told by its %s), %zu precompiled in %" PRIu32
                 " images, %zu stubs%s%s",
                 (int)target->pid, listing->jitted, memory ? "memory" : "runtime", listing->precompiled,
                 listing->result.images, listing->stubs, result->path[0] ? ", in " : "", result->path);
    if (elf && result->files.found_anyway)
        message_note("%zu ELF files below %s, where perf report finds them", result->files.written, elf);
    else if (elf)
        message_note("%zu ELF files below %s: perf report --symfs %s --kallsyms /proc/kallsyms",
                     result->files.written, elf, elf);
    if (result->dump.path[0])
        message_note(
            "%" PRIu64 " jitted methods with their code, %" PRIu64
            " with source lines, in %s: perf inject --jit, when perf record -k mono watched clrperf too",
            result->dump.methods, result->dump.with_lines, result->dump.path);
}

static void warn(const struct code_listing *listing)
{
    if (listing->result.unreadable)
        message_warning("%" PRIu32 " images could not be read; their code has no names",
                        listing->result.unreadable);
    if (!listing->census->memory)
        message_warning("stubs are not in it: %s", listing->census->memory_error.what);
}

static void warn_dump(const struct jit_dump_file *dump)
{
    if (dump->unreadable)
        message_warning("%zu jitted methods could not be read; they are not in the jitdump",
                        dump->unreadable);
    if (!dump->marked)
        message_warning("perf will not find %s: nothing may be executed there; choose another directory",
                        dump->path);
}

/* Nobody told of jitted methods: a map without them would look complete and is not. */
static bool require_methods(const struct target *target, const struct code_census *census, struct error *err)
{
    if (census->told_by != RESOLVER_NONE)
        return true;
    *err = census->memory_error;
    error_context(err, "neither the memory nor the runtime of process %d tells its methods (runtime: %.150s)",
                  (int)target->pid, census->runtime_error.what);
    if (!err->hint[0] && census->runtime_error.hint[0])
        error_hint(err, "%s", census->runtime_error.hint);
    return false;
}

static bool map_write_all(const struct map_values *values, const struct target *target,
                          struct code_listing *listing, struct error *err)
{
    struct map_result result = { 0 };
    bool to_stdout = values->output && strcmp(values->output, "-") == 0;
    if (to_stdout && values->json)
        return error_set(err, ERROR_USAGE, "-o - and --json both want standard output");
    warn(listing);
    if (!(to_stdout ? print_map(listing, err)
                    : write_map(values, target, listing, result.path, sizeof result.path, err)) ||
        (values->elf && !symbol_files_write(listing, values->elf, &result.files, err)) ||
        (values->jitdump && !jit_dump_file_write(listing, values->jitdump, &result.dump, err)))
        return false;
    if (result.dump.path[0])
        warn_dump(&result.dump);
    if (values->json)
        return say_json(target, listing, &result, values->elf, err);
    say_text(target, listing, &result, values->elf);
    return true;
}

static bool map_target(const struct map_values *values, const struct target *target, struct error *err)
{
    struct code_census census;
    /* whose mappings are closed to us may well run one: code_census_take() says what is missing */
    if (target->runtime == RUNTIME_NATIVEAOT)
        return error_set(err, ERROR_UNSUPPORTED,
                         "process %d needs no map: a Native AOT program is native code, with its names in "
                         "the program or its .dbg file",
                         (int)target->pid);
    if (target->runtime != RUNTIME_CORECLR && !target->maps_denied)
        return error_set(err, ERROR_UNSUPPORTED, "process %d runs no .NET runtime that compiles at run time",
                         (int)target->pid);
    if (!code_census_take(target, &(struct code_census_choice){ 0 }, &census, err))
        return false;
    bool ok = require_methods(target, &census, err);
    if (ok) {
        struct code_listing listing;
        code_listing_make(&census, values->raw_names, &listing);
        ok = map_write_all(values, target, &listing, err);
        code_listing_done(&listing);
    }
    code_census_done(&census);
    return ok;
}

static bool map_run(struct verb_call *call, struct error *err)
{
    const struct map_values *values = call->values;
    struct target_query query = target_options_query(&values->target);
    struct target_list list;
    query.one = true;
    if (!target_select(&query, &list, err))
        return false;
    bool ok = map_target(values, &list.items[0], err);
    target_list_done(&list);
    return ok;
}

const struct verb verb_map = {
    .name = "map",
    .summary = "write a perf map of a running process for perf, bcc and bpftrace",
    .details =
        "  Names jitted methods, precompiled methods of all loaded images, and stubs, as they are now: run "
        "it\n"
        "  again when the process has compiled more. The file appears whole, in place of an older one.\n"
        "  perf looks into a perf map only for memory of no file. Code of .dll files, and with .NET 7 and "
        "later\n"
        "  jitted code too, it looks up in ELF files: --elf writes those. For perf annotate, --jitdump adds "
        "the "
        "code.",
    .options = map_options,
    .values_size = sizeof(struct map_values),
    .run = map_run,
};
