#include "render/nettrace_kept.h"

#include <string.h>

#include "clr/kept_events.h"
#include "trace/facts.h"

enum { PAYLOAD_BYTES_MAX = 1 << 20, LEVEL = 4 };

/* Who tells. */
struct kept_teller {
    struct nettrace_stream *s;
    uint64_t time_ns;
    uint32_t types[KEPT_EVENTS]; /* 0: not described yet */
    struct buffer payload;
};

static uint32_t type_of(struct kept_teller *t, enum kept_event_id id)
{
    if (t->types[id])
        return t->types[id];
    struct buffer fields;
    buffer_init(&fields, PAYLOAD_BYTES_MAX);
    kept_event_describe(id, &fields);
    t->types[id] =
        nettrace_stream_add_type(t->s, &(struct nettrace_stream_type){ .provider = KEPT_PROVIDER,
                                                                       .name = kept_event_name(id),
                                                                       .event_id = id,
                                                                       .version = KEPT_VERSION,
                                                                       .level = LEVEL,
                                                                       .fields = buffer_span(&fields) });
    buffer_done(&fields);
    return t->types[id];
}

static void tell(struct kept_teller *t, enum kept_event_id id)
{
    nettrace_stream_tell(t->s, type_of(t, id), t->time_ns, &t->payload);
}

/* Whose samples are not in the file. */
static bool is_of_samples(const char *key)
{
    return strcmp(key, FACT_EVENT) == 0 || strcmp(key, FACT_UNIT) == 0 || strcmp(key, FACT_RATE_HZ) == 0 ||
           strcmp(key, FACT_FRAMES_FOUND) == 0;
}

void nettrace_kept_begin(const struct trace *t, bool cpu_samples, struct nettrace_stream *s, uint64_t time_ns)
{
    struct kept_teller teller = { .s = s, .time_ns = time_ns };
    buffer_init(&teller.payload, PAYLOAD_BYTES_MAX);
    type_of(&teller, KEPT_FACT); /* also where there are none: it says who wrote this */
    for (int i = 0; i < KEPT_FACTS; i++) {
        const char *key = kept_fact_key(i), *value = trace_fact_value(t, key);
        if (!value || (!cpu_samples && is_of_samples(key)))
            continue;
        kept_fact_append(&teller.payload, key, value);
        tell(&teller, KEPT_FACT);
    }
    buffer_done(&teller.payload);
}

static void tell_losses(struct kept_teller *teller, const struct trace *t, uint32_t process)
{
    for (uint32_t i = 1; i < t->losses.count; i++) {
        const struct trace_loss *row = &t->losses.rows[i];
        if (row->reason == LOSS_RUNTIME || (row->process && row->process != process))
            continue; /* sequence points tell of those that runtimes lost */
        kept_loss_append(&teller->payload, &(struct kept_loss){ .reason = row->reason,
                                                                .count = row->count,
                                                                .from_ns = row->from_ns,
                                                                .to_ns = row->to_ns });
        tell(teller, KEPT_LOSS);
    }
}

static void tell_threads(struct kept_teller *teller, const struct trace *t, uint32_t process)
{
    for (uint32_t i = 1; i < t->threads.count; i++) {
        const struct trace_thread *row = &t->threads.rows[i];
        if (row->process != process || !row->name)
            continue;
        kept_thread_append(&teller->payload, row->tid, trace_string(t, row->name));
        tell(teller, KEPT_THREAD);
    }
}

static void tell_process(struct kept_teller *teller, const struct trace *t, uint32_t process)
{
    const struct trace_process *row = &t->processes.rows[process];
    kept_process_append(&teller->payload, trace_string(t, row->runtime_version),
                        trace_string(t, row->container));
    tell(teller, KEPT_PROCESS);
}

static void tell_subscriptions(struct kept_teller *teller, const struct trace *t, uint32_t process)
{
    for (uint32_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        if (row->process != process)
            continue;
        kept_subscription_append(&teller->payload,
                                 &(struct kept_subscription){ .keywords = row->keywords,
                                                              .level = row->level,
                                                              .from_ns = row->from_ns,
                                                              .to_ns = row->to_ns },
                                 trace_string(t, row->provider));
        tell(teller, KEPT_SUBSCRIPTION);
    }
}

void nettrace_kept_end(const struct trace *t, uint32_t process, struct nettrace_stream *s, uint64_t time_ns)
{
    struct kept_teller teller = { .s = s, .time_ns = time_ns };
    buffer_init(&teller.payload, PAYLOAD_BYTES_MAX);
    tell_losses(&teller, t, process);
    tell_threads(&teller, t, process);
    tell_process(&teller, t, process);
    tell_subscriptions(&teller, t, process);
    buffer_done(&teller.payload);
}
