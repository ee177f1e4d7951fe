#include "clr/kept_events.h"

#include <string.h>

#include "base/utf16.h"
#include "trace/facts.h"

/* Codes of nettrace's field types. */
enum { FIELD_U8 = 6, FIELD_U32 = 10, FIELD_U64 = 12, FIELD_TEXT = 18, FIELDS_MAX = 5 };

struct kept_field {
    const char *name;
    uint32_t code;
};

struct kept_layout {
    const char *name;
    struct kept_field fields[FIELDS_MAX];
};

static const struct kept_layout layouts[KEPT_EVENTS] = {
    [KEPT_FACT] = { "Fact", { { "Key", FIELD_TEXT }, { "Value", FIELD_TEXT } } },
    [KEPT_METHOD] = { "Method",
                      { { "Address", FIELD_U64 },
                        { "Kind", FIELD_U8 },
                        { "Tier", FIELD_U8 },
                        { "Resolver", FIELD_U8 },
                        { "TypeParameters", FIELD_TEXT } } },
    [KEPT_LOSS] = { "Loss",
                    { { "Reason", FIELD_U8 },
                      { "Count", FIELD_U64 },
                      { "From", FIELD_U64 },
                      { "To", FIELD_U64 } } },
    [KEPT_THREAD] = { "Thread", { { "Number", FIELD_U32 }, { "Name", FIELD_TEXT } } },
    [KEPT_PROCESS] = { "Process", { { "RuntimeVersion", FIELD_TEXT }, { "Container", FIELD_TEXT } } },
    [KEPT_SUBSCRIPTION] = { "Subscription",
                            { { "Provider", FIELD_TEXT },
                              { "Keywords", FIELD_U64 },
                              { "Level", FIELD_U8 },
                              { "From", FIELD_U64 },
                              { "To", FIELD_U64 } } },
};

/* Not those about samples that the file does not hold, nor what it is or says in its own way. */
static const char *const facts[KEPT_FACTS] = {
    FACT_EVENT,
    FACT_UNIT,
    FACT_RATE_HZ,
    FACT_KERNEL_FRAMES,
    FACT_DURATION_NS,
    FACT_STARTED_MONOTONIC_NS,
    FACT_STARTED_REALTIME_NS,
    FACT_FRAMES_FOUND,
    FACT_STACKS,
    FACT_SELF_CPU_NS,
    FACT_SELF_PEAK_RSS,
    FACT_TOOL,
    FACT_HOST,
    FACT_KERNEL,
    FACT_ARCH,
    FACT_CPU,
    FACT_CPUS,
    FACT_COMMAND_LINE,
    FACT_NOTES,
};

const char *kept_event_name(enum kept_event_id id)
{
    return layouts[id].name;
}

void kept_event_describe(enum kept_event_id id, struct buffer *out)
{
    const struct kept_field *fields = layouts[id].fields;
    uint32_t count = 0;
    while (count < FIELDS_MAX && fields[count].name)
        count++;
    buffer_u32le(out, count);
    for (uint32_t i = 0; i < count; i++) {
        buffer_u32le(out, fields[i].code);
        utf16_append_zstring(out, span_of(fields[i].name, strlen(fields[i].name)));
    }
}

int kept_fact_index(struct span key)
{
    for (int i = 0; i < KEPT_FACTS; i++)
        if (utf16_equals_ascii(key, facts[i]))
            return i;
    return -1;
}

const char *kept_fact_key(int index)
{
    return facts[index];
}

/* Writing. */

static void put_text(struct buffer *out, const char *text)
{
    utf16_append_zstring(out, span_of(text, strlen(text)));
}

void kept_fact_append(struct buffer *out, const char *key, const char *value)
{
    put_text(out, key);
    put_text(out, value);
}

void kept_method_append(struct buffer *out, const struct kept_method *m, const char *type_params)
{
    buffer_u64le(out, m->addr);
    buffer_u8(out, m->kind);
    buffer_u8(out, m->tier);
    buffer_u8(out, m->resolver);
    put_text(out, type_params);
}

