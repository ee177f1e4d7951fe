#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf16.h"

enum {
    TRACE_TEXT_CEILING = 1 << 30,
    TRACE_PAYLOADS_CEILING = 1 << 30,
    UTF8_BYTES_MAX = 1 << 20, /* of one text */
};

void *trace_push_(void *rows, size_t *count, size_t *capacity, size_t row_size)
{
    rows = mem_grow(rows, capacity, *count + 1, row_size);
    memset((uint8_t *)rows + *count * row_size, 0, row_size);
    ++*count;
    return rows;
}

void trace_init(struct trace *t)
{
    *t = (struct trace){ 0 };
    intern_init(&t->strings, TRACE_TEXT_CEILING);
    trace_push(&t->images);
    trace_push(&t->processes);
    trace_push(&t->threads);
    trace_push(&t->mappings);
    trace_push(&t->codes);
    trace_push(&t->functions);
    trace_push(&t->locations);
    trace_push(&t->inlined);
    for (unsigned root = 0; root < STACK_ROOTS; root++)
        trace_push(&t->stacks);
    trace_push(&t->event_types);
    trace_push(&t->events);
    trace_push(&t->event_activities);
    trace_push(&t->subscriptions);
    buffer_init(&t->payloads, TRACE_PAYLOADS_CEILING);
    trace_push(&t->losses);
    trace_push(&t->facts);
    trace_push(&t->gaps);
}

void trace_done(struct trace *t)
{
    intern_done(&t->strings);
    free(t->images.rows);
    free(t->processes.rows);
    free(t->threads.rows);
    free(t->mappings.rows);
    free(t->codes.rows);
    free(t->functions.rows);
    free(t->locations.rows);
    free(t->inlined.rows);
    free(t->stacks.rows);
    free(t->event_types.rows);
    free(t->events.rows);
    free(t->event_activities.rows);
    event_course_done(&t->course);
    free(t->subscriptions.rows);
    buffer_done(&t->payloads);
    free(t->losses.rows);
    free(t->facts.rows);
    free(t->gaps.rows);
    free(t->samples.time_ns);
    free(t->samples.weight);
    free(t->samples.thread);
    free(t->samples.stack);
    free(t->samples.cpu);
    free(t->samples.kind);
    free(t->samples.runs);
    *t = (struct trace){ 0 };
}

const char *trace_string(const struct trace *t, uint32_t id)
{
    return intern_text(&t->strings, id);
}

struct span trace_string_span(const struct trace *t, uint32_t id)
{
    return intern_span(&t->strings, id);
}

uint32_t trace_add_string(struct trace *t, const char *text)
{
    return intern_cstr(&t->strings, text);
}

uint32_t trace_add_span(struct trace *t, struct span text)
{
    return intern_add(&t->strings, text);
}

uint32_t trace_add_utf16(struct trace *t, struct span text)
{
    struct buffer utf8;
    buffer_init(&utf8, UTF8_BYTES_MAX);
    utf16_append_utf8(&utf8, text);
    uint32_t id = trace_add_span(t, buffer_span(&utf8));
    buffer_done(&utf8);
    return id;
}

struct span trace_event_payload(const struct trace *t, const struct trace_event *event)
{
    return span_part(buffer_span(&t->payloads), event->payload_off, event->payload_bytes);
}

uint32_t trace_event_pointer_size(const struct trace *t, const struct trace_event *event)
{
    return t->event_types.rows[event->type].pointer_size == 4 ? 4 : 8;
}

bool trace_push_event(struct trace *t, const struct trace_event *event, struct span payload)
{
    size_t off = t->payloads.size;
    if (payload.size > TRACE_PAYLOAD_BYTES_MAX || payload.size > t->payloads.ceiling - off)
        return false;
    buffer_append(&t->payloads, payload.data, payload.size);
    uint32_t id = trace_push(&t->events);
    t->events.rows[id] = *event;
    t->events.rows[id].payload_off = (uint32_t)off;
    t->events.rows[id].payload_bytes = (uint32_t)payload.size;
    return true;
}

void trace_push_event_activity(struct trace *t, struct span id, struct span related)
{
    if (t->events.count <= 1 || (id.size == 0 && related.size == 0))
        return;
    uint32_t row_id = trace_push(&t->event_activities);
    struct trace_event_activity *row = &t->event_activities.rows[row_id];
    row->event = (uint32_t)(t->events.count - 1);
    if (id.size == sizeof row->id)
        memcpy(row->id, id.data, sizeof row->id);
    if (related.size == sizeof row->related)
        memcpy(row->related, related.data, sizeof row->related);
}

