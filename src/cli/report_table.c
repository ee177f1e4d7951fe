#include "cli/report_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/text_fit.h"
#include "trace/facts.h"

enum {
    REPORT_INDENT = 9,   /* of lines that go on, behind "samples  " */
    REPORT_NUMBERS = 29, /* columns, with the gap behind them */
    REPORT_KIND = 9,     /* with its gap */
    REPORT_NAME_MIN = 24,
    REPORT_NAME_LEAST = 8, /* when nothing else is left to leave out */
    REPORT_WIDE = 400,
    REPORT_MODULE_MAX = 32,
    REPORT_MODULE_LEAST = 12,
    REPORT_MATCHES_SHOWN = 3,
    TREE_INDENT_MAX = 60,
    PLACE_NAME_MIN = 12,
    PLACE_BYTES_MAX = 8192
};

const char *const report_by_names[REPORT_BY_NAMES] = { "function", "module", "type", "thread", "process" };

/* Ends a line of a table; the padding of its last column goes. */
static void end_line(struct buffer *out)
{
    while (out->size && out->data[out->size - 1] == ' ')
        out->size--;
    buffer_u8(out, '\n');
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? (double)part * 100 / (double)whole : 0;
}

static size_t text_width(const char *text)
{
    return utf8_width(span_of(text, strlen(text)));
}

static void put_cut(struct buffer *out, const char *text, size_t columns, bool pad)
{
    text_cut(out, span_of(text, strlen(text)), columns, pad);
}

/* Where a row is, when rows are lines. */
struct place {
    const char *file; /* NULL: not known */
    uint32_t line;
    bool of_method, inlined;
};

static struct place place_of_row(const struct hot_row *row, bool by_line)
{
    return by_line ? (struct place){ row->file, row->line, row->line_of_method, row->inlined }
                   : (struct place){ 0 };
}

static struct place place_of_frame(const struct profile_frame *frame, bool by_line)
{
    return by_line ? (struct place){ frame->file, frame->line, frame->line_of_method, frame->inlined }
                   : (struct place){ 0 };
}

/* " (Program.cs:42)", "~" before a line that is only its method's; " (inlined)"; or "". */
static void place_text(struct place place, struct buffer *out)
{
    const char *file = place.file;
    uint32_t line = place.line;
    buffer_clear(out);
    if (file && line) {
        const char *name = file;
        for (const char *at = file; *at; at++)
            if (*at == '/' || *at == '\\')
                name = at + 1;
        buffer_format(out, " (%s:%s%" PRIu32 ")", name, place.of_method ? "~" : "", line);
    }
    if (place.inlined)
        buffer_string(out, " (inlined)");
    buffer_u8(out, 0);
}

/* A function's name, cut so that its place still fits. */
static void put_function(struct buffer *out, const char *name, const char *place, size_t columns, bool pad)
{
    size_t behind = text_width(place), width = text_width(name);
    size_t least = width < PLACE_NAME_MIN ? width : PLACE_NAME_MIN;
    size_t before = columns >= behind + least ? columns - behind : columns;
    put_cut(out, name, before, pad && before == columns);
    if (before == columns)
        return;
    buffer_string(out, place);
    for (size_t used = (width < before ? width : before) + behind; pad && used < columns; used++)
        buffer_u8(out, ' ');
}

static void head_when(const struct profile *p, struct buffer *out)
{
    time_t seconds = (time_t)(p->start_realtime_ns / 1000000000u);
    struct tm local;
    char text[64];
    if (p->start_realtime_ns && localtime_r(&seconds, &local) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local))
        buffer_format(out, ", %s", text);
    if (p->duration_ns)
        buffer_format(out, ", %s", units_duration(p->duration_ns).text);
    if (p->rate_hz > 0)
        buffer_format(out, ", %s at %.0f Hz", p->event, p->rate_hz);
    else
        buffer_format(out, ", %s", p->event);
}

