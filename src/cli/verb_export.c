#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "cli/capture_export.h"
#include "cli/capture_file.h"
#include "cli/message.h"
#include "cli/verb.h"
#include "render/nettrace.h"
#include "trace/facts.h"

struct export_values {
    struct profile_choice choice;
    struct export_options shape;
    const char *out, *format;
    bool force;
};

/* The names of all formats, for messages. */
static void export_list(char *out, size_t out_size)
{
    size_t count, used = 0;
    const struct export_format *formats = export_formats(&count);
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(formats[i].extension);
        if (used + size + 2 > out_size)
            return;
        memcpy(out + used, " ", 1);
        memcpy(out + used + 1, formats[i].extension, size + 1);
        used += size + 1;
    }
}

static bool export_choose(const struct export_values *v, const struct export_format **out, struct error *err)
{
    char known[512];
    export_list(known, sizeof known);
    if (!v->out && !v->format) {
        error_set(err, ERROR_USAGE, "where to? -o FILE, with one of these endings:%s; or -o - with --format",
                  known);
        return error_hint(err, "clrperf export FILE -o flame.html");
    }
    /* a name may stand for several endings: the file's own decides between them, packed or not */
    const struct export_format *by_path = v->out ? export_format_for_path(v->out) : NULL;
    const struct export_format *by_name = v->format ? export_format_by_name(v->format) : NULL;
    if (v->format && !by_name) {
        error_set(err, ERROR_USAGE, "there is no format '%s'", v->format);
        return error_hint(err, "leave --format out and end -o with one of:%s", known);
    }
    *out = by_name && (!by_path || strcmp(by_path->name, by_name->name) != 0) ? by_name : by_path;
    if (*out)
        return true;
    struct stat there;
    if (stat(v->out, &there) == 0 && S_ISDIR(there.st_mode)) {
        error_system(err, EISDIR, "cannot create '%s'", v->out);
        return error_hint(err, "name a file in that folder with -o");
    }
    error_set(err, ERROR_USAGE, "'%s' does not say the format", v->out);
    return error_hint(err, "end it with one of:%s; or give --format", known);
}

static bool export_put(const struct export_values *v, const struct export_format *format,
                       const struct capture *c, const struct profile *p, struct error *err)
{
    if (strcmp(v->out, "-") == 0)
        return capture_export_put(c, format, p, &v->shape, STDOUT_FILENO, err) ||
               error_context(err, "writing to standard output");
    AUTO_FD int file = -1;
    if (!capture_file_create(v->out, v->force, &file, err))
        return false;
    if (capture_export_put(c, format, p, &v->shape, file, err))
        return true;
    unlink(v->out); /* half a file is none in any of the formats */
    return error_context(err, "writing '%s'", v->out);
}

/* A file that is there is lost when its place is taken: not for a slip of the pen in what is to be shown. */
static bool export_write(const struct export_values *v, const struct export_format *format,
                         const struct capture *c, struct error *err)
{
    struct profile *p;
    if (!capture_export_build(c, format, &v->choice, &p, err))
        return false;
    bool ok = export_put(v, format, c, p, err);
    profile_free(p);
    return ok;
}

/* Beside the file, with the format's ending in the place of its own, as dotnet-trace has it. The caller
 * frees. */
static char *export_beside(const char *file, const struct export_format *format)
{
    if (strcmp(file, "-") == 0)
        return mem_copy_string(file);
    const char *slash = strrchr(file, '/'), *dot = strrchr(file, '.');
    size_t stem = dot && dot > file && (!slash || dot > slash + 1) ? (size_t)(dot - file) : strlen(file);
    return mem_format("%.*s%s", (int)stem, file, format->extension);
}

/* What holds everything takes no choice of samples. */
static bool export_check(const struct export_values *v, const struct export_format *format, struct error *err)
{
    const struct profile_choice *c = &v->choice;
    struct profile_options options;
    if (format->write_trace && (c->time || c->event || c->who.process || c->who.thread || c->group ||
                                c->raw_names || c->include.count || c->exclude.count)) {
        error_set(err, ERROR_USAGE, "a %s file holds all of a capture", format->extension);
        return error_hint(err, "leave the options about samples out, or choose another format");
    }
    if (v->out && strcmp(v->out, "-") == 0 && export_format_is_binary(format) && isatty(STDOUT_FILENO)) {
        error_set(err, ERROR_USAGE, "a %s file is no text for a terminal", format->extension);
        return error_hint(err, "send it to a file with -o, or to another program with |");
    }
    return profile_choice_options(c, &options, err);
}

