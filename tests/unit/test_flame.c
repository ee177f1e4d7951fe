/*
 * The flame graph's layout, labels and colours, and both files made of it. The golden SVG is
 * tests/golden/flame/small.svg without its style and script; after a wanted change, run with
 * CLRPERF_GOLDEN=write and look at the difference.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "profile_fixture.h"
#include "render/flame_html.h"
#include "render/flame_layout.h"
#include "render/flame_svg.h"
#include "render/frame_colour.h"
#include "render/frame_label.h"
#include "render/page_section.h"
#include "render/shown_text.h"

typedef void fixture_fn(struct profile *p);
static fixture_fn *const fixtures[] = { profile_fixture_small, profile_fixture_nasty, profile_fixture_empty };

static void layout_holds(const struct profile *p, const struct flame_layout *layout, uint64_t min_weight)
{
    AUTO_FREE uint64_t *inside = mem_alloc(layout->count, sizeof *inside);
    AUTO_FREE uint32_t *open = mem_alloc(layout->count + (size_t)1, sizeof *open);
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct flame_box *box = &layout->boxes[i];
        assert_int_equal(box->weight, p->total[box->node]);
        open[box->depth] = i;
        if (i == 0)
            continue;
        const struct flame_box *caller = &layout->boxes[open[box->depth - 1]];
        assert_true(box->weight >= min_weight);
        assert_true(box->depth <= layout->boxes[i - 1].depth + 1);
        assert_int_equal(caller->node, p->nodes[box->node].parent);
        assert_int_equal(box->start, caller->start + inside[open[box->depth - 1]]);
        inside[open[box->depth - 1]] += box->weight;
        assert_true(box->start + box->weight <= caller->start + caller->weight);
        assert_int_equal(layout->frames[box->rank], p->nodes[box->node].frame);
        if (box->depth <= layout->boxes[i - 1].depth)
            assert_true(box->start == caller->start || box->rank > 0);
    }
    for (uint32_t i = 1; i < layout->frame_count; i++) {
        const struct profile_frame *a = &p->frames[layout->frames[i - 1]], *b = &p->frames[layout->frames[i]];
        assert_true(strcmp(a->name, b->name) <= 0);
    }
    for (uint32_t i = 0; min_weight == 0 && i < layout->count; i++)
        assert_int_equal(inside[i], p->total[layout->boxes[i].node] - p->self[layout->boxes[i].node]);
}

static void test_layout(void **state)
{
    (void)state;
    struct profile p;
    struct flame_layout layout;
    for (size_t f = 0; f < ARRAY_LEN(fixtures); f++) {
        fixtures[f](&p);
        flame_layout_init(&layout, &p, 0);
        assert_int_equal(layout.count, p.node_count);
        layout_holds(&p, &layout, 0);
        flame_layout_done(&layout);
        profile_fixture_done(&p);
    }
    profile_fixture_large(&p, 20000);
    flame_layout_init(&layout, &p, 0);
    layout_holds(&p, &layout, 0);
    flame_layout_index_nodes(&layout);
    for (uint32_t n = 0; n < p.node_count; n++)
        assert_int_equal(layout.boxes[layout.of_node[n]].node, n);
    flame_layout_done(&layout);
    uint64_t limits[] = { 1, p.total[0] / 1000, p.total[0] / 2, p.total[0], p.total[0] + 1 };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        uint32_t kept = 1;
        for (uint32_t n = 1; n < p.node_count; n++)
            kept += p.total[n] >= limits[i];
        flame_layout_init(&layout, &p, limits[i]);
        assert_int_equal(layout.count, kept);
        layout_holds(&p, &layout, limits[i]);
        flame_layout_done(&layout);
    }
    profile_fixture_done(&p);
}

static const struct {
    const char *name;
    size_t bytes;
    const char *label;
} labels[] = {
    { "Ns.Type.Method(int)", 40, "Ns.Type.Method(int)" },
    { "Ns.Type.Method(int)", 14, "Ns.Type.Method" },
    { "Ns.Type.Method(int)", 13, "Type.Method" },
    { "Ns.Type.Method(int)", 2, "Type.Method" },
    { "A.B.Type..ctor()", 3, "Type..ctor" },
    { "A.Type<B.C<D.E>>.Run<X.Y>(Z.W)", 5, "Type<B.C<D.E>>.Run<X.Y>" },
    { "Method(int)", 3, "Method" },
    { "[call counting]", 3, "[call counting]" },
    { "(anonymous namespace)::run()", 3, "(anonymous namespace)::run" },
    { "(", 0, "(" },
    { ".", 0, "." },
    { "", 0, "" },
};

static void test_labels(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        struct span label = frame_label(labels[i].name, labels[i].bytes);
        if (!span_equals(label, span_of(labels[i].label, strlen(labels[i].label))))
            fail_msg("%s in %zu: %.*s", labels[i].name, labels[i].bytes, (int)label.size, label.data);
    }
}

static const struct {
    const char *text, *plain, *xml;
} texts[] = {
    { "a<b>&\"c'", "a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;" },
    { "a\x01\n\tb\x7f", "ab", "ab" },
    { "\xc2\x85x\xc3\xbc", "x\xc3\xbc", "x\xc3\xbc" },
    { "\xe2\x80\xaegpj", "\xef\xbf\xbdgpj", "\xef\xbf\xbdgpj" },
    { "\xff\xc0\x80|\xed\xa0\x80",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd" },
    { "\xf0\x9f\x94\xa5", "\xf0\x9f\x94\xa5", "\xf0\x9f\x94\xa5" },
    { "\xef\xbf\xbf", "\xef\xbf\xbd", "\xef\xbf\xbd" },
    { "", "", "" },
};

static void test_shown_text(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1024);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buffer_clear(&b);
        shown_text_plain(&b, texts[i].text);
        if (!span_equals(buffer_span(&b), span_of(texts[i].plain, strlen(texts[i].plain))))
            fail_msg("plain %zu: %.*s", i, (int)b.size, b.data);
        buffer_clear(&b);
        shown_text_xml(&b, texts[i].text);
        if (!span_equals(buffer_span(&b), span_of(texts[i].xml, strlen(texts[i].xml))))
            fail_msg("xml %zu: %.*s", i, (int)b.size, b.data);
    }
    buffer_clear(&b);
    shown_text_xml_cut(&b, "<abc>", 4);
    assert_true(span_equals(buffer_span(&b), span_of("&lt;a..", 7)));
    buffer_clear(&b);
    shown_text_xml_cut(&b, "<abc>", 5);
    assert_int_equal(b.size, 11);
    buffer_done(&b);
}

static void test_colours(void **state)
{
    (void)state;
    static const struct {
        struct profile_frame frame;
        enum frame_family family;
    } cases[] = {
        { { .name = "f", .module = "Shop", .kind = CODE_JIT }, FAMILY_OWN },
        { { .name = "f", .module = "Shop", .kind = CODE_R2R }, FAMILY_OWN },
        { { .name = "f", .module = "SystemOfMine", .kind = CODE_JIT }, FAMILY_OWN },
        { { .name = "f", .module = "System.Linq", .kind = CODE_JIT }, FAMILY_JIT },
        { { .name = "f", .module = "System.Private.CoreLib", .kind = CODE_R2R }, FAMILY_R2R },
        { { .name = "f", .module = "mscorlib.dll", .kind = CODE_R2R }, FAMILY_R2R },
        { { .name = "f", .module = "System.Linq", .kind = CODE_KERNEL }, FAMILY_KERNEL },
        { { .name = "f", .module = "", .kind = 200 }, FAMILY_UNKNOWN },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(frame_family_of(&cases[i].frame), cases[i].family);
        uint32_t index = frame_colour_index(&cases[i].frame);
        assert_true(index < FRAME_COLOURS);
        assert_int_equal(index / (FRAME_HUES * FRAME_LIGHTS), cases[i].family);
    }
    /* Dark text is readable on the light colours, light text on the dark ones. */
    for (uint32_t i = 0; i < FRAME_COLOURS; i++) {
        struct frame_colour c = frame_colour_at(i);
        assert_true((c.light >> 16) + (c.light >> 8 & 255) + (c.light & 255) > 360);
        assert_true((c.dark >> 16) + (c.dark >> 8 & 255) + (c.dark & 255) < 420);
    }
}

