#include "cli/report_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/json_put.h"
#include "cli/report_table.h"
#include "cli/report_threads.h"
#include "cli/standard_output.h"
#include "trace/facts.h"

/* A node takes two levels of the document. Only a capture made to be so has deeper stacks; they are cut. */
enum { TREE_DEPTH_MAX = JSON_DEPTH_MAX / 2 - 4 };

/* The heaviest of those that match; a single letter matches most of them. */
enum { FOCUS_FUNCTIONS = 10 };

static void json_number_fact(struct json_writer *j, const char *key, const struct trace *t, const char *fact,
                             double divisor)
{
    uint64_t number;
    json_key(j, key);
    if (!trace_fact_number(t, fact, &number))
        json_absent(j);
    else if (divisor > 1)
        json_double(j, (double)number / divisor);
    else
        json_u64(j, number);
}

static void json_processes(struct json_writer *j, const struct profile *p)
{
    json_put_array(j, "processes");
    for (uint32_t i = 1; i < p->process_count; i++) {
        json_begin_object(j);
        json_put_u64(j, "pid", p->processes[i].pid);
        json_put_string(j, "name", *p->processes[i].name ? p->processes[i].name : NULL);
        json_put_string(j, "runtime_version", p->processes[i].runtime_version);
        json_put_string(j, "container", p->processes[i].container);
        json_end_object(j);
    }
    json_end_array(j);
}

/* By node: the frame that a broken stack's path begins with, 0 in whole stacks. The caller frees. */
static uint32_t *broken_origins(const struct profile *p)
{
    uint32_t *origin = mem_alloc(p->node_count, sizeof *origin);
    for (uint32_t node = 1; node < p->node_count; node++) {
        uint32_t parent = p->nodes[node].parent;
        if (!parent)
            continue;
        bool first = !p->nodes[parent].parent;
        if (!first)
            origin[node] = origin[parent];
        else if (strcmp(p->frames[p->nodes[parent].frame].name, "[broken]") == 0)
            origin[node] = p->nodes[node].frame;
    }
    return origin;
}

/* Broken stacks by the image their outermost known frame lies in: who cut them. */
static void json_broken_by_image(struct json_writer *j, const struct profile *p)
{
    uint32_t *origin = broken_origins(p);
    uint64_t *by_image = mem_alloc((size_t)p->frame_count + 1, sizeof *by_image);
    struct intern images;
    intern_init(&images, SIZE_MAX);
    for (size_t i = 0; i < p->sample_count; i++) {
        uint32_t frame = origin[p->sample_node[i]];
        const char *module = p->frames[frame].module;
        if (frame)
            by_image[intern_cstr(&images, *module ? module : "[unknown]")] += profile_samples_at(p, i);
    }
    json_put_object(j, "broken_by_image");
    for (uint32_t i = 1; i < images.count; i++)
        json_put_u64(j, intern_text(&images, i), by_image[i]);
    json_end_object(j);
    intern_done(&images);
    free(by_image);
    free(origin);
}

static void json_stacks(struct json_writer *j, const struct profile *p)
{
    json_put_object(j, "stacks");
    json_put_u64(j, "whole", p->counts.whole);
    json_put_u64(j, "truncated", p->counts.truncated);
    json_put_u64(j, "broken", p->counts.broken);
    json_broken_by_image(j, p);
    json_end_object(j);
}

static void json_frames_found(struct json_writer *j, const struct profile *p)
{
    const char *rest = p->frames_found;
    struct span way;
    uint64_t count;
    if (!rest)
        return;
    json_put_object(j, "found_by");
    while (trace_fact_pair(&rest, &way, &count)) {
        AUTO_FREE char *name = mem_format("%.*s", (int)way.size, (const char *)way.data);
        json_put_u64(j, name, count);
    }
    json_end_object(j);
}

static void json_frames(struct json_writer *j, const struct profile *p)
{
    json_put_object(j, "frames");
    json_put_u64(j, "user", p->counts.user_frames);
    json_put_u64(j, "named", p->counts.named);
    json_put_u64(j, "native_without_symbols", p->counts.native_without_symbols);
    json_put_u64(j, "unnamed", p->counts.unnamed);
    json_put_object(j, "unnamed_by");
    for (unsigned i = 1; i < UNNAMED_CAUSES; i++)
        if (p->counts.unnamed_by[i])
            json_put_u64(j, unnamed_cause_name((enum unnamed_cause)i), p->counts.unnamed_by[i]);
    json_end_object(j);
    json_put_object(j, "named_by");
    for (unsigned i = 0; i < RESOLVERS; i++)
        if (p->counts.named_by[i])
            json_put_u64(j, resolver_name((enum resolver)i), p->counts.named_by[i]);
    json_end_object(j);
    json_frames_found(j, p);
    json_end_object(j);
}

/* Weight by what the runtime did. Where it told nothing of collections slow allocations are in "gc". */
static void json_work(struct json_writer *j, const struct profile *p)
{
    if (!p->counts.work_known) {
        json_key(j, "work");
        json_absent(j);
        return;
    }
    json_put_object(j, "work");
    for (unsigned i = 0; i < WORK_CLASSES; i++)
        json_put_u64(j, runtime_work_key((enum runtime_work_class)i), p->counts.work[i]);
    json_put_bool(j, "gc_holds_allocation", !p->counts.gc.processes || p->counts.gc_untold);
    json_end_object(j);
}

