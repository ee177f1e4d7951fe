#include "trace/trace_reader.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "trace/block_reader.h"
#include "trace/format.h"
#include "trace/trace_check.h"

enum {
    /* rows that the lost blocks of a file may have held; more is taken for nonsense */
    READER_MISSING_ROWS_MAX = 1 << 22,
    READER_FACTS_MAX = 1024, /* they are looked up one after the other */
};

struct reader {
    struct trace *trace;
    uint64_t malformed;    /* sections or rows that made no sense */
    uint64_t missing;      /* rows of lost blocks so far */
    size_t section_events; /* where the last section's events begin; 0: there was none in this block */
    bool ended;
};

/* Reads one table's rows: `first` may repeat known rows (they changed) or leave out lost ones. */
static bool reader_rows(struct reader *r, size_t known, uint64_t first, uint64_t count, uint64_t *out_missing)
{
    *out_missing = 0;
    if (first == 0 || count > FORMAT_RAW_BYTES_MAX || first > UINT32_MAX - count)
        return false;
    if (first > known) {
        *out_missing = first - known;
        if (r->trace->gaps.count <= 1 || *out_missing > READER_MISSING_ROWS_MAX - r->missing)
            return false;
        r->missing += *out_missing;
    }
    return true;
}

static struct trace_image get_image(struct cursor *c)
{
    struct trace_image row = { 0 };
    row.path = cursor_varuint32(c);
    row.build_id = cursor_varuint32(c);
    row.device_major = cursor_varuint32(c);
    row.device_minor = cursor_varuint32(c);
    row.inode = cursor_varuint64(c);
    row.kind = cursor_u8(c);
    return row;
}