static void head_names(const struct profile *p, struct buffer *out)
{
    const struct profile_counts *n = &p->counts;
    if (!n->user_frames)
        return;
    buffer_format(out,
                  "names    %.2f %% of user frames named, %.2f %% placed in a function of a stripped image, "
                  "%.2f %% unnamed",
                  percent(n->named, n->user_frames), percent(n->native_without_symbols, n->user_frames),
                  percent(n->unnamed, n->user_frames));
    const char *comma = " (";
    for (unsigned i = 1; i < UNNAMED_CAUSES; i++) {
        if (!n->unnamed_by[i])
            continue;
        buffer_format(out, "%s%s %.2f %%", comma, unnamed_cause_name((enum unnamed_cause)i),
                      percent(n->unnamed_by[i], n->user_frames));
        comma = ", ";
    }
    buffer_string(out, n->unnamed ? ")\n" : "\n");
}

/* "runtime  GC 31.0 %, JIT 4.2 %, user code 52.1 %": the heaviest first, the program's own last. */
static void head_work(const struct profile *p, struct buffer *out)
{
    const struct profile_counts *n = &p->counts;
    bool put[WORK_CLASSES] = { [WORK_USER] = true };
    if (!n->work_known || !n->weight)
        return;
    buffer_string(out, "runtime  ");
    for (;;) {
        unsigned heaviest = WORK_USER;
        for (unsigned i = 0; i < WORK_CLASSES; i++)
            if (!put[i] && n->work[i] && (heaviest == WORK_USER || n->work[i] > n->work[heaviest]))
                heaviest = i;
        if (heaviest == WORK_USER)
            break;
        put[heaviest] = true;
        if (n->work[heaviest] >= n->weight / 2000) /* shown as more than 0.0 % */
            buffer_format(out, "%s %.1f %%, ", runtime_work_name((enum runtime_work_class)heaviest),
                          percent(n->work[heaviest], n->weight));
    }
    buffer_format(out, "%s %.1f %%", runtime_work_name(WORK_USER), percent(n->work[WORK_USER], n->weight));
    if (n->gc_untold && n->gc_untold == n->work[WORK_GC])
        buffer_string(out, "; GC holds slow allocations too, as the capture has no GC events");
    else if (n->gc_untold >= n->weight / 2000 && n->gc_untold)
        buffer_format(out, "; %.1f %% of GC holds slow allocations too, as there were no GC events then",
                      percent(n->gc_untold, n->work[WORK_GC]));
    buffer_u8(out, '\n');
}

/* "GC       63 collections: gen 0 60, gen 1 2, gen 2 1 (1 in the background); paused 120 ms (1.2 %), longest
 * 8 ms" */
static void head_collections(const struct profile *p, struct buffer *out)
{
    const struct gc_summary *gc = &p->counts.gc;
    uint64_t all = 0;
    if (!gc->processes)
        return;
    for (unsigned i = 0; i < GC_GENERATIONS; i++)
        all += gc->collections[i];
    buffer_format(out, "GC       %s collection%s", all ? units_count(all).text : "no", all == 1 ? "" : "s");
    const char *comma = ": ";
    for (unsigned i = 0; i < GC_GENERATIONS; i++) {
        if (!gc->collections[i])
            continue;
        buffer_format(out, "%sgen %u %s", comma, i, units_count(gc->collections[i]).text);
        comma = ", ";
    }
    if (gc->background)
        buffer_format(out, " (%s in the background)", units_count(gc->background).text);
    if (gc->pauses)
        buffer_format(out, "; paused %s (%.1f %%), longest %s", units_duration(gc->paused_ns).text,
                      percent(gc->paused_ns, gc->told_ns), units_duration(gc->longest_ns).text);
    buffer_u8(out, '\n');
}

