#include "cli/report_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "cli/report_table.h"
#include "cli/standard_output.h"
#include "trace/facts.h"

/* A node takes two levels of the document. Only a capture made to be so has deeper stacks; they are cut. */
enum { TREE_DEPTH_MAX = JSON_DEPTH_MAX / 2 - 4 };

static void json_count(struct json_writer *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_u64(j, value);
}

static void json_number_fact(struct json_writer *j, const char *key, const struct trace *t, const char *fact,
                             double divisor)
{
    const char *text = trace_fact_value(t, fact);
    json_key(j, key);
    if (!text)
        json_null(j);
    else if (divisor > 1)
        json_double(j, strtod(text, NULL) / divisor);
    else
        json_u64(j, strtoull(text, NULL, 10));
}

static void json_processes(struct json_writer *j, const struct profile *p)
{
    json_key(j, "processes");
    json_begin_array(j);
    for (uint32_t i = 1; i < p->process_count; i++) {
        json_begin_object(j);
        json_count(j, "pid", p->processes[i].pid);
        json_key(j, "name");
        json_string(j, p->processes[i].name);
        json_key(j, "runtime_version");
        json_string(j, p->processes[i].runtime_version);
        json_key(j, "container");
        json_string(j, p->processes[i].container);
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
    json_key(j, "broken_by_image");
    json_begin_object(j);
    for (uint32_t i = 1; i < images.count; i++)
        json_count(j, intern_text(&images, i), by_image[i]);
    json_end_object(j);
    intern_done(&images);
    free(by_image);
    free(origin);
}

static void json_stacks(struct json_writer *j, const struct profile *p)
{
    json_key(j, "stacks");
    json_begin_object(j);
    json_count(j, "whole", p->counts.whole);
    json_count(j, "truncated", p->counts.truncated);
    json_count(j, "broken", p->counts.broken);
    json_broken_by_image(j, p);
    json_end_object(j);
}

static void json_frames(struct json_writer *j, const struct profile *p)
{
    json_key(j, "frames");
    json_begin_object(j);
    json_count(j, "user", p->counts.user_frames);
    json_count(j, "named", p->counts.named);
    json_count(j, "native_without_symbols", p->counts.native_without_symbols);
    json_count(j, "unnamed", p->counts.unnamed);
    json_key(j, "unnamed_by");
    json_begin_object(j);
    for (unsigned i = 1; i < UNNAMED_CAUSES; i++)
        if (p->counts.unnamed_by[i])
            json_count(j, unnamed_cause_name((enum unnamed_cause)i), p->counts.unnamed_by[i]);
    json_end_object(j);
    json_key(j, "named_by");
    json_begin_object(j);
    for (unsigned i = 0; i < RESOLVERS; i++)
        if (p->counts.named_by[i])
            json_count(j, resolver_name((enum resolver)i), p->counts.named_by[i]);
    json_end_object(j);
    json_end_object(j);
}

static void json_totals(struct json_writer *j, const struct capture *c, const struct profile *p)
{
    const struct trace *t = &c->b.trace;
    json_key(j, "totals");
    json_begin_object(j);
    json_count(j, "samples", p->counts.samples);
    json_count(j, "attempted", p->counts.recorded + p->counts.lost);
    json_count(j, "lost", p->counts.lost);
    json_key(j, "lost_by");
    json_begin_object(j);
    capture_json_losses(j, t);
    json_end_object(j);
    json_count(j, "weight", p->counts.weight);
    json_key(j, "unit");
    json_string(j, p->weight_unit);
    json_key(j, "cpu_s");
    if (strcmp(p->weight_unit, "ns") == 0)
        json_double(j, (double)p->counts.weight / 1e9);
    else
        json_null(j);
    json_stacks(j, p);
    json_frames(j, p);
    json_key(j, "self");
    json_begin_object(j);
    json_number_fact(j, "cpu_s", t, FACT_SELF_CPU_NS, 1e9);
    json_number_fact(j, "peak_rss_bytes", t, FACT_SELF_PEAK_RSS, 1);
    json_end_object(j);
    json_end_object(j);
}

static void json_share(struct json_writer *j, const char *key, uint64_t part, uint64_t whole)
{
    json_key(j, key);
    json_double(j, whole ? (double)part / (double)whole : 0);
}

static void json_hot_row(struct json_writer *j, const struct hot_row *row, const struct profile *p,
                         bool is_code)
{
    json_begin_object(j);
    json_key(j, "name");
    json_string(j, row->name);
    json_key(j, "module");
    json_string(j, row->module[0] ? row->module : NULL);
    json_key(j, "kind");
    json_string(j, is_code && row->kind != CODE_UNKNOWN ? code_kind_name((enum code_kind)row->kind) : NULL);
    json_key(j, "tier");
    json_string(j, code_tier_name((enum code_tier)row->tier));
    json_key(j, "file");
    json_string(j, row->file);
    json_key(j, "line");
    if (row->line)
        json_u64(j, row->line);
    else
        json_null(j);
    json_count(j, "self", row->self);
    json_count(j, "total", row->total);
    json_count(j, "samples", row->samples);
    json_share(j, "self_share", row->self, p->counts.weight);
    json_share(j, "total_share", row->total, p->counts.weight);
    json_key(j, "when");
    json_begin_array(j);
    for (size_t i = 0; i < HOT_WHEN_BUCKETS; i++)
        json_u64(j, row->when[i]);
    json_end_array(j);
    json_end_object(j);
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
    json_key(j, "schema");
    json_string(j, schema);
}

bool report_json_hot(const struct capture *c, const struct profile *p, const struct hot_table *table,
                     enum hot_by by, size_t top, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    json_begin(&j, &text, "clrperf.report.cpu/1");
    capture_json_head(&j, c, p);
    json_processes(&j, p);
    json_totals(&j, c, p);
    json_key(&j, "by");
    json_string(&j, report_by_names[by]);
    json_key(&j, "rows");
    json_begin_array(&j);
    bool is_code = by != HOT_BY_THREAD && by != HOT_BY_PROCESS;
    for (size_t i = 0; i < table->count && (!top || i < top); i++)
        json_hot_row(&j, &table->rows[i], p, is_code);
    json_end_array(&j);
    return json_end(&j, err);
}

static void json_tree_node(struct json_writer *j, const struct profile *p, uint32_t node)
{
    const struct profile_frame *f = &p->frames[p->nodes[node].frame];
    json_begin_object(j);
    json_key(j, "name");
    json_string(j, node ? f->name : "all");
    json_key(j, "module");
    json_string(j, node && f->module[0] ? f->module : NULL);
    json_key(j, "kind");
    json_string(j, node && f->kind != CODE_UNKNOWN ? code_kind_name((enum code_kind)f->kind) : NULL);
    json_count(j, "total", p->total[node]);
    json_count(j, "self", p->self[node]);
    json_key(j, "children");
    json_begin_array(j);
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

bool report_json_threads(const struct capture *c, const struct profile *p, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    json_begin(&j, &text, "clrperf.report.threads/1");
    capture_json_head(&j, c, p);
    json_key(&j, "rows");
    json_begin_array(&j);
    bool is_time = strcmp(p->weight_unit, "ns") == 0;
    for (uint32_t i = 1; i < p->thread_count; i++) {
        const struct profile_thread *t = &p->threads[i];
        json_begin_object(&j);
        json_count(&j, "tid", t->tid);
        json_count(&j, "pid", t->pid);
        json_key(&j, "name");
        json_string(&j, t->name[0] ? t->name : NULL);
        json_count(&j, "samples", t->samples);
        json_key(&j, "cpu_s");
        if (is_time)
            json_double(&j, (double)t->weight / 1e9);
        else
            json_null(&j);
        json_key(&j, "on_cpu_ns");
        if (is_time)
            json_u64(&j, t->weight);
        else
            json_null(&j);
        json_key(&j, "runnable_ns");
        json_null(&j);
        json_key(&j, "waiting_ns");
        json_null(&j);
        json_end_object(&j);
    }
    json_end_array(&j);
    return json_end(&j, err);
}
