#include "render/nettrace_kept.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/kept_rows.h"
#include "trace/facts.h"

static void keep(struct nettrace_stream *s, enum kept_row_id id, const char *text)
{
    nettrace_stream_add_type(s, &(struct nettrace_stream_type){
                                    .provider = KEPT_PROVIDER, .name = text, .event_id = id, .version = 1 });
}

/* Whose samples are not in the file. */
static bool is_of_samples(const char *key)
{
    return strcmp(key, FACT_EVENT) == 0 || strcmp(key, FACT_UNIT) == 0 || strcmp(key, FACT_RATE_HZ) == 0 ||
           strcmp(key, FACT_FRAMES_FOUND) == 0;
}

static void keep_facts(const struct trace *t, bool cpu_samples, struct nettrace_stream *s)
{
    for (int i = 0; i < KEPT_FACTS; i++) {
        const char *key = kept_fact_key(i), *value = trace_fact_value(t, key);
        if (!value || (!cpu_samples && is_of_samples(key)))
            continue;
        AUTO_FREE char *text = mem_format("%s %s", key, value);
        keep(s, KEPT_FACT, text);
    }
}

/* Sequence points tell of what runtimes lost. */
static void keep_losses(const struct trace *t, uint32_t process, struct nettrace_stream *s)
{
    for (uint32_t i = 1; i < t->losses.count; i++) {
        const struct trace_loss *row = &t->losses.rows[i];
        if (row->reason == LOSS_RUNTIME || (row->process && row->process != process))
            continue;
        AUTO_FREE char *text = mem_format("%u %" PRIu64 " %" PRIu64 " %" PRIu64, row->reason, row->count,
                                          row->from_ns, row->to_ns);
        keep(s, KEPT_LOSS, text);
    }
}

static void keep_threads(const struct trace *t, uint32_t process, struct nettrace_stream *s)
{
    for (uint32_t i = 1; i < t->threads.count; i++) {
        const struct trace_thread *row = &t->threads.rows[i];
        if (row->process != process || !row->tid || !row->name)
            continue;
        AUTO_FREE char *text = mem_format("%u %s", row->tid, trace_string(t, row->name));
        keep(s, KEPT_THREAD, text);
    }
}

static void keep_process(const struct trace *t, uint32_t process, struct nettrace_stream *s)
{
    const struct trace_process *row = &t->processes.rows[process];
    if (row->runtime_version)
        keep(s, KEPT_RUNTIME, trace_string(t, row->runtime_version));
    if (row->container)
        keep(s, KEPT_CONTAINER, trace_string(t, row->container));
}

static void keep_subscriptions(const struct trace *t, uint32_t process, struct nettrace_stream *s)
{
    for (uint32_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        if (row->process != process)
            continue;
        AUTO_FREE char *text =
            mem_format("%" PRIu64 " %u %" PRIu64 " %" PRIu64 " %s", row->keywords, row->level, row->from_ns,
                       row->to_ns, trace_string(t, row->provider));
        keep(s, KEPT_SUBSCRIPTION, text);
    }
}

/* Where frames without a name are: a report says it in the place of one. */
static void keep_mappings(const struct trace *t, uint32_t process, struct nettrace_stream *s)
{
    AUTO_FREE bool *kept = mem_alloc(t->mappings.count, sizeof *kept);
    for (uint32_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *at = &t->locations.rows[i];
        if (at->function || !at->mapping || at->process != process || kept[at->mapping])
            continue;
        kept[at->mapping] = true;
        const struct trace_mapping *row = &t->mappings.rows[at->mapping];
        const struct trace_image *image = &t->images.rows[row->image];
        AUTO_FREE char *text = mem_format("%u %" PRIu64 " %" PRIu64 " %s", image->kind, row->start, row->end,
                                          trace_string(t, image->path));
        keep(s, KEPT_MAPPING, text);
    }
}

void nettrace_kept_write(const struct trace *t, uint32_t process, bool cpu_samples, struct nettrace_stream *s)
{
    keep(s, KEPT_BEGIN, "");
    keep_facts(t, cpu_samples, s);
    keep_losses(t, process, s);
    keep_threads(t, process, s);
    keep_process(t, process, s);
    keep_subscriptions(t, process, s);
    keep_mappings(t, process, s);
}
