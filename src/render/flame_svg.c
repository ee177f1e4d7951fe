#include "render/flame_svg.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/own.h"
#include "render/flame_layout.h"
#include "render/frame_colour.h"
#include "render/frame_label.h"
#include "render/shown_text.h"
#include "render/web_files.h"

/* Pixels. The font is monospaced, so that what fits is known without measuring. */
enum {
    SVG_WIDTH = 1200,
    SVG_MARGIN = 12,
    FLAME_WIDTH = SVG_WIDTH - 2 * SVG_MARGIN,
    FLAME_TOP = 94,
    ROW_HEIGHT = 18,
    BOX_HEIGHT = 17,
    TEXT_INDENT = 4,
    TEXT_BASELINE = 12,
    LEGEND_HEIGHT = 62,
};
#define CHARACTER_WIDTH  6.62 /* of DejaVu Sans Mono, the widest of the fonts asked for, at 11 px */
#define LEGEND_CHARACTER 6.3  /* of a proportional font at 11 px, on the generous side */
#define NARROWEST_BOX    0.1

enum { SVG_BYTES_MAX = 1 << 30 };

struct svg {
    struct buffer text;
    const struct profile *profile;
    const char *title;
    struct flame_layout layout;
    double pixels_per_weight;
    uint32_t height;
    bool in_seconds;
};

static void put_grouped(struct buffer *b, uint64_t value)
{
    if (value >= 1000) {
        put_grouped(b, value / 1000);
        buffer_u8(b, ',');
        uint32_t rest = (uint32_t)(value % 1000);
        uint8_t digits[3] = { (uint8_t)('0' + rest / 100), (uint8_t)('0' + rest / 10 % 10),
                              (uint8_t)('0' + rest % 10) };
        buffer_append(b, digits, sizeof digits);
        return;
    }
    buffer_decimal(b, value);
}

/* `value` in units of 10^-decimals, decimals at most 3. */
static void put_decimal(struct buffer *b, uint64_t value, unsigned decimals)
{
    static const uint32_t powers[] = { 1, 10, 100, 1000 };
    put_grouped(b, value / powers[decimals]);
    if (decimals == 0)
        return;
    uint8_t text[4] = { '.' };
    uint32_t rest = (uint32_t)(value % powers[decimals]);
    for (unsigned i = decimals; i > 0; i--, rest /= 10)
        text[i] = (uint8_t)('0' + rest % 10);
    buffer_append(b, text, decimals + 1);
}

/* A coordinate: never grouped, two decimals, none when they are zero. */
static void put_pixels(struct buffer *b, double pixels)
{
    uint64_t hundredths = (uint64_t)(pixels * 100 + 0.5);
    buffer_decimal(b, hundredths / 100);
    uint32_t rest = (uint32_t)(hundredths % 100);
    if (rest == 0)
        return;
    uint8_t text[3] = { '.', (uint8_t)('0' + rest / 10), (uint8_t)('0' + rest % 10) };
    buffer_append(b, text, rest % 10 ? 3 : 2);
}

#define put_literal(b, text) buffer_append((b), (text), sizeof(text) - 1)

/* The share in hundredths of a percent. */
static uint64_t share_of(uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)part / (double)whole * 10000 + 0.5) : 0;
}

static void put_share(struct buffer *b, uint64_t part, uint64_t whole)
{
    put_decimal(b, share_of(part, whole), 2);
    put_literal(b, " %");
}

static void put_weight(const struct svg *s, struct buffer *b, uint64_t weight)
{
    if (s->in_seconds) {
        put_decimal(b, (weight + 500000) / 1000000, 3);
        put_literal(b, " s");
        return;
    }
    put_grouped(b, weight);
    buffer_u8(b, ' ');
    shown_text_xml(b, s->profile->weight_unit);
}

static void put_when(struct buffer *b, uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000);
    struct tm utc;
    char text[64];
    if (gmtime_r(&seconds, &utc) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc))
        buffer_string(b, text);
}

static void put_facts(struct svg *s)
{
    const struct profile *p = s->profile;
    const struct profile_counts *c = &p->counts;
    struct buffer *b = &s->text;
    uint64_t stacks = c->whole + c->truncated + c->broken;

    shown_text_xml(b, p->event);
    if (p->rate_hz > 0)
        buffer_format(b, " at %.4g Hz", p->rate_hz);
    if (p->start_realtime_ns) {
        put_literal(b, " · ");
        put_when(b, p->start_realtime_ns);
    }
    if (p->duration_ns) { /* folded stacks tell no times */
        put_literal(b, " · ");
        put_decimal(b, p->duration_ns / 100000000, 1);
        put_literal(b, " s");
    }
    put_literal(b, " · ");
    put_grouped(b, c->samples);
    put_literal(b, " samples · ");
    put_grouped(b, c->lost);
    put_literal(b, " lost · ");
    put_share(b, c->truncated + c->broken, stacks);
    put_literal(b, " of stacks not whole · ");
    put_share(b, c->unnamed, c->user_frames);
    put_literal(b, " unnamed frames");
}

