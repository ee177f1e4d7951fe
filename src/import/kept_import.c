#include "import/kept_import.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "import/import_note.h"
#include "trace/facts.h"

enum { TEXT_MAX = 1 << 18, METHODS_MAX = 4 << 20, LOSSES_MAX = 1 << 16, SUBSCRIPTIONS_MAX = 1 << 16 };

void kept_import_init(struct kept_import *k)
{
    *k = (struct kept_import){ 0 };
    buffer_init(&k->text, TEXT_MAX);
}

void kept_import_done(struct kept_import *k)
{
    free(k->methods);
    buffer_done(&k->text);
}

static uint32_t add_text(struct kept_import *k, struct trace_builder *b, struct span text)
{
    buffer_clear(&k->text);
    utf16_append_utf8(&k->text, text);
    return intern_add(&b->trace.strings, buffer_span(&k->text));
}

static bool take_fact(struct kept_import *k, struct trace_builder *b, struct span payload)
{
    struct kept_fact fact;
    if (!kept_fact_read(payload, &fact))
        return false;
    int index = kept_fact_index(fact.key);
    if (index >= 0)
        k->facts[index] = add_text(k, b, fact.value);
    return true;
}

static bool take_method(struct kept_import *k, struct trace_builder *b, struct span payload)
{
    struct kept_method m;
    if (!kept_method_read(payload, &m))
        return false;
    if (k->method_count == METHODS_MAX) {
        k->refused++;
        return true;
    }
    k->methods = mem_grow(k->methods, &k->method_capacity, k->method_count + 1, sizeof *k->methods);
    k->methods[k->method_count++] = (struct kept_import_method){
        .addr = m.addr,
        .type_params = m.type_params.size ? add_text(k, b, m.type_params) : 0,
        .kind = m.kind,
        .tier = m.tier,
        .resolver = m.resolver,
    };
    return true;
}

static bool take_loss(struct kept_import *k, struct trace_builder *b, uint32_t process, struct span payload)
{
    struct kept_loss loss;
    if (!kept_loss_read(payload, &loss))
        return false;
    if (b->trace.losses.count > LOSSES_MAX)
        k->refused++;
    else
        trace_builder_loss(b, (enum loss_reason)loss.reason, process, loss.from_ns, loss.to_ns, loss.count);
    return true;
}

static bool take_thread(struct kept_import *k, struct trace_builder *b, uint32_t process, struct span payload)
{
    struct kept_thread thread;
    if (!kept_thread_read(payload, &thread))
        return false;
    buffer_clear(&k->text);
    utf16_append_utf8(&k->text, thread.name);
    if (thread.tid)
        trace_builder_thread_name(b, b->trace.processes.rows[process].pid, thread.tid, buffer_span(&k->text),
                                  0);
    return true;
}

static bool take_process(struct kept_import *k, struct trace_builder *b, uint32_t id, struct span payload)
{
    struct kept_process process;
    if (!kept_process_read(payload, &process))
        return false;
    uint32_t version = add_text(k, b, process.runtime_version);
    uint32_t container = add_text(k, b, process.container);
    struct trace_process *row = &b->trace.processes.rows[id];
    row->runtime_version = version;
    row->container = container;
    return true;
}

static bool take_subscription(struct kept_import *k, struct trace_builder *b, uint32_t process,
                              struct span payload)
{
    struct kept_subscription told;
    struct trace *t = &b->trace;
    if (!kept_subscription_read(payload, &told))
        return false;
    if (t->subscriptions.count > SUBSCRIPTIONS_MAX) {
        k->refused++;
        return true;
    }
    uint32_t provider = add_text(k, b, told.provider), id = trace_push(&t->subscriptions);
    t->subscriptions.rows[id] = (struct trace_subscription){
        .process = process,
        .provider = provider,
        .keywords = told.keywords,
        .from_ns = told.from_ns,
        .to_ns = told.to_ns,
        .level = told.level,
    };
    return true;
}

void kept_import_take(struct kept_import *k, struct trace_builder *b, uint32_t process, uint32_t event_id,
                      struct span payload)
{
    bool ok = true;
    switch (event_id) {
    case KEPT_FACT:
        ok = take_fact(k, b, payload);
        break;
    case KEPT_METHOD:
        ok = take_method(k, b, payload);
        break;
    case KEPT_LOSS:
        ok = take_loss(k, b, process, payload);
        break;
    case KEPT_THREAD:
        ok = take_thread(k, b, process, payload);
        break;
    case KEPT_PROCESS:
        ok = take_process(k, b, process, payload);
        break;
    case KEPT_SUBSCRIPTION:
        ok = take_subscription(k, b, process, payload);
        break;
    default: /* of a later version */
        break;
    }
    k->malformed += !ok;
}

static int method_compare(const void *a, const void *b)
{
    const struct kept_import_method *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* What was noted of the capture, in front of what is noted of the file. */
static void set_notes(struct trace *t, const char *kept)
{
    const char *ours = trace_fact_value(t, FACT_NOTES);
    AUTO_FREE char *all = ours ? mem_format("%s; %s", kept, ours) : mem_copy_string(kept);
    trace_set_fact(t, FACT_NOTES, all);
}

void kept_import_finish(struct kept_import *k, struct trace *t)
{
    for (int i = 0; i < KEPT_FACTS; i++) {
        const char *key = kept_fact_key(i);
        AUTO_FREE char *value = mem_copy_string(trace_string(t, k->facts[i])); /* strings move */
        if (k->facts[i] && strcmp(key, FACT_NOTES) == 0)
            set_notes(t, value);
        else if (k->facts[i])
            trace_set_fact(t, key, value);
    }
    if (k->method_count)
        qsort(k->methods, k->method_count, sizeof *k->methods, method_compare);
}

const struct kept_import_method *kept_import_method(const struct kept_import *k, uint64_t addr)
{
    const struct kept_import_method key = { .addr = addr };
    return k->method_count ? bsearch(&key, k->methods, k->method_count, sizeof *k->methods, method_compare)
                           : NULL;
}
