#include "trace/trace_reader.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/own.h"
#include "trace/format.h"

enum {
    /* rows that the lost blocks of a file may have held; more is taken for nonsense */
    READER_MISSING_ROWS_MAX = 1 << 22,
    READER_FACTS_MAX = 1024, /* they are looked up one after the other */
    READER_SCAN_BYTES = 64 * 1024,
    /* what a file may unpack to: a block of zeros is a ten thousandth of itself, captures are a twentieth at
       least */
    READER_RAW_BYTES_FREE = 64 << 20,
    READER_RAW_TIMES = 100,
    READER_SEARCH_MAX = 16, /* how often the file may be gone through for what only looks like blocks */
};

struct reader {
    const struct source *file;
    struct trace *trace;
    uint32_t seed;
    uint64_t malformed; /* sections or rows that made no sense */
    uint64_t missing;   /* rows of lost blocks so far */
    uint64_t searched;  /* bytes of blocks that were looked at behind damage */
    uint64_t unpacked;  /* bytes of blocks that were read */
    struct buffer stored, raw;
    size_t section_events; /* where the last section's events begin; 0: there was none in this block */
    bool ended;
};

struct block_head {
    uint16_t type, flags;
    uint32_t sequence, stored, raw;
    uint32_t crc;
};

bool trace_reader_recognises(struct span first_bytes)
{
    return first_bytes.size >= 8 && memcmp(first_bytes.data, FORMAT_MAGIC, 8) == 0;
}

static bool reader_header(struct reader *r, struct error *err)
{
    uint8_t bytes[FORMAT_HEADER_BYTES];
    if (!source_read(r->file, 0, bytes, sizeof bytes, err))
        return error_set(err, ERROR_INPUT, "the file is too short for a clrperf capture (%" PRIu64 " bytes)",
                         r->file->size);
    if (!trace_reader_recognises(span_of(bytes, sizeof bytes)))
        return error_set(err, ERROR_INPUT, "offset 0: expected a clrperf capture's magic");
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    cursor_skip(&c, 8);
    uint16_t major = cursor_u16le(&c);
    cursor_u16le(&c);
    uint32_t features = cursor_u32le(&c);
    r->seed = load_u32le(bytes + FORMAT_HEADER_BYTES - 4);
    if (crc32c(0, bytes, FORMAT_HEADER_BYTES - 4) != r->seed)
        return error_set(err, ERROR_INPUT, "offset 0: the capture's header is damaged (checksum)");
    if (major != FORMAT_MAJOR || features != 0) {
        error_set(err, ERROR_UNSUPPORTED, "the capture has format %u, this program reads %u", major,
                  FORMAT_MAJOR);
        return error_hint(err, "use the clrperf version that made it, or a newer one");
    }
    return true;
}

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