static void write_to(struct buffer *into, const struct profile *p, bool html)
{
    struct output out;
    struct error err = { 0 };
    buffer_init(into, 1 << 28);
    output_over_buffer(&out, into);
    assert_true((html ? flame_html_write : flame_svg_write)(p, NULL, &out, &err));
    assert_true(output_close(&out, &err));
    buffer_u8(into, 0);
}

/* Cuts what stands between two words out of a text, once. */
static void cut_out(char *text, const char *from, const char *to)
{
    char *start = strstr(text, from);
    char *end = start ? strstr(start, to) : NULL;
    assert_non_null(end);
    memmove(start + strlen(from), end, strlen(end) + 1);
}

static void test_svg_golden(void **state)
{
    (void)state;
    struct profile p;
    struct buffer svg;
    char golden[64 * 1024] = "";
    profile_fixture_small(&p);
    write_to(&svg, &p, false);
    cut_out((char *)svg.data, "<style>", "</style>");
    cut_out((char *)svg.data, "];\n", "]]></script>");
    const char *path = GOLDEN_DIR "/flame/small.svg";
    const char *mode = getenv("CLRPERF_GOLDEN");
    AUTO_STREAM FILE *file = fopen(path, mode ? "we" : "re");
    assert_non_null(file);
    if (mode)
        fputs((char *)svg.data, file);
    else
        assert_true(fread(golden, 1, sizeof golden - 1, file) > 0);
    if (!mode)
        assert_string_equal((char *)svg.data, golden);
    buffer_done(&svg);
    profile_fixture_done(&p);
}