static struct trace_process get_process(struct cursor *c)
{
    struct trace_process row = { 0 };
    row.pid = cursor_varuint32(c);
    row.ns_pid = cursor_varuint32(c);
    row.name = cursor_varuint32(c);
    row.command_line = cursor_varuint32(c);
    row.runtime_version = cursor_varuint32(c);
    row.container = cursor_varuint32(c);
    row.start_ticks = cursor_varuint64(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    return row;
}

static struct trace_thread get_thread(struct cursor *c)
{
    struct trace_thread row = { 0 };
    row.process = cursor_varuint32(c);
    row.tid = cursor_varuint32(c);
    row.name = cursor_varuint32(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    return row;
}

static struct trace_mapping get_mapping(struct cursor *c)
{
    struct trace_mapping row = { 0 };
    row.process = cursor_varuint32(c);
    row.image = cursor_varuint32(c);
    row.start = cursor_varuint64(c);
    row.end = row.start + cursor_varuint64(c);
    row.file_off = cursor_varuint64(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    return row;
}

static struct trace_function get_function(struct cursor *c)
{
    struct trace_function row = { 0 };
    row.name = cursor_varuint32(c);
    row.module = cursor_varuint32(c);
    row.type_params = cursor_varuint32(c);
    row.kind = cursor_u8(c);
    return row;
}

static struct trace_code get_code(struct cursor *c)
{
    struct trace_code row = { 0 };
    row.process = cursor_varuint32(c);
    row.function = cursor_varuint32(c);
    row.addr = cursor_varuint64(c);
    row.size_bytes = cursor_varuint64(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    row.module_path = cursor_varuint32(c);
    row.token = cursor_varuint32(c);
    row.tier = cursor_u8(c);
    row.resolver = cursor_u8(c);
    return row;
}

static struct trace_loss get_loss(struct cursor *c)
{
    struct trace_loss row = { 0 };
    row.reason = cursor_u8(c);
    row.process = cursor_varuint32(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    row.count = cursor_varuint64(c);
    return row;
}

/* Reads rows into a table with `get`; a row of a lost block stays zero. */
#define READ_TABLE(r, c, first, count, table, get)                                                           \
    do {                                                                                                     \
        uint64_t missing;                                                                                    \
        if (!reader_rows((r), (table).count, (first), (count), &missing))                                    \
            return false;                                                                                    \
        for (; missing; missing--)                                                                           \
            trace_push(&(table));                                                                            \
        for (uint64_t i = 0; i < (count) && cursor_ok(c); i++) {                                             \
            __typeof__(*(table).rows) row = get(c);                                                          \
            if (!cursor_ok(c))                                                                               \
                break;                                                                                       \
            uint32_t id = (uint32_t)((first) + i);                                                           \
            if (id == (table).count)                                                                         \
                trace_push(&(table));                                                                        \
            (table).rows[id] = row;                                                                          \
        }                                                                                                    \
        return cursor_ok(c);                                                                                 \
    } while (0)

#define LOST_TEXT "[lost]"

/* A location whose function, or the function's name, was in a lost block has none. */
static void forget_lost_names(struct trace *t)
{
    for (size_t i = 1; i < t->locations.count; i++) {
        struct trace_location *row = &t->locations.rows[i];
        const char *name = trace_string(t, t->functions.rows[row->function].name);
        if (row->function && (!name[0] || strcmp(name, LOST_TEXT) == 0)) {
            row->function = 0;
            row->unnamed = UNNAMED_NOT_TRIED;
        }
    }
}

static bool read_strings(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    struct intern *strings = &r->trace->strings;
    uint64_t missing;
    if (!reader_rows(r, strings->count, first, count, &missing) || first < strings->count)
        return false;
    for (; missing; missing--)
        if (!intern_append(strings, span_of(LOST_TEXT, sizeof LOST_TEXT - 1)))
            return false;
    for (uint64_t i = 0; i < count && cursor_ok(c); i++) {
        struct span text = cursor_bytes(c, cursor_varuint64(c));
        if (cursor_ok(c) && !intern_append(strings, text))
            return false;
    }
    return cursor_ok(c);
}

static bool read_facts(struct reader *r, struct cursor *c, uint64_t count)
{
    for (uint64_t i = 0; i < count && cursor_ok(c); i++) {
        uint32_t key = cursor_varuint32(c), value = cursor_varuint32(c);
        if (r->trace->facts.count > READER_FACTS_MAX)
            return false;
        if (cursor_ok(c))
            trace_set_fact(r->trace, trace_string(r->trace, key), trace_string(r->trace, value));
    }
    return cursor_ok(c);
}

static struct trace_event_type get_event_type(struct cursor *c)
{
    struct trace_event_type row = { .provider = cursor_varuint32(c) };
    row.name = cursor_varuint32(c);
    row.event_id = cursor_varuint32(c);
    row.version = cursor_varuint32(c);
    return row;
}

static struct trace_subscription get_subscription(struct cursor *c)
{
    struct trace_subscription row = { .process = cursor_varuint32(c) };
    row.provider = cursor_varuint32(c);
    row.keywords = cursor_varuint64(c);
    row.from_ns = cursor_varuint64(c);
    row.to_ns = cursor_varuint64(c);
    row.level = cursor_u8(c);
    return row;
}

static bool read_images(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->images, get_image);
}

static bool read_processes(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->processes, get_process);
}

static bool read_threads(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->threads, get_thread);
}

static bool read_mappings(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->mappings, get_mapping);
}

static bool read_functions(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->functions, get_function);
}

static bool read_codes(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->codes, get_code);
}

static bool read_losses(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->losses, get_loss);
}

static bool read_locations(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    uint64_t missing;
    if (!reader_rows(r, r->trace->locations.count, first, count, &missing) ||
        first < r->trace->locations.count)
        return false;
    for (; missing; missing--)
        trace_push(&r->trace->locations);
    struct trace_location row = { 0 };
    for (uint64_t i = 0; i < count; i++) {
        uint64_t process = cursor_varuint64(c);
        row.process = (uint32_t)(process >> 1);
        row.is_return = process & 1;
        row.mapping = cursor_varuint32(c);
        row.code = cursor_varuint32(c);
        row.addr += (uint64_t)cursor_zigzag64(c);
        row.first_ns += (uint64_t)cursor_zigzag64(c);
        row.unnamed = UNNAMED_NOT_TRIED;
        if (!cursor_ok(c))
            return false;
        uint32_t id = trace_push(&r->trace->locations);
        r->trace->locations.rows[id] = row;
    }
    return true;
}

