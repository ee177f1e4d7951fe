#include "render/flame_html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/own.h"
#include "render/flame_layout.h"
#include "render/frame_colour.h"
#include "render/json_text.h"
#include "render/page_section.h"
#include "render/shown_text.h"
#include "render/web_files.h"

enum { COLUMNS_BYTES_MAX = 1 << 30 };

struct page {
    const struct profile *profile;
    const char *title;
    struct flame_layout layout;
    uint64_t weight_step; /* divides every sample's weight */
    uint64_t tick_ns;
    struct output *out;
};

enum { VARINT_BYTES_MAX = 10 };

/* Room for `count` varints at once, so that the loops need no check per number; NULL past the ceiling. */
static uint8_t *columns_reserve(struct buffer *b, size_t count)
{
    return buffer_reserve(b, count > COLUMNS_BYTES_MAX ? SIZE_MAX : count * VARINT_BYTES_MAX);
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static void put_texts(struct buffer *b, const struct intern *texts, struct buffer *scratch)
{
    buffer_varuint(b, texts->count);
    for (uint32_t i = 0; i < texts->count; i++) {
        buffer_clear(scratch);
        shown_text_plain(scratch, intern_text(texts, i));
        buffer_varuint(b, scratch->size);
        buffer_append(b, scratch->data, scratch->size);
    }
}

static void put_frame_row(struct buffer *b, const struct profile_frame *frame, struct intern *modules,
                          struct intern *files)
{
    buffer_varuint(b, intern_cstr(modules, frame->module));
    buffer_u8(b, frame->kind);
    buffer_u8(b, frame->tier);
    buffer_u8(b, (uint8_t)frame_family_of(frame));
    buffer_varuint(b, frame_colour_index(frame));
    buffer_varuint(b, frame->file ? intern_cstr(files, frame->file) : 0);
    buffer_varuint(b, frame->line);
}

static void frames_columns(const struct page *page, struct buffer *out)
{
    struct buffer names[2], rows; /* names: this frame's and the one's before */
    buffer_init(&names[0], COLUMNS_BYTES_MAX);
    buffer_init(&names[1], COLUMNS_BYTES_MAX);
    buffer_init(&rows, COLUMNS_BYTES_MAX);
    struct intern modules, files;
    intern_init(&modules, COLUMNS_BYTES_MAX);
    intern_init(&files, COLUMNS_BYTES_MAX);
    for (uint32_t i = 0; i < page->layout.frame_count; i++) {
        const struct profile_frame *frame = &page->profile->frames[page->layout.frames[i]];
        struct buffer *name = &names[i % 2], *before = &names[(i + 1) % 2];
        buffer_clear(name);
        shown_text_plain(name, frame->name);
        size_t shared = 0;
        while (shared < name->size && shared < before->size && name->data[shared] == before->data[shared])
            shared++;
        buffer_varuint(&rows, shared);
        buffer_varuint(&rows, name->size - shared);
        if (name->size > shared)
            buffer_append(&rows, name->data + shared, name->size - shared);
        put_frame_row(&rows, frame, &modules, &files);
    }
    put_texts(out, &modules, &names[0]);
    put_texts(out, &files, &names[0]);
    buffer_varuint(out, page->layout.frame_count);
    buffer_append(out, rows.data, rows.size);
    out->failed |= rows.failed;
    buffer_done(&names[0]);
    buffer_done(&names[1]);
    buffer_done(&rows);
    intern_done(&modules);
    intern_done(&files);
}

static void nodes_columns(const struct page *page, struct buffer *out)
{
    const struct flame_layout *layout = &page->layout;
    buffer_varuint(out, layout->count - 1);
    uint8_t *start = columns_reserve(out, (size_t)layout->count * 2), *at = start;
    if (!start)
        return;
    for (uint32_t i = 1; i < layout->count; i++)
        at = put_varint(at, layout->boxes[i - 1].depth + 1 - layout->boxes[i].depth);
    for (uint32_t i = 1; i < layout->count; i++)
        at = put_varint(at, layout->boxes[i].rank);
    out->size += (size_t)(at - start);
    start = at = columns_reserve(out, layout->count);
    if (!start)
        return;
    for (uint32_t i = 0; i < layout->count; i++)
        at = put_varint(at, page->profile->self[layout->boxes[i].node] / page->weight_step);
    out->size += (size_t)(at - start);
}

static void samples_columns(const struct page *page, struct buffer *out)
{
    const struct profile *p = page->profile;
    size_t count = p->sample_count;
    bool weighted = false;
    for (size_t i = 0; i < count && !weighted; i++)
        weighted = p->sample_weight[i] != page->weight_step;
    buffer_varuint(out, count);
    buffer_u8(out, weighted);

    uint8_t *start = columns_reserve(out, count * 2), *at = start;
    if (!start)
        return;
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t tick = p->sample_time_ns[i] / page->tick_ns;
        tick = tick < before ? before : tick;
        at = put_varint(at, tick - before);
        before = tick;
    }
    for (size_t i = 0; i < count; i++)
        at = put_varint(at, p->sample_thread[i]);
    out->size += (size_t)(at - start);

    AUTO_FREE uint32_t *last = mem_alloc(p->thread_count + (size_t)1, sizeof *last);
    start = at = columns_reserve(out, count * 2);
    if (!start)
        return;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = page->layout.of_node[p->sample_node[i]];
        uint32_t *of_thread = &last[p->sample_thread[i]];
        at = put_varint(at, zigzag((int64_t)node - *of_thread));
        *of_thread = node;
    }
    for (size_t i = 0; i < count && weighted; i++)
        at = put_varint(at, p->sample_weight[i] / page->weight_step);
    out->size += (size_t)(at - start);
}