void kept_loss_append(struct buffer *out, const struct kept_loss *loss)
{
    buffer_u8(out, loss->reason);
    buffer_u64le(out, loss->count);
    buffer_u64le(out, loss->from_ns);
    buffer_u64le(out, loss->to_ns);
}

void kept_thread_append(struct buffer *out, uint32_t tid, const char *name)
{
    buffer_u32le(out, tid);
    put_text(out, name);
}

void kept_process_append(struct buffer *out, const char *runtime_version, const char *container)
{
    put_text(out, runtime_version);
    put_text(out, container);
}

void kept_subscription_append(struct buffer *out, const struct kept_subscription *row, const char *provider)
{
    put_text(out, provider);
    buffer_u64le(out, row->keywords);
    buffer_u8(out, row->level);
    buffer_u64le(out, row->from_ns);
    buffer_u64le(out, row->to_ns);
}

void kept_sample_append(struct buffer *out, const struct kept_sample *sample)
{
    buffer_u32le(out, sample->state);
    buffer_u32le(out, sample->cpu);
    buffer_u64le(out, sample->weight);
}

/* Reading. */

bool kept_fact_read(struct span payload, struct kept_fact *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_fact fact = { .key = utf16_zstring(&c) };
    fact.value = utf16_zstring(&c);
    if (!cursor_ok(&c))
        return false;
    *out = fact;
    return true;
}

bool kept_method_read(struct span payload, struct kept_method *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_method m = { .addr = cursor_u64le(&c) };
    m.kind = cursor_u8(&c);
    m.tier = cursor_u8(&c);
    m.resolver = cursor_u8(&c);
    m.type_params = utf16_zstring(&c);
    if (!cursor_ok(&c) || m.kind >= CODE_KINDS || m.tier >= CODE_TIERS || m.resolver >= RESOLVERS)
        return false;
    *out = m;
    return true;
}

bool kept_loss_read(struct span payload, struct kept_loss *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_loss loss = { .reason = cursor_u8(&c) };
    loss.count = cursor_u64le(&c);
    loss.from_ns = cursor_u64le(&c);
    loss.to_ns = cursor_u64le(&c);
    if (!cursor_ok(&c) || loss.reason >= LOSS_REASONS || loss.to_ns < loss.from_ns)
        return false;
    *out = loss;
    return true;
}

bool kept_thread_read(struct span payload, struct kept_thread *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_thread thread = { .tid = cursor_u32le(&c) };
    thread.name = utf16_zstring(&c);
    if (!cursor_ok(&c))
        return false;
    *out = thread;
    return true;
}

bool kept_process_read(struct span payload, struct kept_process *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_process process = { .runtime_version = utf16_zstring(&c) };
    process.container = utf16_zstring(&c);
    if (!cursor_ok(&c))
        return false;
    *out = process;
    return true;
}

bool kept_subscription_read(struct span payload, struct kept_subscription *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_subscription row = { .provider = utf16_zstring(&c) };
    row.keywords = cursor_u64le(&c);
    row.level = cursor_u8(&c);
    row.from_ns = cursor_u64le(&c);
    row.to_ns = cursor_u64le(&c);
    if (!cursor_ok(&c))
        return false;
    *out = row;
    return true;
}

bool kept_sample_read(struct span payload, struct kept_sample *out)
{
    struct cursor c = cursor_over(payload);
    struct kept_sample sample = { .state = cursor_u32le(&c) };
    sample.cpu = cursor_u32le(&c);
    sample.weight = cursor_u64le(&c);
    if (!cursor_ok(&c) || sample.cpu > UINT16_MAX || sample.state < KEPT_STATE_OUTSIDE ||
        sample.state > KEPT_STATE_SAMPLE)
        return false;
    *out = sample;
    return true;
}