const struct trace_event_activity *trace_event_activity(const struct trace *t, uint32_t event)
{
    size_t low = 1, high = t->event_activities.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->event_activities.rows[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < t->event_activities.count && t->event_activities.rows[low].event == event;
    return found ? &t->event_activities.rows[low] : NULL;
}

bool trace_location_may_be_jitted(const struct trace *t, const struct trace_location *row)
{
    uint8_t kind = t->images.rows[t->mappings.rows[row->mapping].image].kind;
    return !row->mapping || kind == IMAGE_JIT || kind == IMAGE_ANON;
}

enum stack_end trace_stack_end(const struct trace *t, uint32_t stack)
{
    while (stack >= STACK_ROOTS && stack < t->stacks.count)
        stack = t->stacks.rows[stack].parent;
    return stack > 0 && stack < STACK_ROOTS ? (enum stack_end)stack : STACK_BROKEN;
}

static struct trace_fact *trace_find_fact(const struct trace *t, uint32_t key)
{
    for (size_t i = 1; i < t->facts.count; i++)
        if (t->facts.rows[i].key == key)
            return &t->facts.rows[i];
    return NULL;
}

const char *trace_fact_value(const struct trace *t, const char *key)
{
    for (size_t i = 1; i < t->facts.count; i++)
        if (strcmp(trace_string(t, t->facts.rows[i].key), key) == 0)
            return trace_string(t, t->facts.rows[i].value);
    return NULL;
}

bool trace_fact_number(const struct trace *t, const char *key, uint64_t *out)
{
    const char *text = trace_fact_value(t, key);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *out = value;
    return true;
}

void trace_set_fact_number(struct trace *t, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    trace_set_fact(t, key, text);
}

void trace_set_fact(struct trace *t, const char *key, const char *value)
{
    uint32_t key_id = trace_add_string(t, key);
    uint32_t value_id = trace_add_string(t, value);
    struct trace_fact *known = trace_find_fact(t, key_id);
    if (known) {
        known->value = value_id;
        return;
    }
    uint32_t id = trace_push(&t->facts);
    t->facts.rows[id] = (struct trace_fact){ key_id, value_id };
}

void trace_samples_in_runs(struct trace_samples *s)
{
    if (s->runs)
        return;
    s->runs = mem_alloc(s->capacity, sizeof *s->runs);
    for (size_t i = 0; i < s->count; i++)
        s->runs[i] = (struct sample_run){ .samples = 1 };
}

void trace_push_sample(struct trace_samples *s, uint64_t time_ns, uint32_t thread, uint32_t stack,
                       uint64_t weight, enum sample_kind kind, uint16_t cpu)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 1024;
        s->time_ns = mem_resize(s->time_ns, s->capacity, sizeof *s->time_ns);
        s->weight = mem_resize(s->weight, s->capacity, sizeof *s->weight);
        s->thread = mem_resize(s->thread, s->capacity, sizeof *s->thread);
        s->stack = mem_resize(s->stack, s->capacity, sizeof *s->stack);
        s->cpu = mem_resize(s->cpu, s->capacity, sizeof *s->cpu);
        s->kind = mem_resize(s->kind, s->capacity, sizeof *s->kind);
        if (s->runs)
            s->runs = mem_resize(s->runs, s->capacity, sizeof *s->runs);
    }
    s->time_ns[s->count] = time_ns;
    s->weight[s->count] = weight;
    s->thread[s->count] = thread;
    s->stack[s->count] = stack;
    s->cpu[s->count] = cpu;
    s->kind[s->count] = (uint8_t)kind;
    if (s->runs)
        s->runs[s->count] = (struct sample_run){ .samples = 1 };
    s->count++;
}

bool trace_name_is_place(const char *name, uint64_t *out)
{
    const char *mark = strrchr(name, '!');
    char *end;
    if (!mark || mark == name || strncmp(mark, "!0x", 3) != 0)
        return false;
    *out = strtoull(mark + 3, &end, 16);
    return end > mark + 3 && *end == 0;
}

const char *code_kind_name(enum code_kind kind)
{
    static const char *const names[CODE_KINDS] = { "unknown", "kernel",  "native", "runtime", "r2r",
                                                   "jit",     "dynamic", "stub",   "idle" };
    return (unsigned)kind < CODE_KINDS ? names[kind] : names[CODE_UNKNOWN];
}

bool code_kind_is_managed(enum code_kind kind)
{
    return kind == CODE_R2R || kind == CODE_JIT || kind == CODE_DYNAMIC;
}

const char *code_tier_name(enum code_tier tier)
{
    static const char *const names[CODE_TIERS] = { NULL,  "r2r",   "tier0",    "tier0_instrumented",
                                                   "osr", "tier1", "optimized" };
    return (unsigned)tier < CODE_TIERS ? names[tier] : NULL;
}

const char *resolver_name(enum resolver resolver)
{
    static const char *const names[RESOLVERS] = { "none",       "kallsyms",      "vdso",       "elf_symtab",
                                                  "elf_debug",  "elf_minidebug", "elf_dynsym", "eh_frame",
                                                  "qcall",      "r2r",           "eventpipe",  "memory",
                                                  "perf_map",   "jitdump",       "stub",       "imported",
                                                  "jit_helper", "code",          "fcall",      "aot" };
    return (unsigned)resolver < RESOLVERS ? names[resolver] : names[RESOLVER_NONE];
}

const char *unnamed_cause_name(enum unnamed_cause cause)
{
    static const char *const names[UNNAMED_CAUSES] = { "named",     "no_mapping",  "no_image",
                                                       "no_symbol", "jit_unknown", "not_tried" };
    return (unsigned)cause < UNNAMED_CAUSES ? names[cause] : names[UNNAMED_NO_SYMBOL];
}

const char *loss_reason_name(enum loss_reason reason)
{
    static const char *const names[LOSS_REASONS] = { "ring",  "throttled", "malformed",
                                                     "write", "runtime",   "queue" };
    return (unsigned)reason < LOSS_REASONS ? names[reason] : "unknown";
}

bool trace_fact_pair(const char **rest, struct span *name, uint64_t *value)
{
    const char *at = *rest + strspn(*rest, " ");
    size_t size = strcspn(at, " ");
    char *end;
    *value = strtoull(at + size, &end, 10);
    if (size == 0 || end == at + size)
        return false;
    *name = span_of(at, size);
    *rest = end;
    return true;
}
