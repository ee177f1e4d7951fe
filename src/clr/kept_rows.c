#include "clr/kept_rows.h"

#include <string.h>

#include "base/units.h"
#include "base/utf16.h"
#include "trace/facts.h"

/* Not those about samples that the file does not hold, nor what it is. */
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

const char *kept_fact_key(int index)
{
    return facts[index];
}

/* Takes the text up to a blank, which is taken too, or to the end. False when there is none. */
static bool take_word(struct span *text, struct span *out)
{
    if (!text->size)
        return false;
    const uint8_t *blank = memchr(text->data, ' ', text->size);
    *out = span_of(text->data, blank ? (size_t)(blank - text->data) : text->size);
    size_t taken = out->size + (blank != NULL);
    *text = span_of(text->data + taken, text->size - taken);
    return true;
}

static bool take_number(struct span *text, uint64_t max, uint64_t *out)
{
    struct span word;
    return take_word(text, &word) && units_parse_digits(word, out) && *out <= max;
}

bool kept_fact_read(struct span text, struct kept_fact *out)
{
    struct span key;
    if (!take_word(&text, &key))
        return false;
    int index = KEPT_FACTS;
    while (--index >= 0 && !span_equals(key, span_of(facts[index], strlen(facts[index]))))
        continue;
    *out = (struct kept_fact){ index, text };
    return true;
}

bool kept_loss_read(struct span text, struct trace_loss *out)
{
    struct trace_loss loss = { 0 };
    uint64_t reason;
    if (!take_number(&text, LOSS_REASONS - 1, &reason) || !take_number(&text, UINT64_MAX, &loss.count) ||
        !take_number(&text, UINT64_MAX, &loss.from_ns) || !take_number(&text, UINT64_MAX, &loss.to_ns))
        return false;
    loss.reason = (uint8_t)reason;
    *out = loss;
    return true;
}

bool kept_thread_read(struct span text, struct kept_thread *out)
{
    uint64_t tid;
    if (!take_number(&text, UINT32_MAX, &tid) || !tid)
        return false;
    *out = (struct kept_thread){ (uint32_t)tid, text };
    return true;
}

bool kept_subscription_read(struct span text, struct kept_subscription *out)
{
    struct kept_subscription row = { 0 };
    uint64_t level;
    if (!take_number(&text, UINT64_MAX, &row.keywords) || !take_number(&text, UINT8_MAX, &level) ||
        !take_number(&text, UINT64_MAX, &row.from_ns) || !take_number(&text, UINT64_MAX, &row.to_ns))
        return false;
    row.level = (uint8_t)level;
    row.provider = text;
    *out = row;
    return true;
}

bool kept_mapping_read(struct span text, struct kept_mapping *out)
{
    struct kept_mapping row = { 0 };
    uint64_t kind;
    if (!take_number(&text, IMAGE_KINDS - 1, &kind) || !take_number(&text, UINT64_MAX, &row.start) ||
        !take_number(&text, UINT64_MAX, &row.end) || row.end <= row.start)
        return false;
    row.kind = (uint8_t)kind;
    row.path = text;
    *out = row;
    return true;
}

void kept_method_append(struct buffer *out, const struct trace_function *f, const struct trace_location *row,
                        const char *type_params)
{
    buffer_u8(out, f->kind);
    buffer_u8(out, row->tier);
    buffer_u8(out, row->resolver);
    utf16_append_zstring(out, span_of(type_params, strlen(type_params)));
}

bool kept_method_read(struct span rest, struct kept_method *out)
{
    struct cursor c = cursor_over(rest);
    cursor_u16le(&c); /* runtime instance */
    struct kept_method m = { .kind = cursor_u8(&c) };
    m.tier = cursor_u8(&c);
    m.resolver = cursor_u8(&c);
    m.type_params = utf16_zstring(&c);
    if (!cursor_ok(&c) || m.kind >= CODE_KINDS || m.tier >= CODE_TIERS || m.resolver >= RESOLVERS)
        return false;
    *out = m;
    return true;
}

void kept_sample_append(struct buffer *out, const struct kept_sample *sample)
{
    buffer_u32le(out, sample->state);
    buffer_u32le(out, sample->cpu);
    buffer_u64le(out, sample->weight);
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
