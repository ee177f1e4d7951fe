#include "import/kept_import.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "trace/facts.h"

enum { LOSSES_MAX = 1 << 16, SUBSCRIPTIONS_MAX = 1 << 16, MAPPINGS_MAX = 1 << 16 };

static bool take_fact(struct kept_import *k, struct trace *t, struct span text)
{
    struct kept_fact fact;
    if (!kept_fact_read(text, &fact))
        return false;
    if (fact.index >= 0)
        k->facts[fact.index] = trace_add_span(t, fact.value);
    return true;
}

static bool take_loss(struct kept_import *k, struct trace_builder *b, uint32_t process, struct span text)
{
    struct trace_loss loss;
    if (!kept_loss_read(text, &loss))
        return false;
    if (b->trace.losses.count > LOSSES_MAX)
        k->refused++;
    else
        trace_builder_loss(b, (enum loss_reason)loss.reason, process, loss.from_ns, loss.to_ns, loss.count);
    return true;
}

static bool take_thread(struct trace_builder *b, uint32_t process, struct span text)
{
    struct kept_thread thread;
    if (!kept_thread_read(text, &thread))
        return false;
    trace_builder_thread_name(b, b->trace.processes.rows[process].pid, thread.tid, thread.name, 0);
    return true;
}

static bool take_subscription(struct kept_import *k, struct trace *t, uint32_t process, struct span text)
{
    struct kept_subscription told;
    if (!kept_subscription_read(text, &told))
        return false;
    if (t->subscriptions.count > SUBSCRIPTIONS_MAX) {
        k->refused++;
        return true;
    }
    uint32_t id = trace_push(&t->subscriptions);
    t->subscriptions.rows[id] = (struct trace_subscription){
        .process = process,
        .provider = trace_add_span(t, told.provider),
        .keywords = told.keywords,
        .from_ns = told.from_ns,
        .to_ns = told.to_ns,
        .level = told.level,
    };
    return true;
}

static bool take_mapping(struct kept_import *k, struct trace_builder *b, uint32_t process, struct span text)
{
    struct kept_mapping row;
    if (!kept_mapping_read(text, &row))
        return false;
    if (b->trace.mappings.count > MAPPINGS_MAX) {
        k->refused++;
        return true;
    }
    uint32_t image = trace_builder_image(b, row.path, (enum image_kind)row.kind, 0, 0, 0);
    trace_builder_mapping(b, process, row.start, row.end - row.start, 0, image, 0);
    return true;
}

void kept_import_take(struct kept_import *k, struct trace_builder *b, uint32_t process, uint32_t row_id,
                      struct span text)
{
    struct trace *t = &b->trace;
    bool ok = true;
    k->any = true;
    switch (row_id) {
    case KEPT_FACT:
        ok = take_fact(k, t, text);
        break;
    case KEPT_LOSS:
        ok = take_loss(k, b, process, text);
        break;
    case KEPT_THREAD:
        ok = take_thread(b, process, text);
        break;
    case KEPT_RUNTIME:
        t->processes.rows[process].runtime_version = trace_add_span(t, text);
        break;
    case KEPT_CONTAINER:
        t->processes.rows[process].container = trace_add_span(t, text);
        break;
    case KEPT_SUBSCRIPTION:
        ok = take_subscription(k, t, process, text);
        break;
    case KEPT_MAPPING:
        ok = take_mapping(k, b, process, text);
        break;
    default: /* KEPT_BEGIN, and rows of a later version */
        break;
    }
    k->malformed += !ok;
}

/* What was noted of the capture, in front of what is noted of the file. */
static void set_notes(struct trace *t, const char *kept)
{
    const char *ours = trace_fact_value(t, FACT_NOTES);
    AUTO_FREE char *all = ours ? mem_format("%s; %s", kept, ours) : mem_copy_string(kept);
    trace_set_fact(t, FACT_NOTES, all);
}

void kept_import_finish(const struct kept_import *k, struct trace *t)
{
    for (int i = 0; i < KEPT_FACTS; i++) {
        const char *key = kept_fact_key(i);
        AUTO_FREE char *value = mem_copy_string(trace_string(t, k->facts[i])); /* strings move */
        if (k->facts[i] && strcmp(key, FACT_NOTES) == 0)
            set_notes(t, value);
        else if (k->facts[i])
            trace_set_fact(t, key, value);
    }
}
