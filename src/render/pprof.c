#include "render/pprof.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "render/frame_text.h"
#include "render/sample_groups.h"

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,
    SAMPLE_LOCATION_ID = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,
    LABEL_NUM_UNIT = 4,
    MAPPING_ID = 1,
    MAPPING_FILENAME = 5,
    MAPPING_HAS_FUNCTIONS = 7,
    LOCATION_ID = 1,
    LOCATION_MAPPING_ID = 2,
    LOCATION_LINE = 4,
    LINE_FUNCTION_ID = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_FILENAME = 4,

    WIRE_VARINT = 0,
    WIRE_BYTES = 2,
};

struct pprof {
    const struct profile *profile;
    const struct export_options *options;
    struct output *out;
    struct intern strings; /* ids are indices of string_table */
    struct intern modules; /* ids are mapping ids; 1 is the first process */
    struct buffer message, inner, packed;
    bool no_stack; /* some sample has no frame at all */
};

static void put_varint(struct buffer *b, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    buffer_varuint(b, field << 3 | WIRE_VARINT);
    buffer_varuint(b, value);
}

static void put_bytes(struct buffer *b, unsigned field, struct span bytes)
{
    buffer_varuint(b, field << 3 | WIRE_BYTES);
    buffer_varuint(b, bytes.size);
    buffer_append(b, bytes.data, bytes.size);
}

static uint32_t string_index(struct pprof *w, const char *text)
{
    return intern_cstr(&w->strings, text ? text : "");
}

/* Passes a field of Profile on to the output. */
static void write_field(struct pprof *w, unsigned field, struct span bytes)
{
    buffer_clear(&w->packed);
    put_bytes(&w->packed, field, bytes);
    output_span(w->out, buffer_span(&w->packed));
}

static void write_number(struct pprof *w, unsigned field, uint64_t value)
{
    buffer_clear(&w->packed);
    put_varint(&w->packed, field, value);
    output_span(w->out, buffer_span(&w->packed));
}

static void write_value_type(struct pprof *w, unsigned field, const char *type, const char *unit)
{
    buffer_clear(&w->message);
    put_varint(&w->message, VALUE_TYPE_TYPE, string_index(w, type));
    put_varint(&w->message, VALUE_TYPE_UNIT, string_index(w, unit));
    write_field(w, field, buffer_span(&w->message));
}

static bool has_weight(const struct profile *p)
{
    return strcmp(p->weight_unit, "samples") != 0;
}

static bool counts_ns(const struct profile *p)
{
    return strcmp(p->weight_unit, "ns") == 0;
}

/* pprof's own word for on-CPU time; anything else keeps the name of its event. */
static const char *weight_type(const struct profile *p)
{
    bool cpu = counts_ns(p) && (p->rate_hz > 0 || strncmp(p->event, "cpu", 3) == 0);
    return cpu ? "cpu" : p->event;
}

static void write_head(struct pprof *w)
{
    const struct profile *p = w->profile;
    const char *unit = counts_ns(p) ? "nanoseconds" : p->weight_unit;
    write_value_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
    if (has_weight(p)) {
        write_value_type(w, PROFILE_SAMPLE_TYPE, weight_type(p), unit);
        write_number(w, PROFILE_DEFAULT_SAMPLE_TYPE, string_index(w, weight_type(p)));
    }
    /* a capture may say any rate; a period must fit its field */
    if (p->rate_hz >= 1e-9 && p->rate_hz <= 1e9 && counts_ns(p)) {
        write_value_type(w, PROFILE_PERIOD_TYPE, weight_type(p), unit);
        write_number(w, PROFILE_PERIOD, (uint64_t)(1e9 / p->rate_hz));
    }
    write_number(w, PROFILE_TIME_NANOS, p->start_realtime_ns);
    write_number(w, PROFILE_DURATION_NANOS, p->duration_ns);
}

static void put_label(struct pprof *w, const char *key, const char *text, uint64_t number)
{
    buffer_clear(&w->inner);
    put_varint(&w->inner, LABEL_KEY, string_index(w, key));
    if (text) {
        put_varint(&w->inner, LABEL_STR, string_index(w, text));
    } else {
        put_varint(&w->inner, LABEL_NUM, number);
        put_varint(&w->inner, LABEL_NUM_UNIT, string_index(w, "id"));
    }
    put_bytes(&w->message, SAMPLE_LABEL, buffer_span(&w->inner));
}

/* pprof drops a sample without a location: one that has no stack gets this one. */
static uint32_t no_stack_id(const struct profile *p)
{
    return p->frame_count ? p->frame_count : 1;
}

static void write_sample(struct pprof *w, const struct sample_group *group)
{
    const struct profile *p = w->profile;
    buffer_clear(&w->message);
    buffer_clear(&w->inner);
    for (uint32_t node = group->node; node != 0; node = p->nodes[node].parent)
        buffer_varuint(&w->inner, p->nodes[node].frame);
    if (group->node == 0)
        buffer_varuint(&w->inner, no_stack_id(p));
    w->no_stack |= group->node == 0;
    put_bytes(&w->message, SAMPLE_LOCATION_ID, buffer_span(&w->inner));
    buffer_clear(&w->inner);
    buffer_varuint(&w->inner, group->samples);
    if (has_weight(p))
        buffer_varuint(&w->inner, group->weight);
    put_bytes(&w->message, SAMPLE_VALUE, buffer_span(&w->inner));
    put_label(w, "process", profile_thread_process(p, group->owner), 0);
    put_label(w, "pid", NULL, p->threads[group->owner].pid);
    put_label(w, "thread", profile_thread_comm(p, group->owner), 0);
    put_label(w, "tid", NULL, p->threads[group->owner].tid);
    write_field(w, PROFILE_SAMPLE, buffer_span(&w->message));
}