static void head_loss(const struct profile *p, struct buffer *out)
{
    const struct profile_counts *n = &p->counts;
    uint64_t attempted = n->captured + n->lost;
    buffer_format(out, "samples  %s", units_count(n->samples).text);
    if (n->samples != n->recorded)
        buffer_format(out, " of %s, by the filters given", units_count(n->recorded).text);
    if (strcmp(p->weight_unit, "ns") == 0)
        buffer_format(out, ", %s of %s time", units_duration(n->weight).text, p->is_wall ? "wall" : "CPU");
    buffer_format(out, "; %s%s lost (%.2f %%)", units_count(n->lost).text,
                  n->lost && n->captured != n->recorded ? " of all events" : "", percent(n->lost, attempted));
    const char *comma = ": ";
    for (unsigned i = 0; n->lost && i < LOSS_REASONS; i++) {
        if (!n->lost_by[i])
            continue;
        buffer_format(out, "%s%s %s", comma, loss_reason_name((enum loss_reason)i),
                      units_count(n->lost_by[i]).text);
        comma = ", ";
    }
    if (p->is_wall &&
        n->lost_by[LOSS_RUNTIME]) /* samples are events like others: which were lost nobody knows */
        buffer_format(out, "; the runtime dropped at least %s events",
                      units_count(n->lost_by[LOSS_RUNTIME]).text);
    buffer_u8(out, '\n');
}

/* Of all frames, those that were found so. */
static double found_percent(const char *found, const char *way)
{
    uint64_t all = 0, such = 0, count;
    struct span name;
    while (found && trace_fact_pair(&found, &name, &count)) {
        all += count;
        if (span_equals(name, span_of(way, strlen(way))))
            such += count;
    }
    return percent(such, all);
}

/* What is known less well: where one follows frame pointers a caller can be skipped. */
static void head_found(const char *found, struct buffer *out)
{
    double guessed = found_percent(found, "frame_pointer") + found_percent(found, "kernel_chain"),
           later = found_percent(found, "later_memory");
    if (guessed >= 0.1)
        buffer_format(out, "; %.1f %% of the frames by frame pointers: callers can be missing there",
                      guessed);
    if (later >= 0.1)
        buffer_format(out, "; %.1f %% of the frames did not fit into samples: read just after them", later);
}

static void head_stacks(const struct trace *t, const struct profile *p, struct buffer *out)
{
    const struct profile_counts *n = &p->counts;
    uint64_t all = n->whole + n->truncated + n->broken;
    if (!all)
        return;
    buffer_format(out, "stacks   %.1f %% whole, %.1f %% truncated, %.1f %% broken", percent(n->whole, all),
                  percent(n->truncated, all), percent(n->broken, all));
    head_found(p->frames_found, out);
    const char *how = trace_fact_value(t, FACT_STACKS);
    if (how && strcmp(how, "frame pointers") == 0)
        buffer_string(out, "; they are frame-pointer stacks: callers of libc, of prologs and of methods in "
                           "tier osr can be missing");
    buffer_u8(out, '\n');
}

/* "state    62.1 % in managed code, 37.9 % in native code or waiting": what a sampler of wall time knows. */
static void head_states(const struct trace *t, const struct profile *p, struct buffer *out)
{
    const char *rest = trace_fact_value(t, FACT_WALL_STATES);
    struct span name;
    uint64_t value, managed = 0, all = 0;
    if (!p->is_wall || !rest)
        return;
    while (trace_fact_pair(&rest, &name, &value)) {
        all += value;
        if (span_equals(name, span_of("managed", 7)))
            managed += value;
    }
    buffer_format(out, "state    %.1f %% in managed code, %.1f %% in native code or waiting\n",
                  percent(managed, all), percent(all - managed, all));
    buffer_string(out, "note     wall time says where threads were, not that they ran on a CPU\n");
}