/* Well-formed enough: every tag closes in order, and there are no control characters. */
static void assert_nested(const char *text)
{
    const char *open[16];
    size_t depth = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        if (at[1] == '?')
            continue;
        if (strncmp(at, "<![CDATA[", 9) == 0) {
            at = strstr(at, "]]>");
            assert_non_null(at);
            continue;
        }
        const char *end = strchr(at, '>');
        assert_non_null(end);
        if (at[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_memory_equal(open[depth] + 1, at + 2, (size_t)(end - at - 2));
        } else if (end[-1] != '/') {
            assert_true(depth < ARRAY_LEN(open));
            open[depth++] = at;
        }
    }
    assert_int_equal(depth, 0);
    for (const char *at = text; *at; at++)
        assert_true((uint8_t)*at >= 0x20 || *at == '\n');
}

static void test_svg_of_nasty_names(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_LEN(fixtures); f++) {
        struct profile p;
        struct buffer svg;
        fixtures[f](&p);
        write_to(&svg, &p, false);
        assert_nested((char *)svg.data);
        assert_null(strstr((char *)svg.data, "\xe2\x80\xae"));
        buffer_done(&svg);
        profile_fixture_done(&p);
    }
}

/* The content of a section of a page, decoded by means of our own other than the writer's. */
static void section_of(const char *page, const char *id, struct buffer *out)
{
    char open[128];
    snprintf(open, sizeof open, "<script type=\"application/octet-stream\" id=\"%s\">", id);
    const char *at = strstr(page, open);
    assert_non_null(at);
    at += strlen(open);
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buffer packed;
    buffer_init(&packed, 1 << 24);
    uint32_t bits = 0, count = 0;
    for (; *at != '<' && *at != '='; at++) {
        const char *digit = strchr(digits, *at);
        assert_non_null(digit);
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8)
            buffer_u8(&packed, (uint8_t)(bits >> (count -= 8)));
    }
    enum { UNPACKED_MAX = 1 << 22 };
    buffer_init(out, UNPACKED_MAX);
    z_stream z = { .next_in = packed.data, .avail_in = (uInt)packed.size };
    assert_int_equal(inflateInit2(&z, -15), Z_OK);
    z.next_out = buffer_reserve(out, UNPACKED_MAX);
    z.avail_out = UNPACKED_MAX;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    out->size = z.total_out;
    inflateEnd(&z);
    buffer_done(&packed);
}

