#include "render/perf_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "render/frame_text.h"

/* A leading "(anonymous namespace)" or "(" becomes "[anonymous namespace]" or "[". */
static void replace_leading_parenthesis(struct buffer *text, size_t start)
{
    if (text->size == start || text->data[start] != '(')
        return;
    text->data[start] = '[';
    uint8_t *closing = memchr(text->data + start, ')', text->size - start);
    if (closing)
        *closing = ']';
}

static void replace_arrows(struct buffer *text, size_t start)
{
    for (size_t i = start; i + 1 < text->size; i++) {
        if (text->data[i] == '-' && text->data[i + 1] == '>')
            text->data[i] = '=';
    }
}

/* An assembly's name; of code that was read from a perf map or the like it is that file's. */
static bool is_assembly(const char *module)
{
    struct span name = span_of(module, strlen(module));
    return name.size && module[0] != '[' && !span_begins(name, "jitted-") && !span_begins(name, "memfd:") &&
           !span_ends(name, ".map");
}

/* What perf puts in parentheses: a path, never with white space or parentheses in it. */
static void render_dso(struct buffer *into, const struct profile_frame *frame)
{
    size_t start = into->size;
    bool of_assembly = code_kind_is_managed(frame->kind) && is_assembly(frame->module);
    if (of_assembly && frame->kind != CODE_R2R)
        buffer_string(into, "jitted/"); /* by which import/perf_script_import.c knows it again */
    if (frame->kind == CODE_KERNEL || frame->kind == CODE_IDLE)
        buffer_string(into, "[kernel.kallsyms]"); /* readers know kernel frames by this name */
    else
        buffer_string(into, *frame->module ? frame->module : "[unknown]");
    if (of_assembly)
        buffer_string(into, ".dll"); /* by which readers, ours too, know managed code from native */
    for (size_t i = start; i < into->size; i++) {
        if (isspace(into->data[i]) || into->data[i] == '(' || into->data[i] == ')')
            into->data[i] = '_';
    }
}

static void render_line(struct buffer *into, const struct profile_frame *frame, uint32_t id,
                        const struct export_options *options)
{
    buffer_format(into, "\t%16x ", id);
    size_t start = into->size;
    frame_text_name(into, frame, options);
    if (into->size == start)
        buffer_string(into, "[unknown]");
    frame_text_replace(into, start, '+', '/');
    frame_text_replace(into, start, ';', ':');
    frame_text_replace_controls(into, start, ' ');
    replace_arrows(into, start);
    replace_leading_parenthesis(into, start);
    buffer_string(into, " (");
    render_dso(into, frame);
    buffer_string(into, ")\n");
}

/*
 * "comm pid/tid [" of a thread. Readers find the ids as the first number behind white space, so none
 * may stand in the comm.
 */
static void render_thread(struct buffer *into, const struct profile *p, uint32_t thread)
{
    const char *comm = profile_thread_comm(p, thread);
    for (size_t i = 0; comm[i]; i++) {
        bool breaks = (comm[i] == ' ' && (i == 0 || isdigit((unsigned char)comm[i + 1]))) ||
                      (comm[i] != ' ' && isspace((unsigned char)comm[i])) || (i == 0 && comm[i] == '#');
        buffer_u8(into, breaks ? '_' : (uint8_t)(comm[i] == ';' ? ':' : comm[i]));
    }
    if (strlen(comm) == 1)
        buffer_u8(into, ' '); /* stackcollapse-perf wants two characters before the white space */
    bool known = thread < p->thread_count;
    buffer_format(into, " %u/%u [", known ? p->threads[thread].pid : 0, known ? p->threads[thread].tid : 0);
}

static void write_sample(const struct profile *p, const struct frame_texts *frames, struct span thread,
                         const char *event, size_t sample, struct output *out)
{
    output_span(out, thread);
    output_u64_padded(out, p->sample_cpu[sample], 3);
    output_text(out, "] ");
    output_fixed(out, (p->start_monotonic_ns + p->sample_time_ns[sample]) / 1000, 6);
    output_text(out, ": ");
    output_u64(out, p->sample_weight[sample]);
    output_char(out, ' ');
    output_text(out, event);
    output_text(out, ": \n");
    for (uint32_t node = p->sample_node[sample]; node != 0; node = p->nodes[node].parent)
        output_span(out, frame_text(frames, p->nodes[node].frame));
    output_char(out, '\n');
}

/* An event name without white space; the readers take the word before the last colon. */
static char *event_name(const struct profile *p)
{
    char *event = mem_copy_string(p->event && *p->event ? p->event : "samples");
    for (char *at = event; *at; at++) {
        if (isspace((unsigned char)*at))
            *at = '_';
    }
    return event;
}

bool perf_text_write(const struct profile *p, const struct export_options *options, struct output *out,
                     struct error *err)
{
    struct frame_texts frames;
    struct buffer threads;
    char *event = event_name(p);
    size_t *start = mem_alloc((size_t)p->thread_count + 1, sizeof *start);

    buffer_init(&threads, SIZE_MAX);
    for (uint32_t thread = 0; thread < p->thread_count; thread++) {
        start[thread] = threads.size;
        render_thread(&threads, p, thread);
    }
    start[p->thread_count] = threads.size;
    frame_texts_init(&frames, p, options, render_line);
    for (size_t i = 0; i < p->sample_count && !out->failed; i++) {
        size_t from = start[p->sample_thread[i]], to = start[p->sample_thread[i] + 1];
        write_sample(p, &frames, span_of(threads.data + from, to - from), event, i, out);
    }
    frame_texts_done(&frames);
    buffer_done(&threads);
    free(start);
    free(event);
    return output_ok(out, err);
}
