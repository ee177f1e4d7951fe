#include "render/firefox.h"

#include <string.h>

#include "base/intern.h"
#include "base/own.h"
#include "render/firefox_marks.h"
#include "render/frame_colour.h"
#include "render/frame_text.h"
#include "render/json_text.h"
#include "render/sample_groups.h"

enum { FIREFOX_PROCESSED_VERSION = 60, FIREFOX_GECKO_VERSION = 24, RESOURCE_LIBRARY = 1 };

/* Indices into meta.categories. */
enum category {
    CATEGORY_OTHER,
    CATEGORY_MANAGED,
    CATEGORY_FRAMEWORK,
    CATEGORY_RUNTIME,
    CATEGORY_NATIVE,
    CATEGORY_KERNEL,
    CATEGORY_IDLE
};

static const char categories_json[] =
    "[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Managed\",\"color\":\"green\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Framework\",\"color\":\"lightblue\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Runtime\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Native\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
    "{\"name\":\"Idle\",\"color\":\"transparent\",\"subcategories\":[\"Other\"]}]";

struct firefox {
    const struct profile *profile;
    const struct export_options *options;
    struct output *out;
    struct intern strings; /* ids are indices of stringArray */
    struct intern modules; /* id - 1 is the index of a lib and of its resource */
    struct intern sources; /* id - 1 is the index of a source */
    struct buffer scratch;
    struct firefox_marks marks;
};

static enum category frame_category(const struct profile_frame *frame)
{
    static const enum category of_family[FRAME_FAMILIES] = {
        [FAMILY_OWN] = CATEGORY_MANAGED,   [FAMILY_JIT] = CATEGORY_FRAMEWORK,
        [FAMILY_R2R] = CATEGORY_FRAMEWORK, [FAMILY_DYNAMIC] = CATEGORY_MANAGED,
        [FAMILY_STUB] = CATEGORY_RUNTIME,  [FAMILY_RUNTIME] = CATEGORY_RUNTIME,
        [FAMILY_NATIVE] = CATEGORY_NATIVE, [FAMILY_KERNEL] = CATEGORY_KERNEL,
        [FAMILY_UNKNOWN] = CATEGORY_OTHER,
    };
    return frame->kind == CODE_IDLE ? CATEGORY_IDLE : of_family[frame_family_of(frame)];
}

static bool counts_ns(const struct profile *p)
{
    return strcmp(p->weight_unit, "ns") == 0;
}

/* Samples taken at a rate of on-CPU time: each is one, and says how long its thread ran. */
static bool is_cpu(const struct profile *p)
{
    return counts_ns(p) && p->rate_hz > 0;
}

static void write_ms(struct output *out, uint64_t ns)
{
    output_fixed(out, ns / 1000, 3);
}

/* A column that says the same `text` in each of `count` rows. */
static void write_constant(struct output *out, const char *key, size_t count, const char *text)
{
    output_char(out, ',');
    json_text_string(out, key);
    output_text(out, ":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        output_text(out, text);
    }
    output_char(out, ']');
}

static void write_string_column(struct output *out, const char *key, const struct intern *names,
                                struct intern *strings)
{
    output_char(out, ',');
    json_text_string(out, key);
    output_text(out, ":[");
    for (uint32_t id = 1; id < names->count; id++) {
        json_comma(out, id - 1);
        output_u64(out, intern_cstr(strings, intern_text(names, id)));
    }
    output_char(out, ']');
}

static void write_information(const struct profile *p, struct output *out)
{
    const struct profile_counts *c = &p->counts;
    const struct {
        const char *label;
        uint64_t value;
    } rows[] = { { "Samples", c->samples },      { "Samples lost", c->lost },
                 { "Whole stacks", c->whole },   { "Truncated stacks", c->truncated },
                 { "Broken stacks", c->broken }, { "User frames without a name", c->unnamed } };
    output_text(out, ",\"extra\":[{\"label\":\"clrperf\",\"entries\":[");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_comma(out, i);
        output_text(out, "{\"label\":");
        json_text_string(out, rows[i].label);
        output_text(out, ",\"format\":\"integer\",\"value\":");
        output_u64(out, rows[i].value);
        output_char(out, '}');
    }
    output_text(out, "]}]");
}