static bool read_names(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    for (uint64_t id = first; count && cursor_ok(c); count--, id++) {
        struct trace_location named = { .function = cursor_varuint32(c) };
        named.file = cursor_varuint32(c);
        named.line = cursor_varuint32(c);
        named.tier = cursor_u8(c);
        named.resolver = cursor_u8(c);
        named.unnamed = cursor_u8(c);
        if (!cursor_ok(c) || id >= r->trace->locations.count)
            return false;
        struct trace_location *row = &r->trace->locations.rows[id];
        row->function = named.function;
        row->file = named.file;
        row->line = named.line;
        row->tier = named.tier;
        row->resolver = named.resolver;
        row->unnamed = named.unnamed;
    }
    return cursor_ok(c);
}

static bool read_method_lines(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    for (uint64_t id = first; count; count--, id++) {
        bool of_method = cursor_u8(c);
        if (!cursor_ok(c) || id >= r->trace->locations.count)
            return false;
        r->trace->locations.rows[id].line_of_method = of_method;
    }
    return true;
}

/* The rows of one location. */
static bool read_inlined_at(struct trace *t, struct cursor *c, uint64_t location)
{
    uint64_t count = cursor_varuint64(c);
    if (location == 0 || location >= t->locations.count || count == 0 || count > TRACE_INLINED_MAX)
        return false;
    size_t first = t->inlined.count;
    for (uint64_t i = 0; i < count; i++) {
        struct trace_inlined row = { .function = cursor_varuint32(c) };
        row.file = cursor_varuint32(c);
        row.line = cursor_varuint32(c);
        if (!cursor_ok(c))
            return false;
        uint32_t id = trace_push(&t->inlined);
        t->inlined.rows[id] = row;
    }
    t->locations.rows[location].inlined = (uint32_t)first;
    t->locations.rows[location].inlined_count = (uint8_t)count;
    return true;
}

static bool read_inlined(struct reader *r, struct cursor *c, uint64_t count)
{
    uint64_t location = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t step = cursor_varuint64(c);
        if (!cursor_ok(c) || step >= r->trace->locations.count)
            return false;
        location += step;
        if (!read_inlined_at(r->trace, c, location))
            return false;
    }
    return true;
}

static bool read_stacks(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    uint64_t missing;
    if (!reader_rows(r, r->trace->stacks.count, first, count, &missing) || first < r->trace->stacks.count)
        return false;
    for (; missing; missing--) {
        uint32_t id = trace_push(&r->trace->stacks);
        r->trace->stacks.rows[id].parent = STACK_BROKEN;
    }
    if (count > cursor_left(c))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t back = cursor_varuint64(c);
        uint32_t id = trace_push(&r->trace->stacks);
        r->trace->stacks.rows[id].parent = back && back < id ? (uint32_t)(id - back) : STACK_BROKEN;
    }
    for (uint64_t i = 0; i < count; i++)
        r->trace->stacks.rows[first + i].location = cursor_varuint32(c);
    return cursor_ok(c);
}

