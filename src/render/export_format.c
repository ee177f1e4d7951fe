#include "render/export_format.h"

#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "render/chromium.h"
#include "render/firefox.h"
#include "render/flame_html.h"
#include "render/flame_svg.h"
#include "render/folded.h"
#include "render/nettrace.h"
#include "render/perf_text.h"
#include "render/pprof.h"
#include "render/profile_json.h"
#include "render/speedscope.h"

static const struct export_format formats[] = {
    { "svg", ".svg", "a flame graph as a picture that can be searched and zoomed", false, true, false,
      flame_svg_write },
    { "html", ".html", "a flame graph and its table as one page", false, false, false, flame_html_write },
    { "folded", ".folded", "one line per stack, for FlameGraph's programs", false, false, false,
      folded_write },
    { "folded", ".collapsed", "one line per stack, for FlameGraph's programs", false, false, false,
      folded_write },
    { "speedscope", ".speedscope.json", "for the speedscope viewer", false, false, false, speedscope_write },
    { "pprof", ".pb.gz", "for go tool pprof, Grafana and others", true, false, false, pprof_write },
    { "pprof", ".pprof", "for go tool pprof, Grafana and others", true, false, false, pprof_write },
    { "pprof", ".pb", "pprof's, not compressed", false, false, false, pprof_write },
    { "perf", ".perf.txt", "the text of perf script, for FlameScope and others", false, false, false,
      perf_text_write },
    { "perf", ".linux-perf.txt", "the text of perf script, as speedscope wants it named", false, false, false,
      perf_text_write },
    { "firefox", ".firefox.json", "for the Firefox Profiler", false, false, true, firefox_write },
    { "firefox", ".firefox.json.gz", "for the Firefox Profiler, compressed", true, false, true,
      firefox_write },
    { "chromium", ".chromium.json", "a timeline for Perfetto and chrome://tracing", false, false, true,
      chromium_write },
    { "chromium", ".chromium.json.gz", "a timeline for Perfetto, compressed", true, false, true,
      chromium_write },
    { "json", ".json", "everything in columns, for scripts", false, false, false, profile_json_write },
    { "json", ".json.gz", "everything in columns, compressed", true, false, false, profile_json_write },
    { "nettrace", ".nettrace", "events and samples, for dotnet-trace and TraceEvent", false, false, false,
      NULL, nettrace_write },
};

const struct export_format *export_formats(size_t *count)
{
    *count = ARRAY_LEN(formats);
    return formats;
}

const struct export_format *export_format_for_path(const char *path)
{
    const struct export_format *best = NULL;
    size_t path_size = strlen(path), best_size = 0;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        size_t size = strlen(formats[i].extension);
        if (size <= best_size || size > path_size ||
            strcasecmp(path + path_size - size, formats[i].extension) != 0)
            continue;
        best = &formats[i];
        best_size = size;
    }
    return best;
}

const struct export_format *export_format_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcasecmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcasecmp(formats[i].extension + 1, name) == 0)
            return &formats[i];
    }
    return NULL;
}

bool export_format_is_binary(const struct export_format *format)
{
    return format->gzip || format->write_trace || format->write == pprof_write;
}

bool export_profile(const struct export_format *format, const struct profile *p,
                    const struct export_options *options, struct output *out, struct error *err)
{
    if (format->gzip)
        output_gzip_begin(out);
    bool ok = format->write(p, options, out, err);
    if (format->gzip)
        output_gzip_end(out);
    return ok && output_ok(out, err);
}

bool export_profile_to_fd(const struct export_format *format, const struct profile *p,
                          const struct export_options *options, int fd, struct error *err)
{
    struct output out;
    output_over_fd(&out, fd);
    bool ok = export_profile(format, p, options, &out, err);
    return output_close(&out, ok ? err : NULL) && ok;
}

bool export_trace_to_fd(const struct export_format *format, const struct trace *t, int fd, struct error *err)
{
    struct output out;
    output_over_fd(&out, fd);
    bool ok = format->write_trace(t, &out, err) && output_ok(&out, err);
    return output_close(&out, ok ? err : NULL) && ok;
}