static void export_warn(const struct capture *c, const struct export_format *format)
{
    uint32_t others;
    uint32_t process = format->write_trace ? nettrace_process(&c->b.trace, &others) : 0;
    if (process && others)
        message_warning("the file holds one process, %u; %u other%s left out",
                        c->b.trace.processes.rows[process].pid, others, others == 1 ? " is" : "s are");
    if (format->write_trace && trace_fact_value(&c->b.trace, FACT_EVENT) &&
        trace_fact_value(&c->b.trace, FACT_WALL_EVENT))
        message_warning("the file holds the samples of wall time; those of the CPU are left out");
    if (!format->write_trace && !format->timeline && !c->b.trace.samples.count)
        message_warning("'%s' has no samples: there is nothing to be shown", c->path);
}

/* What is read is not what is written. */
static bool export_apart(const char *in, const char *out, struct error *err)
{
    struct stat read, written;
    if (strcmp(in, "-") == 0 || strcmp(out, "-") == 0 || stat(in, &read) != 0 || stat(out, &written) != 0 ||
        read.st_dev != written.st_dev || read.st_ino != written.st_ino)
        return true;
    error_set(err, ERROR_USAGE, "'%s' would be replaced by its own export", in);
    return error_hint(err, "choose another name with -o");
}

static bool export_run(struct verb_call *call, struct error *err)
{
    struct export_values values = *(const struct export_values *)call->values, *v = &values;
    const struct export_format *format;
    struct capture c;
    AUTO_FREE char *beside = NULL;
    if (call->arg_count < 1) {
        error_set(err, ERROR_USAGE, "which capture?");
        return error_hint(err, "clrperf export FILE -o flame.html; record one with: clrperf record -d 10s");
    }
    if (!export_choose(v, &format, err) || !export_check(v, format, err) ||
        !capture_export_read(call->args[0], format, &v->choice, &c, err))
        return false;
    if (!v->out)
        v->out = beside = export_beside(call->args[0], format);
    capture_warn(&c);
    export_warn(&c, format);
    bool ok = export_apart(call->args[0], v->out, err) && export_write(v, format, &c, err);
    capture_done(&c);
    return ok;
}

static const struct option_spec export_options[] = {
    { "output", 'o', OPTION_STRING, offsetof(struct export_values, out), "write there; - is standard output",
      "FILE", NULL },
    { "format", 0, OPTION_STRING, offsetof(struct export_values, format),
      "the format, when FILE's ending does not say", "NAME", NULL },
    { "force", 0, OPTION_FLAG, offsetof(struct export_values, force), "overwrite FILE", NULL, NULL },
    { "modules", 0, OPTION_FLAG, offsetof(struct export_values, shape.modules), "names are module!function",
      NULL, NULL },
    { "annotate", 0, OPTION_FLAG, offsetof(struct export_values, shape.annotate),
      "mark kernel _[k], jitted _[j] and other frames as FlameGraph does", NULL, NULL },
    { "threads", 0, OPTION_FLAG, offsetof(struct export_values, shape.threads),
      "stacks begin with the thread's name", NULL, NULL },
    { "title", 0, OPTION_STRING, offsetof(struct export_values, shape.title), "what the picture is called",
      "TEXT", NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct export_values, choice), NULL, NULL, profile_choice_specs },
    { 0 },
};

const struct verb verb_export = {
    .name = "export",
    .args = "FILE",
    .summary = "write a capture as a flame graph or in another tool's format",
    .details =
        "FILE is a capture, or a perf.data, .nettrace, `perf script` text or folded stacks.\n"
        "The ending of -o chooses: .svg .html .folded .speedscope.json .pb.gz .perf.txt .firefox.json\n"
        ".chromium.json .json .nettrace",
    .options = export_options,
    .values_size = sizeof(struct export_values),
    .args_max = 1,
    .run = export_run,
};