static bool read_samples(struct reader *r, struct cursor *c, uint64_t count)
{
    uint64_t time_ns = cursor_varuint64(c);
    if (count > cursor_left(c) / 6) /* each has six columns of a byte or more */
        return false;
    struct trace_samples *s = &r->trace->samples;
    size_t from = s->count;
    for (uint64_t i = 0; i < count; i++) {
        time_ns += (uint64_t)cursor_zigzag64(c);
        trace_push_sample(s, time_ns, 0, 0, 0, SAMPLE_CPU, 0);
    }
    for (size_t i = from; i < s->count; i++)
        s->thread[i] = cursor_varuint32(c);
    for (size_t i = from; i < s->count; i++)
        s->stack[i] = cursor_varuint32(c);
    uint64_t weight = 0;
    for (size_t i = from; i < s->count; i++)
        s->weight[i] = weight += (uint64_t)cursor_zigzag64(c);
    for (size_t i = from; i < s->count; i++)
        s->cpu[i] = (uint16_t)cursor_varuint32(c);
    for (size_t i = from; i < s->count; i++)
        s->kind[i] = cursor_u8(c);
    if (!cursor_ok(c))
        s->count = from; /* half a section would be invented samples */
    return cursor_ok(c);
}

static bool read_event_types(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->event_types, get_event_type);
}

static bool read_subscriptions(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    READ_TABLE(r, c, first, count, r->trace->subscriptions, get_subscription);
}

static bool read_payloads(struct trace *t, struct cursor *c, size_t from)
{
    for (size_t i = from; i < t->events.count && cursor_ok(c); i++) {
        struct trace_event *row = &t->events.rows[i];
        struct span payload = cursor_bytes(c, row->payload_bytes);
        if (row->payload_bytes > TRACE_PAYLOAD_BYTES_MAX)
            return false;
        row->payload_off = (uint32_t)t->payloads.size;
        buffer_append(&t->payloads, payload.data, payload.size);
    }
    return cursor_ok(c) && !t->payloads.failed;
}

static bool read_events(struct reader *r, struct cursor *c, uint64_t count)
{
    struct trace *t = r->trace;
    size_t from = t->events.count, payloads = t->payloads.size;
    uint64_t time_ns = cursor_varuint64(c);
    if (count > cursor_left(c) / 6) /* each has six columns of a byte or more */
        return false;
    for (uint64_t i = 0; i < count; i++) {
        time_ns += (uint64_t)cursor_zigzag64(c);
        uint32_t id = trace_push(&t->events);
        t->events.rows[id].time_ns = time_ns;
    }
    for (size_t i = from; i < t->events.count; i++)
        t->events.rows[i].type = cursor_varuint32(c);
    for (size_t i = from; i < t->events.count; i++)
        t->events.rows[i].process = cursor_varuint32(c);
    for (size_t i = from; i < t->events.count; i++)
        t->events.rows[i].thread = cursor_varuint32(c);
    for (size_t i = from; i < t->events.count; i++)
        t->events.rows[i].stack = cursor_varuint32(c);
    for (size_t i = from; i < t->events.count; i++)
        t->events.rows[i].payload_bytes = cursor_varuint32(c);
    if (read_payloads(t, c, from)) {
        r->section_events = from;
        return true;
    }
    t->events.count = from; /* as with samples: no half a section */
    t->payloads.size = payloads;
    t->payloads.failed = false;
    return false;
}

static bool read_event_descriptions(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    for (uint64_t id = first; count; count--, id++) {
        uint8_t level = cursor_u8(c), opcode = cursor_u8(c), pointer_size = cursor_u8(c);
        uint8_t description = cursor_u8(c);
        uint64_t keywords = cursor_varuint64(c);
        uint32_t fields = cursor_varuint32(c), params = cursor_varuint32(c);
        if (!cursor_ok(c) || id == 0 || id >= r->trace->event_types.count)
            return false;
        struct trace_event_type *row = &r->trace->event_types.rows[id];
        row->level = level;
        row->opcode = opcode;
        row->pointer_size = pointer_size;
        row->description = description;
        row->keywords = keywords;
        row->fields = fields;
        row->params = params;
    }
    return true;
}