static void nodes_hold(const struct profile *p, const char *page, uint64_t step)
{
    struct buffer bytes;
    section_of(page, "nodes", &bytes);
    struct cursor c = cursor_over(buffer_span(&bytes));
    uint64_t count = cursor_varuint64(&c), self = 0, depth = 0;
    assert_int_equal(count + 1, p->node_count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t up = cursor_varuint64(&c);
        assert_true(up <= depth);
        depth = depth - up + 1;
    }
    for (uint64_t i = 0; i < count; i++)
        assert_true(cursor_varuint64(&c) < p->frame_count);
    for (uint64_t i = 0; i <= count; i++)
        self += cursor_varuint64(&c) * step;
    assert_true(cursor_ok(&c));
    assert_int_equal(cursor_left(&c), 0);
    assert_int_equal(self, p->total[0]);
    buffer_done(&bytes);
}

static void samples_hold(const struct profile *p, const char *page, uint64_t step)
{
    struct buffer bytes;
    section_of(page, "samples", &bytes);
    struct cursor c = cursor_over(buffer_span(&bytes));
    uint64_t count = cursor_varuint64(&c), weight = 0, ticks = 0;
    bool weighted = cursor_u8(&c);
    assert_int_equal(count, p->sample_count);
    for (uint64_t i = 0; i < count; i++) {
        ticks += cursor_varuint64(&c);
        assert_int_equal(ticks, p->sample_time_ns[i] / 1000);
    }
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(cursor_varuint64(&c), p->sample_thread[i]);
    for (uint64_t i = 0; i < count; i++)
        cursor_zigzag64(&c);
    for (uint64_t i = 0; i < count; i++)
        weight += (weighted ? cursor_varuint64(&c) : 1) * step;
    assert_true(cursor_ok(&c));
    assert_int_equal(cursor_left(&c), 0);
    assert_int_equal(weight, p->total[0]);
    buffer_done(&bytes);
}

static void test_html(void **state)
{
    (void)state;
    for (size_t f = 0; f < ARRAY_LEN(fixtures); f++) {
        struct profile p;
        struct buffer page;
        fixtures[f](&p);
        write_to(&page, &p, true);
        const char *text = (char *)page.data;
        const char *step = strstr(text, "\"weight_step\":");
        assert_non_null(step);
        nodes_hold(&p, text, strtoull(step + 14, NULL, 10));
        samples_hold(&p, text, strtoull(step + 14, NULL, 10));
        const char *meta = strstr(text, "id=\"meta\">");
        assert_non_null(meta);
        assert_true(strcspn(meta + 10, "<") == (size_t)(strstr(meta, "</script>") - meta - 10));
        assert_null(strstr(text, "@@"));
        assert_null(strstr(text, "http://www.w3.org/1999"));
        buffer_done(&page);
        profile_fixture_done(&p);
    }
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foobar", "Zm9vYmFy" }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        struct output out;
        buffer_init(&b, 64);
        output_over_buffer(&out, &b);
        page_section_base64(&out, span_of(cases[i][0], strlen(cases[i][0])));
        assert_true(output_close(&out, NULL));
        assert_true(span_equals(buffer_span(&b), span_of(cases[i][1], strlen(cases[i][1]))));
        buffer_done(&b);
    }
}

static void test_output_that_is_full(void **state)
{
    (void)state;
    struct profile p;
    profile_fixture_small(&p);
    for (size_t ceiling = 0; ceiling < 3000; ceiling += 500) {
        struct buffer b;
        struct output out;
        struct error err = { 0 };
        buffer_init(&b, ceiling);
        output_over_buffer(&out, &b);
        bool ok = flame_html_write(&p, NULL, &out, &err);
        assert_false(output_close(&out, ok ? &err : NULL) && ok);
        assert_int_equal(err.kind, ERROR_LIMIT);
        buffer_done(&b);
    }
    profile_fixture_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_shown_text),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_svg_golden),
        cmocka_unit_test(test_svg_of_nasty_names),
        cmocka_unit_test(test_html),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_output_that_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