static void put_colour(struct buffer *b, uint32_t rgb)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t text[7] = { '#' };
    for (unsigned i = 0; i < 6; i++)
        text[1 + i] = (uint8_t)digits[rgb >> (20 - 4 * i) & 15];
    buffer_append(b, text, sizeof text);
}

/* One class per colour in use, and the families' own for the legend. */
static void put_colours(struct svg *s, const uint16_t *colour_of_rank, bool dark)
{
    struct buffer *b = &s->text;
    bool used[FRAME_COLOURS] = { false };
    for (uint32_t i = 0; i < s->layout.frame_count; i++)
        used[colour_of_rank[i]] = true;
    for (uint32_t i = 0; i < FRAME_COLOURS; i++) {
        if (!used[i])
            continue;
        buffer_format(b, ".c%u{fill:", (unsigned)i);
        struct frame_colour colour = frame_colour_at(i);
        put_colour(b, dark ? colour.dark : colour.light);
        put_literal(b, "}");
    }
    for (int f = 0; f < FRAME_FAMILIES; f++) {
        struct frame_colour colour = frame_family_colour((enum frame_family)f);
        buffer_format(b, ".f%d{fill:", f);
        put_colour(b, dark ? colour.dark : colour.light);
        put_literal(b, "}");
    }
}