static bool read_strings(struct reader *r, struct cursor *c, uint64_t first, uint64_t count)
{
    struct intern *strings = &r->trace->strings;
    uint64_t missing;
    if (!reader_rows(r, strings->count, first, count, &missing) || first < strings->count)
        return false;
    for (; missing; missing--)
        if (!intern_append(strings, span_of("[lost]", 6)))
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

/* The block's content, checked and unpacked, or an empty span with false. */
static bool reader_unpack(struct reader *r, uint64_t offset, struct block_head *head, struct span *out)
{
    uint8_t bytes[FORMAT_BLOCK_HEADER_BYTES];
    if (!source_read(r->file, offset, bytes, sizeof bytes, NULL) || load_u32le(bytes) != FORMAT_BLOCK_MAGIC)
        return false;
    *head = (struct block_head){
        .type = load_u16le(bytes + 4),
        .flags = load_u16le(bytes + 6),
        .sequence = load_u32le(bytes + 8),
        .stored = load_u32le(bytes + 12),
        .raw = load_u32le(bytes + 16),
        .crc = load_u32le(bytes + 28),
    };
    if (head->stored > FORMAT_STORED_BYTES_MAX || head->raw > FORMAT_RAW_BYTES_MAX)
        return false;
    if (!source_load(r->file, offset + sizeof bytes, head->stored, &r->stored, NULL))
        return false;
    if (crc32c(crc32c(r->seed, bytes, 28), r->stored.data, r->stored.size) != head->crc)
        return false;
    if (!(head->flags & FORMAT_ZSTD)) {
        *out = buffer_span(&r->stored);
        return head->raw == head->stored;
    }
    buffer_clear(&r->raw);
    uint8_t *room = buffer_reserve(&r->raw, head->raw);
    if (!room)
        return false;
    size_t got = ZSTD_decompress(room, head->raw, r->stored.data, r->stored.size);
    *out = span_of(room, head->raw);
    return got == head->raw;
}

static void reader_block(struct reader *r, const struct block_head *head, struct span content)
{
    if (head->type == FORMAT_END) {
        r->ended = true;
        return;
    }
    struct cursor c = cursor_over(content);
    r->section_events = 0;
    while (head->type == FORMAT_BATCH && cursor_left(&c))
        if (!read_section(r, &c)) {
            r->malformed++;
            return;
        }
}

static uint64_t block_end(uint64_t offset, const struct block_head *head)
{
    uint64_t end = offset + FORMAT_BLOCK_HEADER_BYTES + head->stored;
    return (end + FORMAT_BLOCK_ALIGN - 1) / FORMAT_BLOCK_ALIGN * FORMAT_BLOCK_ALIGN;
}

/* The next block, or the end of the file. One made of what looks like blocks all over is given up. */
static uint64_t reader_resync(struct reader *r, uint64_t offset)
{
    uint8_t window[READER_SCAN_BYTES];
    for (uint64_t at = offset; at < r->file->size;) {
        size_t size = r->file->size - at < sizeof window ? (size_t)(r->file->size - at) : sizeof window;
        if (!source_read(r->file, at, window, size, NULL))
            break;
        for (size_t i = 0; i + 4 <= size; i += FORMAT_BLOCK_ALIGN) {
            struct block_head head = { 0 };
            struct span content;
            if (load_u32le(window + i) != FORMAT_BLOCK_MAGIC)
                continue;
            if (reader_unpack(r, at + i, &head, &content))
                return at + i;
            r->searched += head.stored;
            if (r->searched / READER_SEARCH_MAX > r->file->size) {
                r->malformed++;
                return r->file->size;
            }
        }
        at += size < sizeof window ? size : sizeof window;
    }
    return r->file->size;
}

static void reader_gap(struct reader *r, uint64_t file_off, uint64_t size_bytes)
{
    uint32_t gap = trace_push(&r->trace->gaps);
    r->trace->gaps.rows[gap] = (struct trace_gap){ file_off, size_bytes };
}

/* A file that unpacks to far more than any capture was made to fill memory. */
static bool reader_is_bomb(struct reader *r, const struct block_head *head)
{
    r->unpacked += head->raw;
    return r->unpacked > READER_RAW_BYTES_FREE &&
           (r->unpacked - READER_RAW_BYTES_FREE) / READER_RAW_TIMES > r->file->size;
}

static void reader_blocks(struct reader *r)
{
    uint64_t offset = FORMAT_HEADER_BYTES;
    uint32_t sequence = 0;
    while (offset < r->file->size && !r->ended) {
        struct block_head head;
        struct span content;
        if (!reader_unpack(r, offset, &head, &content)) {
            uint64_t next = reader_resync(r, offset + FORMAT_BLOCK_ALIGN);
            if (next < r->file->size) /* at the end it is a torn write, not a gap */
                reader_gap(r, offset, next - offset);
            offset = next;
            continue;
        }
        if (reader_is_bomb(r, &head)) {
            reader_gap(r, offset, r->file->size - offset);
            r->malformed++;
            return;
        }
        if (head.sequence != sequence && r->trace->gaps.count <= 1)
            reader_gap(r, offset, 0);
        if (head.sequence >= sequence) { /* else it stands here a second time */
            reader_block(r, &head, content);
            sequence = head.sequence + 1;
        }
        offset = block_end(offset, &head);
    }
    r->trace->complete = r->ended;
}

static void clear_if_beyond(uint32_t *id, size_t count, uint64_t *malformed)
{
    if (*id >= count) {
        *id = 0;
        ++*malformed;
    }
}

/* Nobody writes deeper stacks, and everybody who walks them relies on it. */
static void reader_check_depths(struct reader *r)
{
    struct trace *t = r->trace;
    AUTO_FREE uint16_t *depth = mem_alloc(t->stacks.count, sizeof *depth);
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++) {
        uint32_t *parent = &t->stacks.rows[i].parent; /* always an older one */
        if (depth[*parent] >= TRACE_STACK_DEPTH_MAX) {
            *parent = STACK_TRUNCATED;
            r->malformed++;
        }
        depth[i] = depth[*parent] + 1;
    }
}