static bool read_event_activities(struct reader *r, struct cursor *c, uint64_t count)
{
    struct trace *t = r->trace;
    uint64_t event = r->section_events;
    if (event == 0)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t step = cursor_varuint64(c);
        struct span id = cursor_bytes(c, 16), related = cursor_bytes(c, 16);
        if (!cursor_ok(c) || (i && step == 0) || step >= t->events.count - event)
            return false;
        event += step;
        uint32_t row = trace_push(&t->event_activities);
        t->event_activities.rows[row].event = (uint32_t)event;
        memcpy(t->event_activities.rows[row].id, id.data, id.size);
        memcpy(t->event_activities.rows[row].related, related.data, related.size);
    }
    r->section_events = 0; /* they are told once */
    return true;
}

static bool read_section(struct reader *r, struct cursor *c)
{
    uint8_t kind = cursor_u8(c);
    uint64_t first = cursor_varuint64(c), count = cursor_varuint64(c);
    switch ((enum format_section)kind) {
    case FORMAT_STRINGS:
        return read_strings(r, c, first, count);
    case FORMAT_FACTS:
        return read_facts(r, c, count);
    case FORMAT_IMAGES:
        return read_images(r, c, first, count);
    case FORMAT_PROCESSES:
        return read_processes(r, c, first, count);
    case FORMAT_THREADS:
        return read_threads(r, c, first, count);
    case FORMAT_MAPPINGS:
        return read_mappings(r, c, first, count);
    case FORMAT_FUNCTIONS:
        return read_functions(r, c, first, count);
    case FORMAT_CODES:
        return read_codes(r, c, first, count);
    case FORMAT_LOCATIONS:
        return read_locations(r, c, first, count);
    case FORMAT_NAMES:
        return read_names(r, c, first, count);
    case FORMAT_STACKS:
        return read_stacks(r, c, first, count);
    case FORMAT_SAMPLES:
        return read_samples(r, c, count);
    case FORMAT_LOSSES:
        return read_losses(r, c, first, count);
    case FORMAT_STATE:
        r->trace->symbolized = cursor_varuint64(c) & FORMAT_SYMBOLIZED;
        return cursor_ok(c);
    case FORMAT_METHOD_LINES:
        return read_method_lines(r, c, first, count);
    case FORMAT_EVENT_TYPES:
        return read_event_types(r, c, first, count);
    case FORMAT_SUBSCRIPTIONS:
        return read_subscriptions(r, c, first, count);
    case FORMAT_EVENTS:
        return read_events(r, c, count);
    case FORMAT_EVENT_DESCRIPTIONS:
        return read_event_descriptions(r, c, first, count);
    case FORMAT_EVENT_ACTIVITIES:
        return read_event_activities(r, c, count);
    case FORMAT_INLINED:
        return read_inlined(r, c, count);
    }
    return false; /* a section has no length of its own: what follows an unknown one cannot be read */
}

static void reader_block(struct reader *r, uint16_t type, struct span content)
{
    if (type == FORMAT_END) {
        r->ended = true;
        return;
    }
    struct cursor c = cursor_over(content);
    r->section_events = 0;
    while (type == FORMAT_BATCH && cursor_left(&c))
        if (!read_section(r, &c)) {
            r->malformed++;
            return;
        }
}

bool trace_reader_recognises(struct span first_bytes)
{
    return block_reader_recognises(first_bytes);
}

bool trace_reader_load(const struct source *file, struct trace *out, struct error *err)
{
    struct reader r = { .trace = out };
    struct block_reader blocks;
    struct span content;
    uint32_t seed;
    uint16_t type;
    if (!block_reader_header(file, &seed, err))
        return false;
    trace_init(out);
    block_reader_init(&blocks, file, seed, out);
    while (!r.ended && block_reader_next(&blocks, &type, &content))
        reader_block(&r, type, content);
    out->complete = r.ended;
    uint64_t malformed = r.malformed + blocks.malformed + trace_check(out);
    if (out->gaps.count > 1)
        forget_lost_names(out);
    if (malformed) {
        uint32_t id = trace_push(&out->losses);
        out->losses.rows[id] = (struct trace_loss){ .reason = LOSS_MALFORMED, .count = malformed };
    }
    block_reader_done(&blocks);
    return true;
}