static void put_head(struct svg *s, const uint16_t *colour_of_rank)
{
    struct buffer *b = &s->text;
    put_literal(b, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n");
    buffer_format(
        b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
        "role=\"img\">\n<title>",
        SVG_WIDTH, (unsigned)s->height, SVG_WIDTH, (unsigned)s->height);
    shown_text_xml(b, s->title);
    put_literal(b, "</title>\n<style>\n");
    buffer_append(b, web_flame_svg_css.text.data, web_flame_svg_css.text.size);
    put_colours(s, colour_of_rank, false);
    put_literal(b, "\n@media (prefers-color-scheme:dark){");
    put_colours(s, colour_of_rank, true);
    put_literal(b, "}\n</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    buffer_format(b, "<text class=\"title\" x=\"%d\" y=\"30\">", SVG_MARGIN);
    shown_text_xml_cut(b, s->title, 90);
    buffer_format(b, "</text>\n<text class=\"facts\" x=\"%d\" y=\"51\">", SVG_MARGIN);
    put_facts(s);
    put_literal(b, "</text>\n<g id=\"controls\"/>\n");
    buffer_format(b, "<text class=\"facts\" id=\"detail\" x=\"%d\" y=\"80\"></text>\n", SVG_MARGIN);
}

static void put_box_title(struct svg *s, const struct flame_box *box)
{
    struct buffer *b = &s->text;
    if (box->depth == 0) {
        put_literal(b, "all");
    } else {
        const struct profile_frame *frame = &s->profile->frames[s->layout.frames[box->rank]];
        shown_text_xml(b, frame->name);
        put_literal(b, " (");
        if (frame->module[0]) {
            shown_text_xml(b, frame->module);
            put_literal(b, ", ");
        }
        buffer_string(b, code_kind_name((enum code_kind)frame->kind));
        const char *tier = code_tier_name((enum code_tier)frame->tier);
        if (tier && frame->tier != TIER_R2R) {
            put_literal(b, " ");
            buffer_string(b, tier);
        }
        put_literal(b, ")");
    }
    put_literal(b, " ");
    put_weight(s, b, box->weight);
    put_literal(b, ", ");
    put_share(b, box->weight, s->layout.boxes[0].weight);
}

static void put_box_label(struct svg *s, const struct flame_box *box, double x, uint32_t y, double width)
{
    if (width < 3 * CHARACTER_WIDTH + 2 * TEXT_INDENT)
        return;
    struct buffer *b = &s->text;
    size_t room = (size_t)((width - 2 * TEXT_INDENT) / CHARACTER_WIDTH);
    const char *name = box->depth ? s->profile->frames[s->layout.frames[box->rank]].name : "all";
    struct span label = frame_label(name, room);
    char text[256]; /* more than the width of the picture in characters, were each of them one byte */
    size_t size = label.size < sizeof text - 1 ? label.size : sizeof text - 1;
    memcpy(text, label.data, size);
    text[size] = 0;
    put_literal(b, "<text x=\"");
    put_pixels(b, x + TEXT_INDENT);
    put_literal(b, "\" y=\"");
    buffer_decimal(b, y + TEXT_BASELINE);
    put_literal(b, "\">");
    shown_text_xml_cut(b, text, room);
    put_literal(b, "</text>");
}

static void put_boxes(struct svg *s, const uint16_t *colour_of_rank)
{
    struct buffer *b = &s->text;
    put_literal(b, "<g id=\"flame\">\n");
    for (uint32_t i = 0; i < s->layout.count; i++) {
        const struct flame_box *box = &s->layout.boxes[i];
        double x = SVG_MARGIN + (double)box->start * s->pixels_per_weight;
        double width = (double)box->weight * s->pixels_per_weight;
        uint32_t y = FLAME_TOP + (s->layout.depth - box->depth) * ROW_HEIGHT;
        if (box->depth == 0) {
            put_literal(b, "<g class=\"all");
        } else {
            put_literal(b, "<g class=\"c");
            buffer_decimal(b, colour_of_rank[box->rank]);
        }
        put_literal(b, "\"><title>");
        put_box_title(s, box);
        put_literal(b, "</title><rect x=\"");
        put_pixels(b, x);
        put_literal(b, "\" y=\"");
        buffer_decimal(b, y);
        put_literal(b, "\" width=\"");
        put_pixels(b, width);
        put_literal(b, "\" height=\"17\"/>");
        put_box_label(s, box, x, y, width);
        put_literal(b, "</g>\n");
    }
    put_literal(b, "</g>\n");
}

static void put_legend(struct svg *s)
{
    struct buffer *b = &s->text;
    const struct profile *p = s->profile;
    uint64_t self[FRAME_FAMILIES] = { 0 };
    for (uint32_t n = 1; n < p->node_count; n++)
        if (p->self[n])
            self[frame_family_of(&p->frames[p->nodes[n].frame])] += p->self[n];
    uint32_t x = SVG_MARGIN, y = s->height - LEGEND_HEIGHT + 22;
    put_literal(b, "<g id=\"legend\">\n");
    for (int f = 0; f < FRAME_FAMILIES; f++) {
        if (!self[f])
            continue;
        const char *name = frame_family_name((enum frame_family)f);
        buffer_format(b, "<rect class=\"f%d\" x=\"%u\" y=\"%u\" width=\"11\" height=\"11\" rx=\"3\"/>", f,
                      (unsigned)x, (unsigned)y);
        buffer_format(b, "<text x=\"%u\" y=\"%u\">%s ", (unsigned)x + 16, (unsigned)y + 10, name);
        put_decimal(b, (share_of(self[f], p->counts.weight) + 5) / 10, 1);
        put_literal(b, " %</text>\n");
        x += 16 + (uint32_t)((double)(strlen(name) + 7) * LEGEND_CHARACTER) + 10;
    }
    put_literal(b, "</g>\n");
    uint32_t left_out = p->node_count - s->layout.count;
    buffer_format(b, "<text class=\"facts\" x=\"%d\" y=\"%u\">Width is %s; frames are ordered by name.",
                  SVG_MARGIN, (unsigned)s->height - 8, s->in_seconds ? "time" : "weight");
    if (left_out) {
        put_literal(b, " ");
        put_grouped(b, left_out);
        put_literal(b, " frames narrower than 0.1 px are left out.");
    }
    put_literal(b, "</text>\n");
}

static void put_script(struct svg *s)
{
    struct buffer *b = &s->text;
    put_literal(b, "<script><![CDATA[\n'use strict';\nconst seconds = ");
    buffer_string(b, s->in_seconds ? "true" : "false");
    put_literal(b, ", boxes = [");
    for (uint32_t i = 0; i < s->layout.count; i++) {
        if (i)
            buffer_u8(b, ',');
        buffer_decimal(b, s->layout.boxes[i].depth);
        buffer_u8(b, ',');
        buffer_decimal(b, s->layout.boxes[i].weight);
    }
    put_literal(b, "];\n");
    buffer_append(b, web_flame_svg_js.text.data, web_flame_svg_js.text.size);
    put_literal(b, "]]></script>\n</svg>\n");
}

bool flame_svg_write(const struct profile *profile, const struct export_options *options, struct output *out,
                     struct error *err)
{
    struct svg s = { .profile = profile, .in_seconds = strcmp(profile->weight_unit, "ns") == 0 };
    s.title = options && options->title ? options->title : profile->title;
    uint64_t weight = profile->total[0];
    double narrowest = NARROWEST_BOX * (double)weight / FLAME_WIDTH;
    flame_layout_init(&s.layout, profile, narrowest < 1 ? 1 : (uint64_t)narrowest + 1);
    s.pixels_per_weight = weight ? (double)FLAME_WIDTH / (double)weight : 0;
    s.height = FLAME_TOP + (s.layout.depth + 1) * ROW_HEIGHT + LEGEND_HEIGHT;
    buffer_init(&s.text, SVG_BYTES_MAX);

    AUTO_FREE uint16_t *colour_of_rank = mem_alloc(s.layout.frame_count + (size_t)1, sizeof *colour_of_rank);
    for (uint32_t i = 0; i < s.layout.frame_count; i++)
        colour_of_rank[i] = (uint16_t)frame_colour_index(&profile->frames[s.layout.frames[i]]);
    put_head(&s, colour_of_rank);
    put_boxes(&s, colour_of_rank);
    put_legend(&s);
    put_script(&s);

    bool ok = !s.text.failed || error_set(err, ERROR_LIMIT, "the picture is larger than 1 GiB");
    if (ok)
        output_write(out, s.text.data, s.text.size);
    buffer_done(&s.text);
    flame_layout_done(&s.layout);
    return ok;
}