static bool section(const struct page *page, const char *id,
                    void (*fill)(const struct page *page, struct buffer *out), struct error *err)
{
    struct buffer columns;
    buffer_init(&columns, COLUMNS_BYTES_MAX);
    fill(page, &columns);
    bool ok = columns.failed ? error_set(err, ERROR_LIMIT, "the page's %s are larger than 1 GiB", id)
                             : page_section_write(page->out, id, buffer_span(&columns), err);
    buffer_done(&columns);
    return ok;
}

static void meta_counts(struct output *out, const struct profile_counts *c)
{
    output_text(out, ",\"counts\":{\"samples\":");
    output_u64(out, c->samples);
    json_member_u64(out, "weight", c->weight);
    json_member_u64(out, "lost", c->lost);
    output_text(out, ",\"lost_by\":{");
    for (int i = 0, shown = 0; i < LOSS_REASONS; i++) {
        if (!c->lost_by[i])
            continue;
        json_comma(out, (size_t)shown++);
        json_text_string(out, loss_reason_name((enum loss_reason)i));
        output_char(out, ':');
        output_u64(out, c->lost_by[i]);
    }
    output_char(out, '}');
    json_member_u64(out, "whole", c->whole);
    json_member_u64(out, "truncated", c->truncated);
    json_member_u64(out, "broken", c->broken);
    json_member_u64(out, "user_frames", c->user_frames);
    json_member_u64(out, "named", c->named);
    json_member_u64(out, "native_without_symbols", c->native_without_symbols);
    json_member_u64(out, "unnamed", c->unnamed);
    output_char(out, '}');
}

static void meta_threads(struct output *out, const struct profile *p)
{
    output_text(out, ",\"threads\":[null");
    for (uint32_t i = 1; i < p->thread_count; i++) {
        const struct profile_thread *t = &p->threads[i];
        output_text(out, ",\n{\"pid\":");
        output_u64(out, t->pid);
        json_member_u64(out, "tid", t->tid);
        json_member(out, false, "name", t->name);
        json_member(out, false, "process", t->process_name);
        json_member_u64(out, "samples", t->samples);
        output_char(out, '}');
    }
    output_char(out, ']');
}

static void meta_processes(struct output *out, const struct profile *p)
{
    output_text(out, ",\"processes\":[");
    for (uint32_t i = 1; i < p->process_count; i++) {
        json_comma(out, i - 1);
        output_text(out, "{\"pid\":");
        output_u64(out, p->processes[i].pid);
        json_member(out, false, "name", p->processes[i].name);
        output_text(out, ",\"runtime_version\":");
        json_string_or_null(out, p->processes[i].runtime_version);
        output_text(out, ",\"container\":");
        json_string_or_null(out, p->processes[i].container);
        output_char(out, '}');
    }
    output_char(out, ']');
}

static void meta_colour(struct output *out, struct frame_colour colour)
{
    struct buffer text;
    buffer_init(&text, 64);
    buffer_format(&text, "[\"#%06x\",\"#%06x\"]", colour.light, colour.dark);
    output_write(out, text.data, text.size);
    buffer_done(&text);
}