void report_head(const struct capture *c, const struct profile *p, size_t width, struct buffer *out)
{
    const struct trace *t = &c->b.trace;
    size_t from = out->size;
    buffer_string(out, p->title[0] ? p->title : "no process");
    for (uint32_t i = 1; i < p->process_count && p->process_count == 2; i++)
        if (p->processes[i].runtime_version)
            buffer_format(out, ", .NET %s", p->processes[i].runtime_version);
    head_when(p, out);
    const char *host = trace_fact_value(t, FACT_HOST), *kernel = trace_fact_value(t, FACT_KERNEL);
    if (host) {
        buffer_string(out, ", on ");
        utf8_escape(out, span_of(host, strlen(host)));
    }
    if (kernel) {
        buffer_string(out, ", Linux ");
        utf8_escape(out, span_of(kernel, strlen(kernel)));
    }
    buffer_u8(out, '\n');
    head_loss(p, out);
    head_stacks(t, p, out);
    head_names(p, out);
    head_work(p, out);
    head_states(t, p, out);
    head_collections(p, out);
    uint64_t cpu_ns, rss_bytes;
    if (p->duration_ns && trace_fact_number(t, FACT_SELF_CPU_NS, &cpu_ns) &&
        trace_fact_number(t, FACT_SELF_PEAK_RSS, &rss_bytes))
        buffer_format(out, "cost     clrperf used %s, %s\n", units_cpu_share(cpu_ns, p->duration_ns).text,
                      units_size(rss_bytes).text);
    if (trace_fact_value(t, FACT_KERNEL_FRAMES) && strcmp(trace_fact_value(t, FACT_KERNEL_FRAMES), "no") == 0)
        buffer_string(out, "note     user frames only: kernel stacks need root or CAP_PERFMON\n");
    buffer_u8(out, '\n');
    text_wrap(out, from, REPORT_INDENT, width);
}

/* Columns behind the numbers. */
struct report_columns {
    size_t name, module; /* 0: none */
    size_t least_name;   /* that much of a name, and the place behind it, comes before other columns */
    bool kind, when;
};

/* As wide as the rows are. */
static struct report_columns columns_of(const struct hot_table *table, size_t rows, bool lines)
{
    struct report_columns c = { .name = 8, .module = 7, .least_name = REPORT_NAME_MIN };
    struct buffer place;
    buffer_init(&place, PLACE_BYTES_MAX);
    for (size_t i = 0; i < rows; i++) {
        const struct hot_row *row = &table->rows[i];
        size_t name = text_width(row->name), module = text_width(row->module);
        if (lines) {
            place_text(place_of_row(row, true), &place);
            size_t behind = text_width((const char *)place.data);
            size_t least = behind + (name < PLACE_NAME_MIN ? name : PLACE_NAME_MIN);
            c.least_name = least > c.least_name ? least : c.least_name;
            name += behind;
        }
        c.name = name > c.name ? name : c.name;
        c.module = module > c.module ? module : c.module;
    }
    buffer_done(&place);
    c.name = c.name < REPORT_WIDE ? c.name : REPORT_WIDE;
    c.module = c.module < REPORT_MODULE_MAX ? c.module : REPORT_MODULE_MAX;
    return c;
}

/* What is left for the name. */
static size_t room_for_name(struct report_columns c, size_t width)
{
    size_t used = REPORT_NUMBERS + (c.module ? c.module + 2 : 0) + (c.kind ? REPORT_KIND : 0) +
                  (c.when ? HOT_WHEN_BUCKETS + 2 : 0);
    return width > used ? width - used : 0;
}

/* The name takes what the terminal leaves; when that is too little the strip goes first, then the others. */
static struct report_columns fit_columns(struct report_columns c, size_t width)
{
    if (!width)
        return c;
    size_t wanted = c.name < c.least_name ? c.name : c.least_name;
    c.when = c.when && room_for_name(c, width) >= c.least_name;
    c.kind = c.kind && room_for_name(c, width) >= wanted;
    if (room_for_name(c, width) < wanted)
        c.module = c.module < REPORT_MODULE_LEAST ? c.module : REPORT_MODULE_LEAST;
    if (room_for_name(c, width) < wanted)
        c.module = 0;
    size_t room = room_for_name(c, width);
    room = room > REPORT_NAME_LEAST ? room : REPORT_NAME_LEAST;
    c.name = c.name < room ? c.name : room;
    return c;
}

static size_t shown_rows(const struct hot_table *table, size_t top)
{
    return top && top < table->count ? top : table->count;
}