/* After this every id in the trace names a row that exists. */
static void reader_check_references(struct reader *r)
{
    struct trace *t = r->trace;
    uint64_t *bad = &r->malformed;
    for (size_t i = 1; i < t->threads.count; i++)
        clear_if_beyond(&t->threads.rows[i].process, t->processes.count, bad);
    for (size_t i = 1; i < t->mappings.count; i++) {
        clear_if_beyond(&t->mappings.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->mappings.rows[i].image, t->images.count, bad);
    }
    for (size_t i = 1; i < t->codes.count; i++) {
        clear_if_beyond(&t->codes.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->codes.rows[i].function, t->functions.count, bad);
    }
    for (size_t i = 1; i < t->locations.count; i++) {
        clear_if_beyond(&t->locations.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->locations.rows[i].mapping, t->mappings.count, bad);
        clear_if_beyond(&t->locations.rows[i].code, t->codes.count, bad);
        clear_if_beyond(&t->locations.rows[i].function, t->functions.count, bad);
    }
    for (size_t i = 1; i < t->inlined.count; i++)
        clear_if_beyond(&t->inlined.rows[i].function, t->functions.count, bad);
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        clear_if_beyond(&t->stacks.rows[i].location, t->locations.count, bad);
    for (size_t i = 1; i < t->subscriptions.count; i++)
        clear_if_beyond(&t->subscriptions.rows[i].process, t->processes.count, bad);
    for (size_t i = 1; i < t->events.count; i++) {
        struct trace_event *row = &t->events.rows[i];
        clear_if_beyond(&row->type, t->event_types.count, bad);
        clear_if_beyond(&row->process, t->processes.count, bad);
        clear_if_beyond(&row->thread, t->threads.count, bad);
        clear_if_beyond(&row->stack, t->stacks.count, bad);
    }
    for (size_t i = 1; i < t->losses.count; i++)
        clear_if_beyond(&t->losses.rows[i].process, t->processes.count, bad);
    for (size_t i = 0; i < t->samples.count; i++) {
        clear_if_beyond(&t->samples.thread[i], t->threads.count, bad);
        clear_if_beyond(&t->samples.stack[i], t->stacks.count, bad);
    }
}

bool trace_reader_load(const struct source *file, struct trace *out, struct error *err)
{
    struct reader r = { .file = file, .trace = out };
    if (!reader_header(&r, err))
        return false;
    trace_init(out);
    buffer_init(&r.stored, FORMAT_STORED_BYTES_MAX);
    buffer_init(&r.raw, FORMAT_RAW_BYTES_MAX);
    reader_blocks(&r);
    reader_check_references(&r);
    reader_check_depths(&r);
    if (r.malformed) {
        uint32_t id = trace_push(&out->losses);
        out->losses.rows[id] = (struct trace_loss){ .reason = LOSS_MALFORMED, .count = r.malformed };
    }
    buffer_done(&r.stored);
    buffer_done(&r.raw);
    return true;
}