static void meta_vocabulary(struct output *out)
{
    output_text(out, ",\"families\":[");
    for (int i = 0; i < FRAME_FAMILIES; i++) {
        json_comma(out, (size_t)i);
        output_text(out, "{\"name\":");
        json_text_string(out, frame_family_name((enum frame_family)i));
        output_text(out, ",\"colour\":");
        meta_colour(out, frame_family_colour((enum frame_family)i));
        output_char(out, '}');
    }
    output_text(out, "],\"colours\":[");
    for (uint32_t i = 0; i < FRAME_COLOURS; i++) {
        json_comma(out, i);
        meta_colour(out, frame_colour_at(i));
    }
    output_text(out, "],\"kinds\":[");
    for (int i = 0; i < CODE_KINDS; i++) {
        json_comma(out, (size_t)i);
        json_text_string(out, code_kind_name((enum code_kind)i));
    }
    output_text(out, "],\"tiers\":[null");
    for (int i = 1; i < CODE_TIERS; i++) {
        output_char(out, ',');
        json_text_string(out, code_tier_name((enum code_tier)i));
    }
    output_char(out, ']');
}

static void meta_write(const struct page *page)
{
    const struct profile *p = page->profile;
    struct output *out = page->out;
    output_text(out, "<script type=\"application/json\" id=\"meta\">{");
    json_member(out, true, "format", "clrperf-report/1");
    json_member(out, false, "title", page->title);
    json_member(out, false, "event", p->event);
    json_member(out, false, "unit", p->weight_unit);
    json_member_u64(out, "start_realtime_ms", p->start_realtime_ns / 1000000);
    json_member_u64(out, "duration_ns", p->duration_ns);
    output_text(out, ",\"rate_hz\":");
    json_text_double(out, p->rate_hz);
    json_member_u64(out, "tick_ns", page->tick_ns);
    json_member_u64(out, "weight_step", page->weight_step);
    meta_counts(out, &p->counts);
    meta_threads(out, p);
    meta_processes(out, p);
    meta_vocabulary(out);
    output_text(out, "}</script>\n");
}

static void escaped(struct output *out, const char *text)
{
    struct buffer clean;
    buffer_init(&clean, COLUMNS_BYTES_MAX);
    shown_text_xml(&clean, text);
    output_write(out, clean.data, clean.size);
    buffer_done(&clean);
}

/* What stands for @@NAME@@ in web/flame.html. */
static bool page_part(const struct page *page, struct span name, struct error *err)
{
    struct output *out = page->out;
    if (span_equals(name, span_of("TITLE", 5)))
        escaped(out, page->title);
    else if (span_equals(name, span_of("CSS", 3)))
        output_span(out, web_flame_css.text);
    else if (span_equals(name, span_of("CSS_HASH", 8)))
        output_text(out, web_flame_css.sha256);
    else if (span_equals(name, span_of("JS", 2)))
        output_span(out, web_flame_js.text);
    else if (span_equals(name, span_of("JS_HASH", 7)))
        output_text(out, web_flame_js.sha256);
    else if (span_equals(name, span_of("TREE", 4))) {
        meta_write(page);
        return section(page, "frames", frames_columns, err) && section(page, "nodes", nodes_columns, err);
    } else if (span_equals(name, span_of("SAMPLES", 7)))
        return section(page, "samples", samples_columns, err);
    return true;
}

static bool page_write(const struct page *page, struct error *err)
{
    const char *at = (const char *)web_flame_html.text.data;
    for (;;) {
        const char *open = strstr(at, "@@");
        const char *close = open ? strstr(open + 2, "@@") : NULL;
        if (!close) {
            output_text(page->out, at);
            return output_ok(page->out, err);
        }
        output_write(page->out, at, (size_t)(open - at));
        if (!page_part(page, span_of(open + 2, (size_t)(close - open - 2)), err))
            return false;
        at = close + 2;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t weight_step_of(const struct profile *p)
{
    uint64_t step = 0;
    for (size_t i = 0; i < p->sample_count && step != 1; i++)
        if (p->sample_weight[i] != step)
            step = common_divisor(step, p->sample_weight[i]);
    return step ? step : 1;
}

/* A microsecond, or as much more as keeps the times of a long capture small: about 2^22 ticks. */
static uint64_t tick_of(const struct profile *p)
{
    uint64_t tick = 1000;
    while (p->duration_ns / tick > 1 << 22)
        tick *= 2;
    return tick;
}

bool flame_html_write(const struct profile *profile, const struct export_options *options, struct output *out,
                      struct error *err)
{
    struct page page = {
        .profile = profile,
        .title = options && options->title ? options->title : profile->title,
        .weight_step = weight_step_of(profile),
        .tick_ns = tick_of(profile),
        .out = out,
    };
    flame_layout_init(&page.layout, profile, 0);
    flame_layout_index_nodes(&page.layout);
    bool ok = page_write(&page, err);
    flame_layout_done(&page.layout);
    return ok;
}
