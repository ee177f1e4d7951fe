#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/capture.h"
#include "cli/capture_file.h"
#include "cli/message.h"
#include "cli/profile_options.h"
#include "cli/verb.h"
#include "render/export_format.h"

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
    if (!v->out)
        return error_set(err, ERROR_USAGE,
                         "where to? -o FILE, with one of these endings:%s; or -o - with --format", known);
    *out = v->format ? export_format_by_name(v->format) : export_format_for_path(v->out);
    if (*out)
        return true;
    if (v->format)
        return error_set(err, ERROR_USAGE, "there is no format '%s'", v->format);
    return error_set(err, ERROR_USAGE, "'%s' does not say the format; known endings:%s, or give --format",
                     v->out, known);
}

static bool export_write(const struct export_values *v, const struct export_format *format,
                         const struct profile *p, struct error *err)
{
    AUTO_FD int file = -1;
    bool to_stdout = strcmp(v->out, "-") == 0;
    if (!to_stdout && !capture_file_create(v->out, v->force, &file, err))
        return false;
    struct output out;
    output_over_fd(&out, to_stdout ? STDOUT_FILENO : file);
    bool ok = export_profile(format, p, &v->shape, &out, err);
    ok = output_close(&out, err) && ok;
    if (!ok)
        error_context(err, "writing '%s'", v->out);
    return ok;
}

static bool export_run(struct verb_call *call, struct error *err)
{
    const struct export_values *v = call->values;
    const struct export_format *format;
    struct profile_options options;
    struct capture c;
    struct profile *p;
    if (call->arg_count < 1)
        return error_set(err, ERROR_USAGE, "which capture? clrperf export FILE -o flame.html");
    if (!export_choose(v, &format, err) || !profile_choice_options(&v->choice, &options, err) ||
        !capture_open(call->args[0], &c, err))
        return false;
    capture_warn(&c);
    options.tree_only = format->tree_only;
    bool ok = profile_build(&c.b.trace, &options, &p, err);
    if (ok) {
        ok = export_write(v, format, p, err);
        profile_free(p);
    }
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
        "FILE is a capture, or a perf.data, `perf script` text or folded stacks of another tool.\n"
        "The ending of -o chooses: .svg .html .folded .speedscope.json .pb.gz .perf.txt .firefox.json .json",
    .options = export_options,
    .values_size = sizeof(struct export_values),
    .args_max = 1,
    .run = export_run,
};