static void hot_titles(enum hot_by by, struct report_columns c, struct buffer *out)
{
    buffer_format(out, " self %%  total %%   samples  ");
    put_cut(out, report_by_names[by], c.name, true);
    if (c.module) {
        buffer_string(out, "  ");
        put_cut(out, by == HOT_BY_THREAD ? "process" : "module", c.module, true);
    }
    buffer_format(out, "%s%s", c.kind ? "  kind   " : "", c.when ? "  when" : "");
    end_line(out);
}

/* What is behind the numbers. */
static void put_row(const struct hot_row *row, struct place where, struct report_columns c,
                    struct buffer *out)
{
    struct buffer place;
    buffer_init(&place, PLACE_BYTES_MAX);
    place_text(where, &place);
    put_function(out, row->name, (const char *)place.data, c.name, true);
    buffer_done(&place);
    if (c.module) {
        buffer_string(out, "  ");
        put_cut(out, row->module, c.module, true);
    }
    if (c.kind)
        buffer_format(out, "  %-7s",
                      row->kind == CODE_UNKNOWN ? "" : code_kind_name((enum code_kind)row->kind));
}

void report_hot(const struct profile *p, const struct hot_table *table, enum hot_by by, size_t top,
                size_t width, struct buffer *out)
{
    size_t rows = shown_rows(table, top);
    struct report_columns c = columns_of(table, rows, p->by_line && by == HOT_BY_FUNCTION);
    c.kind = by == HOT_BY_FUNCTION;
    double full = hot_when_full(p);
    c.when = p->duration_ns != 0; /* folded stacks know no times */
    if (by == HOT_BY_MODULE)
        c.module = 0;
    c = fit_columns(c, width);
    hot_titles(by, c, out);
    for (size_t i = 0; i < rows; i++) {
        const struct hot_row *row = &table->rows[i];
        buffer_format(out, "%6.2f   %6.2f  %9s  ", percent(row->self, p->counts.weight),
                      percent(row->total, p->counts.weight), units_count(row->samples).text);
        put_row(row, place_of_row(row, p->by_line), c, out);
        if (c.when) {
            char when[HOT_WHEN_BUCKETS + 1];
            hot_when_text(row, full, when);
            buffer_format(out, "  %s", when);
        }
        end_line(out);
    }
    if (rows < table->count)
        buffer_format(out, "... %zu more (--top 0 shows all)\n", table->count - rows);
}

/* "callers of List<T>.Sort: 12.00 % of all samples, 3.00 % in itself"; of several functions how many. */
static void neighbours_head(const struct profile *p, const struct call_neighbours *n, const char *asked,
                            bool callers, struct buffer *out)
{
    bool several = n->function_count > 1;
    buffer_format(out, "%s of ", callers ? "callers" : "callees");
    if (n->focus.name)
        buffer_string(out, n->focus.name);
    if (several && n->exact)
        buffer_format(out, " in %zu modules", n->function_count);
    if (several && !n->exact) {
        buffer_format(out, "%zu functions that match '", n->function_count);
        utf8_escape(out, span_of(asked, strlen(asked)));
        buffer_u8(out, '\'');
        for (size_t i = 0; i < n->function_count && i < REPORT_MATCHES_SHOWN; i++)
            buffer_format(out, "%s %s", i ? "," : ":", n->functions[i].name);
        if (n->function_count > REPORT_MATCHES_SHOWN)
            buffer_format(out, " and %zu more", n->function_count - REPORT_MATCHES_SHOWN);
    }
    buffer_format(out, "%s %.2f %% of all samples, %.2f %% in %s\n\n", several && !n->exact ? ";" : ":",
                  percent(n->focus.total, p->counts.weight), percent(n->focus.self, p->counts.weight),
                  several ? "themselves" : "itself");
}