static void write_meta(struct firefox *w)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    output_text(out, "{\"meta\":{\"version\":");
    output_u64(out, FIREFOX_GECKO_VERSION);
    json_member_u64(out, "preprocessedProfileVersion", FIREFOX_PROCESSED_VERSION);
    output_text(out, ",\"interval\":");
    json_text_double(out, p->rate_hz > 0 ? 1000 / p->rate_hz : 1);
    output_text(out, ",\"startTime\":");
    write_ms(out, p->start_realtime_ns);
    json_member_u64(out, "startTimeAsClockMonotonicNanosecondsSinceBoot", p->start_monotonic_ns);
    output_text(out, ",\"profilingStartTime\":0,\"profilingEndTime\":");
    write_ms(out, p->duration_ns);
    json_member(out, false, "product", w->options->title ? w->options->title : p->title);
    json_member(out, false, "importedFrom", "clrperf");
    output_text(
        out,
        ",\"processType\":0,\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,"
        "\"presymbolicated\":true,\"symbolicationNotSupported\":true,\"markerSchema\":[{\"name\":\"dotnet\","
        "\"display\":[\"marker-chart\",\"marker-table\","
        "\"timeline-overview\"],\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.data.what}\","
        "\"chartLabel\":\"{marker.data.what}\",\"fields\":[{\"key\":\"what\",\"label\":\"What\","
        "\"format\":\"string\"}]}],"
        "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true");
    if (is_cpu(p))
        output_text(out, ",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
                         "\"threadCPUDelta\":\"\xc2\xb5s\"}");
    output_text(out, ",\n\"categories\":");
    output_text(out, categories_json);
    write_information(p, out);
    output_char(out, '}');
}

static void write_libraries(struct firefox *w)
{
    output_text(w->out, ",\n\"libs\":[");
    for (uint32_t id = 1; id < w->modules.count; id++) {
        const char *name = intern_text(&w->modules, id);
        json_comma(w->out, id - 1);
        output_text(w->out, "{\"arch\":\"\"");
        json_member(w->out, false, "name", name);
        json_member(w->out, false, "path", name);
        json_member(w->out, false, "debugName", name);
        json_member(w->out, false, "debugPath", name);
        output_text(w->out, ",\"breakpadId\":\"\",\"codeId\":null}");
    }
    output_char(w->out, ']');
}

static void write_stacks(struct firefox *w)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    output_text(out, "\"stackTable\":{\"length\":");
    output_u64(out, p->node_count - 1);
    output_text(out, ",\"frame\":[");
    for (uint32_t node = 1; node < p->node_count; node++) {
        json_comma(out, node - 1);
        output_u64(out, p->nodes[node].frame - 1);
    }
    output_text(out, "],\"prefix\":[");
    for (uint32_t node = 1; node < p->node_count; node++) {
        json_comma(out, node - 1);
        if (p->nodes[node].parent)
            output_u64(out, p->nodes[node].parent - 1);
        else
            output_text(out, "null");
    }
    output_text(out, "]}");
}

/* One entry per frame of ours; nothing is known of addresses. */
static void write_frames(struct firefox *w)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    size_t count = p->frame_count > 1 ? p->frame_count - 1 : 0;
    output_text(out, ",\n\"frameTable\":{\"length\":");
    output_u64(out, count);
    write_constant(out, "address", count, "-1");
    write_constant(out, "inlineDepth", count, "0");
    output_text(out, ",\"category\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        json_comma(out, id - 1);
        output_u64(out, frame_category(&p->frames[id]));
    }
    output_char(out, ']');
    write_constant(out, "subcategory", count, "0");
    output_text(out, ",\"func\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        output_u64(out, i);
    }
    output_char(out, ']');
    write_constant(out, "nativeSymbol", count, "null");
    write_constant(out, "innerWindowID", count, "0");
    output_text(out, ",\"line\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        json_comma(out, id - 1);
        if (p->frames[id].line)
            output_u64(out, p->frames[id].line);
        else
            output_text(out, "null");
    }
    output_char(out, ']');
    write_constant(out, "column", count, "null");
    output_char(out, '}');
}

static void write_functions(struct firefox *w)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    size_t count = p->frame_count > 1 ? p->frame_count - 1 : 0;
    output_text(out, ",\n\"funcTable\":{\"length\":");
    output_u64(out, count);
    output_text(out, ",\"name\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        json_comma(out, id - 1);
        buffer_clear(&w->scratch);
        frame_text_name(&w->scratch, &p->frames[id], w->options);
        output_u64(out, intern_add(&w->strings, buffer_span(&w->scratch)));
    }
    output_text(out, "],\"resource\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        json_comma(out, id - 1);
        uint32_t module = intern_cstr(&w->modules, p->frames[id].module);
        if (module)
            output_u64(out, module - 1);
        else
            output_text(out, "-1");
    }
    output_text(out, "],\"source\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        json_comma(out, id - 1);
        uint32_t source = intern_cstr(&w->sources, p->frames[id].file ? p->frames[id].file : "");
        if (source)
            output_u64(out, source - 1);
        else
            output_text(out, "null");
    }
    output_char(out, ']');
    write_constant(out, "isJS", count, "false");
    write_constant(out, "relevantForJS", count, "false");
    write_constant(out, "lineNumber", count, "null");
    write_constant(out, "columnNumber", count, "null");
    output_char(out, '}');
}