static void write_samples(struct pprof *w)
{
    const struct profile *p = w->profile;
    struct sample_groups groups;
    uint32_t *thread_of = mem_alloc((size_t)p->thread_count + 1, sizeof *thread_of);
    for (uint32_t thread = 0; thread < p->thread_count; thread++)
        thread_of[thread] = thread;
    sample_groups_init(&groups, p, thread_of);
    for (size_t i = 0; i < groups.count && !w->out->failed; i++)
        write_sample(w, &groups.rows[i]);
    sample_groups_done(&groups);
    free(thread_of);
}

/* A location and a function, both with the number of the frame. */
static void write_frame(struct pprof *w, uint32_t id, const struct profile_frame *frame)
{
    buffer_clear(&w->inner);
    put_varint(&w->inner, LINE_FUNCTION_ID, id);
    put_varint(&w->inner, LINE_LINE, frame->line);
    buffer_clear(&w->message);
    put_varint(&w->message, LOCATION_ID, id);
    put_varint(&w->message, LOCATION_MAPPING_ID, intern_cstr(&w->modules, frame->module));
    put_bytes(&w->message, LOCATION_LINE, buffer_span(&w->inner));
    write_field(w, PROFILE_LOCATION, buffer_span(&w->message));

    buffer_clear(&w->inner);
    frame_text_name(&w->inner, frame, w->options);
    uint32_t name = intern_add(&w->strings, buffer_span(&w->inner));
    buffer_clear(&w->message);
    put_varint(&w->message, FUNCTION_ID, id);
    put_varint(&w->message, FUNCTION_NAME, name);
    /* no system_name: pprof strips the generics and arguments of a name equal to it, as if it were C++ */
    put_varint(&w->message, FUNCTION_FILENAME, string_index(w, frame->file));
    write_field(w, PROFILE_FUNCTION, buffer_span(&w->message));
}

static void write_mappings(struct pprof *w)
{
    for (uint32_t id = 1; id < w->modules.count; id++) {
        buffer_clear(&w->message);
        put_varint(&w->message, MAPPING_ID, id);
        put_varint(&w->message, MAPPING_FILENAME, string_index(w, intern_text(&w->modules, id)));
        /* else pprof looks for the file and symbolizes it again */
        put_varint(&w->message, MAPPING_HAS_FUNCTIONS, 1);
        write_field(w, PROFILE_MAPPING, buffer_span(&w->message));
    }
}

/* What was lost belongs into the file; pprof shows comments with -comments. */
static void write_comments(struct pprof *w)
{
    const struct profile *p = w->profile;
    const struct profile_counts *c = &p->counts;
    write_number(w, PROFILE_COMMENT, string_index(w, w->options->title ? w->options->title : p->title));
    buffer_clear(&w->message);
    buffer_format(&w->message,
                  "clrperf: %llu samples, %llu lost; stacks: %llu whole, %llu truncated, %llu broken",
                  (unsigned long long)c->samples, (unsigned long long)c->lost, (unsigned long long)c->whole,
                  (unsigned long long)c->truncated, (unsigned long long)c->broken);
    write_number(w, PROFILE_COMMENT, intern_add(&w->strings, buffer_span(&w->message)));
}

static void write_strings(struct pprof *w)
{
    for (uint32_t id = 0; id < w->strings.count; id++) {
        const char *text = intern_text(&w->strings, id);
        write_field(w, PROFILE_STRING_TABLE, span_of(text, strlen(text)));
    }
}

bool pprof_write(const struct profile *p, const struct export_options *options, struct output *out,
                 struct error *err)
{
    struct pprof w = { .profile = p, .options = options, .out = out };
    intern_init(&w.strings, SIZE_MAX);
    intern_init(&w.modules, SIZE_MAX);
    buffer_init(&w.message, SIZE_MAX);
    buffer_init(&w.inner, SIZE_MAX);
    buffer_init(&w.packed, SIZE_MAX);

    intern_cstr(&w.modules, p->process_count > 1 ? p->processes[1].name : "[unknown]");
    write_head(&w);
    write_samples(&w);
    for (uint32_t id = 1; id < p->frame_count && !out->failed; id++)
        write_frame(&w, id, &p->frames[id]);
    if (w.no_stack)
        write_frame(&w, no_stack_id(p), &(struct profile_frame){ .name = "[no stack]", .module = "" });
    write_mappings(&w);
    write_comments(&w);
    write_strings(&w);

    buffer_done(&w.message);
    buffer_done(&w.inner);
    buffer_done(&w.packed);
    intern_done(&w.strings);
    intern_done(&w.modules);
    return output_ok(out, err);
}