void report_neighbours(const struct profile *p, const struct call_neighbours *n, const char *asked,
                       bool callers, size_t top, size_t width, struct buffer *out)
{
    size_t rows = shown_rows(&n->table, top), head = out->size;
    struct report_columns c = fit_columns(columns_of(&n->table, rows, p->by_line), width);
    neighbours_head(p, n, asked, callers, out);
    text_wrap(out, head, REPORT_INDENT, width);
    buffer_string(out, "of it %  of all %   samples  ");
    put_cut(out, "function", c.name, true);
    buffer_string(out, c.module ? "  module" : "");
    end_line(out);
    for (size_t i = 0; i < rows; i++) {
        const struct hot_row *row = &n->table.rows[i];
        buffer_format(out, "%6.2f    %6.2f  %9s  ", percent(row->total, n->focus.total),
                      percent(row->total, p->counts.weight), units_count(row->samples).text);
        put_row(row, place_of_row(row, p->by_line), c, out);
        end_line(out);
    }
    if (rows < n->table.count)
        buffer_format(out, "... %zu more (--top 0 shows all)\n", n->table.count - rows);
}

/* A node's children, heaviest first. */
struct tree_child {
    uint64_t total;
    uint32_t node;
};

static int tree_compare(const void *a, const void *b)
{
    const struct tree_child *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static size_t tree_children(const struct profile *p, const uint32_t *child, const uint32_t *sibling,
                            uint32_t node, struct tree_child *into)
{
    uint64_t least = p->counts.weight / 200;
    size_t count = 0;
    for (uint32_t at = child[node]; at; at = sibling[at])
        if (p->total[at] > least)
            into[count++] = (struct tree_child){ p->total[at], at };
    qsort(into, count, sizeof *into, tree_compare);
    return count;
}

static void tree_line(const struct profile *p, uint32_t node, size_t depth, size_t width, struct buffer *out)
{
    const struct profile_frame *f = &p->frames[p->nodes[node].frame];
    buffer_format(out, "%6.2f  %6.2f  ", percent(p->total[node], p->counts.weight),
                  percent(p->self[node], p->counts.weight));
    size_t deepest = width ? width / 3 : TREE_INDENT_MAX;
    deepest = deepest < TREE_INDENT_MAX ? deepest : TREE_INDENT_MAX;
    size_t indent = depth < deepest ? depth : deepest;
    for (size_t i = 0; i < indent; i++)
        buffer_string(out, i + 1 == indent ? "└" : " ");
    size_t used = 16 + indent;
    size_t room = width > used + REPORT_NAME_LEAST ? width - used : width ? REPORT_NAME_LEAST : REPORT_WIDE;
    struct buffer place;
    buffer_init(&place, PLACE_BYTES_MAX);
    place_text(place_of_frame(f, p->by_line), &place);
    put_function(out, f->name, (const char *)place.data, room, false);
    buffer_done(&place);
    buffer_u8(out, '\n');
}

void report_tree(const struct profile *p, size_t width, struct buffer *out)
{
    uint32_t *child = mem_alloc(p->node_count, sizeof *child),
             *sibling = mem_alloc(p->node_count, sizeof *sibling);
    for (uint32_t node = p->node_count; node-- > 1;) {
        sibling[node] = child[p->nodes[node].parent];
        child[p->nodes[node].parent] = node;
    }
    /* a stack of what is still to be printed; no more than every node once */
    struct tree_child *open = mem_alloc(p->node_count, sizeof *open);
    uint32_t *depth = mem_alloc(p->node_count, sizeof *depth);
    struct tree_child *found = mem_alloc(p->node_count, sizeof *found);
    size_t count = 0;
    buffer_string(out, "total %  self %  call tree (above 0.5 %)\n");
    for (uint32_t node = 0;;) {
        size_t children = tree_children(p, child, sibling, node, found);
        while (children) {
            open[count++] = found[--children];
            depth[open[count - 1].node] = node ? depth[node] + 1 : 0;
        }
        if (!count)
            break;
        node = open[--count].node;
        tree_line(p, node, depth[node], width, out);
    }
    free(child);
    free(sibling);
    free(open);
    free(depth);
    free(found);
}