static void write_modules(struct firefox *w)
{
    struct output *out = w->out;
    size_t count = w->modules.count - 1;
    output_text(out, ",\n\"resourceTable\":{\"length\":");
    output_u64(out, count);
    output_text(out, ",\"lib\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        output_u64(out, i);
    }
    output_char(out, ']');
    write_string_column(out, "name", &w->modules, &w->strings);
    write_constant(out, "host", count, "null");
    output_text(out, ",\"type\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        output_u64(out, RESOURCE_LIBRARY);
    }
    output_text(out, "]},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
                     "\"functionSize\":[]},\"sources\":{\"length\":");
    output_u64(out, w->sources.count - 1);
    write_constant(out, "uuid", w->sources.count - 1, "null");
    write_string_column(out, "filename", &w->sources, &w->strings);
    output_char(out, '}');
}

/* Last of the shared tables: by now every string is known. */
static void write_strings(struct firefox *w)
{
    output_text(w->out, ",\n\"stringArray\":[");
    for (uint32_t id = 0; id < w->strings.count; id++) {
        json_comma(w->out, id);
        json_text_string(w->out, intern_text(&w->strings, id));
    }
    output_char(w->out, ']');
}

/* What was sampled at a rate counts as samples, and CPU time is a column of its own; else the weights. */
static void write_weights(const struct profile *p, const uint32_t *samples, size_t count, struct output *out)
{
    if (p->rate_hz > 0) {
        output_text(out, ",\"weight\":null,\"weightType\":\"samples\"");
        if (!counts_ns(p))
            return;
        output_text(out, ",\"threadCPUDelta\":[");
    } else {
        const char *type = strcmp(p->weight_unit, "bytes") == 0 ? "bytes" : "samples";
        output_text(out, ",\"weightType\":\"");
        output_text(out, counts_ns(p) ? "tracing-ms" : type);
        output_text(out, "\",\"weight\":[");
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t weight = p->sample_weight[samples[i]];
        json_comma(out, i);
        if (is_cpu(p))
            output_u64(out, weight / 1000);
        else if (counts_ns(p))
            write_ms(out, weight);
        else
            output_u64(out, weight);
    }
    output_char(out, ']');
}

static void write_thread_samples(const struct profile *p, const uint32_t *samples, size_t count,
                                 struct output *out)
{
    output_text(out, ",\"samples\":{\"length\":");
    output_u64(out, count);
    output_text(out, ",\"stack\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        if (p->sample_node[samples[i]])
            output_u64(out, p->sample_node[samples[i]] - 1);
        else
            output_text(out, "null");
    }
    output_text(out, "],\"time\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        write_ms(out, p->sample_time_ns[samples[i]]);
    }
    output_char(out, ']');
    write_weights(p, samples, count, out);
    output_char(out, '}');
}

static void write_thread(struct firefox *w, uint32_t id, const uint32_t *samples, size_t count)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    const struct profile_thread *thread = &p->threads[id];
    output_text(out, "\n{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
                     "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[]");
    json_member(out, false, "name", profile_thread_comm(p, id));
    json_member(out, false, "processName", profile_thread_process(p, id));
    output_text(out, ",\"isMainThread\":");
    output_text(out, thread->pid == thread->tid ? "true" : "false");
    output_text(out, ",\"pid\":\"");
    output_u64(out, thread->pid);
    output_char(out, '"');
    json_member_u64(out, "tid", thread->tid);
    firefox_marks_write(&w->marks, id);
    write_thread_samples(p, samples, count, out);
    output_char(out, '}');
}

static void write_threads(struct firefox *w)
{
    const struct profile *p = w->profile;
    struct output *out = w->out;
    struct thread_samples by_thread;
    thread_samples_init(&by_thread, p);
    output_text(out, ",\n\"threads\":[");
    size_t written = 0;
    for (uint32_t id = 0; id < p->thread_count && !out->failed; id++) {
        size_t start = by_thread.start[id], count = by_thread.start[id + 1] - start;
        if (count == 0)
            continue;
        json_comma(out, written++);
        write_thread(w, id, by_thread.sample + start, count);
    }
    output_char(out, ']');
    thread_samples_done(&by_thread);
}

bool firefox_write(const struct profile *p, const struct export_options *options, struct output *out,
                   struct error *err)
{
    struct firefox w = { .profile = p, .options = options, .out = out };
    intern_init(&w.strings, SIZE_MAX);
    intern_init(&w.modules, SIZE_MAX);
    intern_init(&w.sources, SIZE_MAX);
    buffer_init(&w.scratch, SIZE_MAX);

    write_meta(&w);
    output_text(out, ",\n\"shared\":{");
    write_stacks(&w);
    write_frames(&w);
    write_functions(&w);
    write_modules(&w);
    firefox_marks_init(&w.marks, p, &w.strings, CATEGORY_RUNTIME, out);
    write_strings(&w);
    output_char(out, '}');
    write_libraries(&w);
    firefox_marks_write_sizes(&w.marks);
    write_threads(&w);
    output_text(out, "}\n");

    firefox_marks_done(&w.marks);
    buffer_done(&w.scratch);
    intern_done(&w.strings);
    intern_done(&w.modules);
    intern_done(&w.sources);
    return output_ok(out, err);
}