/* What runtimes told of their collections. */
static void json_collections(struct json_writer *j, const struct gc_summary *gc)
{
    if (!gc->processes) {
        json_key(j, "gc");
        json_absent(j);
        return;
    }
    json_put_object(j, "gc");
    json_put_double(j, "told_s", (double)gc->told_ns / 1e9);
    json_put_u64(j, "gen0", gc->collections[0]);
    json_put_u64(j, "gen1", gc->collections[1]);
    json_put_u64(j, "gen2", gc->collections[2]);
    json_put_u64(j, "background", gc->background);
    json_put_u64(j, "pauses", gc->pauses);
    json_put_double(j, "paused_ms", (double)gc->paused_ns / 1e6);
    json_put_double(j, "longest_pause_ms", (double)gc->longest_ns / 1e6);
    json_end_object(j);
}

static void json_totals(struct json_writer *j, const struct capture *c, const struct profile *p)
{
    const struct trace *t = &c->b.trace;
    json_put_object(j, "totals");
    json_put_u64(j, "samples", p->counts.samples);
    json_put_u64(j, "attempted", p->counts.captured + p->counts.lost);
    json_put_u64(j, "lost", p->counts.lost);
    json_put_object(j, "lost_by");
    capture_json_losses(j, t);
    json_end_object(j);
    json_put_u64(j, "weight", p->counts.weight);
    json_put_string(j, "unit", p->weight_unit);
    bool is_time = strcmp(p->weight_unit, "ns") == 0;
    json_put_known_double(j, "cpu_s", is_time && !p->is_wall, (double)p->counts.weight / 1e9);
    if (p->is_wall)
        json_put_double(j, "wall_s", (double)p->counts.weight / 1e9);
    json_stacks(j, p);
    json_frames(j, p);
    json_work(j, p);
    json_collections(j, &p->counts.gc);
    json_put_object(j, "self");
    json_number_fact(j, "cpu_s", t, FACT_SELF_CPU_NS, 1e9);
    json_number_fact(j, "peak_rss_bytes", t, FACT_SELF_PEAK_RSS, 1);
    json_end_object(j);
    json_end_object(j);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Whether a line is that of the code, or only that of its method. */
static void json_put_line_is(struct json_writer *j, uint32_t line, bool of_method)
{
    json_put_string(j, "line_is", !line ? NULL : of_method ? "method" : "statement");
}

static void json_when(struct json_writer *j, const struct hot_row *row, bool known)
{
    json_key(j, "when");
    if (!known) {
        json_absent(j);
        return;
    }
    json_begin_array(j);
    for (size_t i = 0; i < HOT_WHEN_BUCKETS; i++)
        json_u64(j, row->when[i]);
    json_end_array(j);
}

/* What a row is. */
static void json_row_code(struct json_writer *j, const struct hot_row *row, const struct profile *p,
                          bool is_code)
{
    json_put_string(j, "name", row->name);
    json_put_string(j, "module", row->module[0] ? row->module : NULL);
    json_put_string(j, "kind",
                    is_code && row->kind != CODE_UNKNOWN ? code_kind_name((enum code_kind)row->kind) : NULL);
    json_put_string(j, "tier", code_tier_name((enum code_tier)row->tier));
    json_put_string(j, "file", row->file);
    json_put_known_u64(j, "line", row->line, row->line);
    json_put_line_is(j, row->line, row->line_of_method);
    if (p->by_line)
        json_put_bool(j, "inlined", row->inlined);
}

/* Its weights; its own is not known of a row that is next to a function. */
static void json_row_weights(struct json_writer *j, const struct hot_row *row, const struct profile *p,
                             bool self_known)
{
    json_put_known_u64(j, "self", self_known, row->self);
    json_put_u64(j, "total", row->total);
    json_put_u64(j, "samples", row->samples);
    json_put_known_double(j, "self_share", self_known, share(row->self, p->counts.weight));
    json_put_double(j, "total_share", share(row->total, p->counts.weight));
    json_when(j, row, p->duration_ns != 0);
}

static bool json_end(struct json_writer *j, struct error *err)
{
    json_end_object(j);
    return stdout_json_end(j, err);
}

static void json_begin(struct json_writer *j, struct buffer *text, const char *schema)
{
    stdout_json(j, text);
    json_begin_object(j);
    json_put_string(j, "schema", schema);
}

static void json_rows_begin(struct json_writer *j, struct buffer *text, const struct capture *c,
                            const struct profile *p, enum hot_by by)
{
    json_begin(j, text, "clrperf.report.cpu/1");
    capture_json_head(j, c, p);
    json_processes(j, p);
    json_totals(j, c, p);
    json_put_string(j, "by", report_by_names[by]);
}

static void json_rows(struct json_writer *j, const struct hot_table *table, const struct profile *p,
                      bool is_code, bool self_known, size_t top)
{
    json_put_array(j, "rows");
    for (size_t i = 0; i < table->count && (!top || i < top); i++) {
        json_begin_object(j);
        json_row_code(j, &table->rows[i], p, is_code);
        json_row_weights(j, &table->rows[i], p, self_known);
        json_end_object(j);
    }
    json_end_array(j);
}

bool report_json_hot(const struct capture *c, const struct profile *p, const struct hot_table *table,
                     enum hot_by by, size_t top, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    json_rows_begin(&j, &text, c, p, by);
    json_rows(&j, table, p, by != HOT_BY_THREAD && by != HOT_BY_PROCESS, true, top);
    return json_end(&j, err);
}

static void json_focus(struct json_writer *j, const struct profile *p, const struct call_neighbours *n,
                       const char *asked, bool callers)
{
    json_put_object(j, "focus");
    json_put_string(j, "relation", callers ? "callers" : "callees");
    json_put_string(j, "asked", asked);
    json_put_u64(j, "matches", n->function_count);
    json_row_code(j, &n->focus, p, true);
    json_row_weights(j, &n->focus, p, true);
    json_put_array(j, "functions");
    for (size_t i = 0; i < n->function_count && i < FOCUS_FUNCTIONS; i++) {
        const struct call_function *function = &n->functions[i];
        json_begin_object(j);
        json_put_string(j, "name", function->name);
        json_put_string(j, "module", function->module[0] ? function->module : NULL);
        json_put_u64(j, "total", function->total);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

bool report_json_neighbours(const struct capture *c, const struct profile *p, const struct call_neighbours *n,
                            const char *asked, bool callers, size_t top, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    json_rows_begin(&j, &text, c, p, HOT_BY_FUNCTION);
    json_focus(&j, p, n, asked, callers);
    json_rows(&j, &n->table, p, true, false, top);
    return json_end(&j, err);
}

static void json_tree_node(struct json_writer *j, const struct profile *p, uint32_t node)
{
    const struct profile_frame *f = &p->frames[p->nodes[node].frame];
    json_begin_object(j);
    json_put_string(j, "name", node ? f->name : "all");
    json_put_string(j, "module", node && f->module[0] ? f->module : NULL);
    json_put_string(j, "kind",
                    node && f->kind != CODE_UNKNOWN ? code_kind_name((enum code_kind)f->kind) : NULL);
    if (p->by_line) {
        json_put_string(j, "file", f->file);
        json_put_known_u64(j, "line", f->line, f->line);
        json_put_line_is(j, f->line, f->line_of_method);
        json_put_bool(j, "inlined", f->inlined);
    }
    json_put_u64(j, "total", p->total[node]);
    json_put_u64(j, "self", p->self[node]);
    json_put_array(j, "children");
}

bool report_json_tree(const struct capture *c, const struct profile *p, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    json_begin(&j, &text, "clrperf.tree/1");
    json_totals(&j, c, p);
    json_key(&j, "root");
    uint32_t *child = mem_alloc(p->node_count, sizeof *child),
             *sibling = mem_alloc(p->node_count, sizeof *sibling);
    for (uint32_t node = p->node_count; node-- > 1;) {
        sibling[node] = child[p->nodes[node].parent];
        child[p->nodes[node].parent] = node;
    }
    uint32_t node = 0, depth = 0;
    json_tree_node(&j, p, node);
    for (bool down = true;;) {
        if (down && child[node] && depth < TREE_DEPTH_MAX) {
            node = child[node];
            depth++;
        } else {
            json_end_array(&j);
            json_end_object(&j);
            if (!node)
                break;
            down = sibling[node] != 0;
            depth -= !down;
            node = down ? sibling[node] : p->nodes[node].parent;
            if (!down)
                continue;
        }
        json_tree_node(&j, p, node);
        down = true;
    }
    free(child);
    free(sibling);
    return json_end(&j, err);
}

static void put_thread(struct json_writer *j, const struct profile *p, const struct profile_thread *t)
{
    bool is_time = strcmp(p->weight_unit, "ns") == 0 && !p->is_wall;
    json_begin_object(j);
    json_put_u64(j, "tid", t->tid);
    json_put_u64(j, "pid", t->pid);
    json_put_string(j, "name", t->name[0] ? t->name : NULL);
    json_put_u64(j, "samples", t->samples);
    json_put_known_double(j, "cpu_s", is_time, (double)t->weight / 1e9);
    json_put_known_u64(j, "on_cpu_ns", is_time, t->weight);
    if (p->is_wall)
        json_put_double(j, "wall_s", (double)t->weight / 1e9);
    json_key(j, "runnable_ns");
    json_absent(j);
    json_key(j, "waiting_ns");
    json_absent(j);
    json_end_object(j);
}

bool report_json_threads(const struct capture *c, const struct profile *p, size_t top, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    size_t count;
    AUTO_FREE const struct profile_thread **rows = report_threads(p, top, &count);
    json_begin(&j, &text, "clrperf.report.threads/1");
    capture_json_head(&j, c, p);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < count; i++)
        put_thread(&j, p, rows[i]);
    json_end_array(&j);
    return json_end(&j, err);
}
