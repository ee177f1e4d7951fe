#include "trace/trace_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/block_writer.h"
#include "trace/format.h"

enum {
    /* a batch is closed when its sections reach this, far below the format's limit */
    WRITER_BATCH_BYTES = 512 * 1024,
    METHOD_LINES_MAX = 1 << 16,      /* rows of one section */
    WRITER_TEXT_BYTES_MAX = 1 << 20, /* nobody reads further, and a block has to hold it */
};

struct trace_writer {
    struct block_writer blocks;
    uint64_t samples_in, samples_out; /* that were taken, that are on disk */
    /* rows that are on disk already: ids below */
    size_t strings, facts, images, processes, threads, mappings, functions, codes, locations, names, stacks,
        losses, method_lines, inlined, event_types, event_descriptions, subscriptions, event_activities;
    uint64_t last_sample_ns, last_event_ns;
    bool symbolized;
};

bool trace_writer_open(int fd, struct trace_writer **out, struct error *err)
{
    struct trace_writer *w = mem_alloc(1, sizeof *w);
    w->strings = w->facts = w->images = w->processes = w->threads = w->mappings = w->functions = w->codes =
        w->locations = w->names = w->losses = w->event_types = w->event_descriptions = w->subscriptions =
            w->event_activities = 1;
    w->stacks = STACK_ROOTS;
    if (!block_writer_open(&w->blocks, fd, err)) {
        free(w);
        return false;
    }
    *out = w;
    return true;
}

static bool writer_put(struct trace_writer *w, enum format_block_type type, struct error *err)
{
    if (!block_writer_put(&w->blocks, type, err))
        return false;
    w->samples_out = w->samples_in;
    return true;
}

static bool writer_room(struct trace_writer *w, struct error *err)
{
    return w->blocks.raw.size < WRITER_BATCH_BYTES || writer_put(w, FORMAT_BATCH, err);
}

/* A section's head: its kind, then the first row's id and the number of rows. */
static void writer_section(struct trace_writer *w, enum format_section kind, size_t first, size_t count)
{
    buffer_u8(&w->blocks.raw, (uint8_t)kind);
    buffer_varuint(&w->blocks.raw, first);
    buffer_varuint(&w->blocks.raw, count);
}

/* How many rows from `first` on make about one batch when each takes up to `row_bytes`. */
static size_t writer_rows(size_t first, size_t end, size_t row_bytes)
{
    size_t most = WRITER_BATCH_BYTES / row_bytes;
    return end - first < most ? end - first : most;
}

static uint32_t writer_text_bytes(const struct trace *t, size_t id)
{
    uint32_t size = t->strings.sizes[id];
    return size < WRITER_TEXT_BYTES_MAX ? size : WRITER_TEXT_BYTES_MAX;
}

static bool writer_strings(struct trace_writer *w, const struct trace *t, struct error *err)
{
    while (w->strings < t->strings.count) {
        size_t count = 0, bytes = 0;
        while (w->strings + count < t->strings.count && bytes < WRITER_BATCH_BYTES)
            bytes += writer_text_bytes(t, w->strings + count++) + 5;
        writer_section(w, FORMAT_STRINGS, w->strings, count);
        for (size_t i = w->strings; i < w->strings + count; i++) {
            uint32_t size = writer_text_bytes(t, i);
            buffer_varuint(&w->blocks.raw, size);
            buffer_append(&w->blocks.raw, t->strings.strings[i], size);
        }
        w->strings += count;
        if (!writer_room(w, err))
            return false;
    }
    return true;
}

static void put_image(struct buffer *raw, const struct trace_image *row)
{
    buffer_varuint(raw, row->path);
    buffer_varuint(raw, row->build_id);
    buffer_varuint(raw, row->device_major);
    buffer_varuint(raw, row->device_minor);
    buffer_varuint(raw, row->inode);
    buffer_u8(raw, row->kind);
}

static void put_process(struct buffer *raw, const struct trace_process *row)
{
    buffer_varuint(raw, row->pid);
    buffer_varuint(raw, row->ns_pid);
    buffer_varuint(raw, row->name);
    buffer_varuint(raw, row->command_line);
    buffer_varuint(raw, row->runtime_version);
    buffer_varuint(raw, row->container);
    buffer_varuint(raw, row->start_ticks);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
}

static void put_thread(struct buffer *raw, const struct trace_thread *row)
{
    buffer_varuint(raw, row->process);
    buffer_varuint(raw, row->tid);
    buffer_varuint(raw, row->name);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
}

static void put_mapping(struct buffer *raw, const struct trace_mapping *row)
{
    buffer_varuint(raw, row->process);
    buffer_varuint(raw, row->image);
    buffer_varuint(raw, row->start);
    buffer_varuint(raw, row->end - row->start);
    buffer_varuint(raw, row->file_off);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
}

static void put_function(struct buffer *raw, const struct trace_function *row)
{
    buffer_varuint(raw, row->name);
    buffer_varuint(raw, row->module);
    buffer_varuint(raw, row->type_params);
    buffer_u8(raw, row->kind);
}

static void put_code(struct buffer *raw, const struct trace_code *row)
{
    buffer_varuint(raw, row->process);
    buffer_varuint(raw, row->function);
    buffer_varuint(raw, row->addr);
    buffer_varuint(raw, row->size_bytes);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
    buffer_varuint(raw, row->module_path);
    buffer_varuint(raw, row->token);
    buffer_u8(raw, row->tier);
    buffer_u8(raw, row->resolver);
}

/* Locations are written in the order they were met; neighbours are near in address and time. */
static void put_location(struct buffer *raw, const struct trace_location *row,
                         const struct trace_location *before)
{
    buffer_varuint(raw, (uint64_t)row->process << 1 | row->is_return);
    buffer_varuint(raw, row->mapping);
    buffer_varuint(raw, row->code);
    buffer_zigzag64(raw, (int64_t)(row->addr - before->addr));
    buffer_zigzag64(raw, (int64_t)(row->first_ns - before->first_ns));
}

static void put_name(struct buffer *raw, const struct trace_location *row)
{
    buffer_varuint(raw, row->function);
    buffer_varuint(raw, row->file);
    buffer_varuint(raw, row->line);
    buffer_u8(raw, row->tier);
    buffer_u8(raw, row->resolver);
    buffer_u8(raw, row->unnamed);
}

static void put_inlined(struct buffer *raw, const struct trace *t, size_t location, size_t before)
{
    const struct trace_location *row = &t->locations.rows[location];
    const struct trace_inlined *inlined = &t->inlined.rows[row->inlined];
    buffer_varuint(raw, location - before);
    buffer_varuint(raw, row->inlined_count);
    for (unsigned i = 0; i < row->inlined_count; i++) {
        buffer_varuint(raw, inlined[i].function);
        buffer_varuint(raw, inlined[i].file);
        buffer_varuint(raw, inlined[i].line);
    }
}

static void put_loss(struct buffer *raw, const struct trace_loss *row)
{
    buffer_u8(raw, row->reason);
    buffer_varuint(raw, row->process);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
    buffer_varuint(raw, row->count);
}

static void put_fact(struct buffer *raw, const struct trace_fact *row)
{
    buffer_varuint(raw, row->key);
    buffer_varuint(raw, row->value);
}

static void put_event_type(struct buffer *raw, const struct trace_event_type *row)
{
    buffer_varuint(raw, row->provider);
    buffer_varuint(raw, row->name);
    buffer_varuint(raw, row->event_id);
    buffer_varuint(raw, row->version);
}

static void put_event_description(struct buffer *raw, const struct trace_event_type *row)
{
    buffer_u8(raw, row->level);
    buffer_u8(raw, row->opcode);
    buffer_u8(raw, row->pointer_size);
    buffer_u8(raw, row->description);
    buffer_varuint(raw, row->keywords);
    buffer_varuint(raw, row->fields);
    buffer_varuint(raw, row->params);
}

static void put_subscription(struct buffer *raw, const struct trace_subscription *row)
{
    buffer_varuint(raw, row->process);
    buffer_varuint(raw, row->provider);
    buffer_varuint(raw, row->keywords);
    buffer_varuint(raw, row->from_ns);
    buffer_varuint(raw, row->to_ns);
    buffer_u8(raw, row->level);
}

/* Writes a table's new rows with `put`, batch by batch. */
#define WRITE_TABLE(w, kind, done, table, put)                                                               \
    while ((w)->done < (table).count) {                                                                      \
        size_t rows = writer_rows((w)->done, (table).count, 64);                                             \
        writer_section((w), (kind), (w)->done, rows);                                                        \
        for (size_t i = (w)->done; i < (w)->done + rows; i++)                                                \
            put(&(w)->blocks.raw, &(table).rows[i]);                                                         \
        (w)->done += rows;                                                                                   \
        if (!writer_room((w), err))                                                                          \
            return false;                                                                                    \
    }

static bool writer_facts(struct trace_writer *w, const struct trace *t, struct error *err)
{
    /* few, and their values change: always all of them */
    w->facts = 1;
    WRITE_TABLE(w, FORMAT_FACTS, facts, t->facts, put_fact)
    return true;
}

static bool writer_tables(struct trace_writer *w, const struct trace *t, struct error *err)
{
    WRITE_TABLE(w, FORMAT_IMAGES, images, t->images, put_image)
    WRITE_TABLE(w, FORMAT_PROCESSES, processes, t->processes, put_process)
    WRITE_TABLE(w, FORMAT_THREADS, threads, t->threads, put_thread)
    WRITE_TABLE(w, FORMAT_MAPPINGS, mappings, t->mappings, put_mapping)
    WRITE_TABLE(w, FORMAT_FUNCTIONS, functions, t->functions, put_function)
    WRITE_TABLE(w, FORMAT_CODES, codes, t->codes, put_code)
    WRITE_TABLE(w, FORMAT_LOSSES, losses, t->losses, put_loss)
    return true;
}

static void writer_changed_row(struct trace_writer *w, const struct trace *t, enum trace_changed_table table,
                               uint32_t id)
{
    switch (table) {
    case CHANGED_PROCESS:
        writer_section(w, FORMAT_PROCESSES, id, 1);
        put_process(&w->blocks.raw, &t->processes.rows[id]);
        break;
    case CHANGED_THREAD:
        writer_section(w, FORMAT_THREADS, id, 1);
        put_thread(&w->blocks.raw, &t->threads.rows[id]);
        break;
    case CHANGED_MAPPING:
        writer_section(w, FORMAT_MAPPINGS, id, 1);
        put_mapping(&w->blocks.raw, &t->mappings.rows[id]);
        break;
    case CHANGED_CODE:
        writer_section(w, FORMAT_CODES, id, 1);
        put_code(&w->blocks.raw, &t->codes.rows[id]);
        break;
    }
}

/* Rows that changed after they were written are written again; the later one counts. */
static bool writer_changed(struct trace_writer *w, struct trace_builder *b, struct error *err)
{
    for (size_t i = 0; i < b->changed_count; i++) {
        writer_changed_row(w, &b->trace, (enum trace_changed_table)(b->changed[i] >> 32),
                           (uint32_t)b->changed[i]);
        if (!writer_room(w, err))
            return false;
    }
    b->changed_count = 0;
    return true;
}

static bool writer_locations(struct trace_writer *w, const struct trace *t, struct error *err)
{
    static const struct trace_location zero;
    while (w->locations < t->locations.count) {
        size_t rows = writer_rows(w->locations, t->locations.count, 40);
        writer_section(w, FORMAT_LOCATIONS, w->locations, rows);
        for (size_t i = 0; i < rows; i++) {
            const struct trace_location *row = &t->locations.rows[w->locations + i];
            put_location(&w->blocks.raw, row, i ? row - 1 : &zero);
        }
        w->locations += rows;
        if (!writer_room(w, err))
            return false;
    }
    return true;
}

static bool writer_names(struct trace_writer *w, const struct trace *t, struct error *err)
{
    if (!t->symbolized || w->symbolized)
        return true;
    WRITE_TABLE(w, FORMAT_NAMES, names, t->locations, put_name)
    w->images = 1; /* they got their build ids with the names */
    WRITE_TABLE(w, FORMAT_IMAGES, images, t->images, put_image)
    buffer_u8(&w->blocks.raw, FORMAT_STATE);
    buffer_varuint(&w->blocks.raw, 0);
    buffer_varuint(&w->blocks.raw, 1);
    buffer_varuint(&w->blocks.raw, FORMAT_SYMBOLIZED);
    w->symbolized = true;
    return true;
}

static bool writer_stacks(struct trace_writer *w, const struct trace *t, struct error *err)
{
    while (w->stacks < t->stacks.count) {
        size_t rows = writer_rows(w->stacks, t->stacks.count, 10);
        writer_section(w, FORMAT_STACKS, w->stacks, rows);
        /* two columns: a parent is near its child, a location is any */
        for (size_t i = w->stacks; i < w->stacks + rows; i++)
            buffer_varuint(&w->blocks.raw, i - t->stacks.rows[i].parent);
        for (size_t i = w->stacks; i < w->stacks + rows; i++)
            buffer_varuint(&w->blocks.raw, t->stacks.rows[i].location);
        w->stacks += rows;
        if (!writer_room(w, err))
            return false;
    }
    return true;
}

static void writer_sample_columns(struct trace_writer *w, const struct trace_samples *s, size_t from,
                                  size_t to)
{
    writer_section(w, FORMAT_SAMPLES, 0, to - from);
    buffer_varuint(&w->blocks.raw, w->last_sample_ns);
    for (size_t i = from; i < to; i++) {
        buffer_zigzag64(&w->blocks.raw, (int64_t)(s->time_ns[i] - w->last_sample_ns));
        w->last_sample_ns = s->time_ns[i];
    }
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, s->thread[i]);
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, s->stack[i]);
    for (size_t i = from; i < to; i++) /* mostly the one before: a zero */
        buffer_zigzag64(&w->blocks.raw, (int64_t)(s->weight[i] - (i > from ? s->weight[i - 1] : 0)));
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, s->cpu[i]);
    for (size_t i = from; i < to; i++)
        buffer_u8(&w->blocks.raw, s->kind[i]);
}

static bool writer_samples(struct trace_writer *w, struct trace_samples *s, struct error *err)
{
    for (size_t from = 0; from < s->count;) {
        size_t to = from + writer_rows(from, s->count, 36);
        writer_sample_columns(w, s, from, to);
        w->samples_in += to - from;
        from = to;
        if (!writer_room(w, err))
            return false;
    }
    s->count = 0;
    return true;
}

/* Columns, as of samples; the payloads are the last. */
static void writer_event_columns(struct trace_writer *w, const struct trace *t, size_t from, size_t to)
{
    const struct trace_event *rows = t->events.rows;
    writer_section(w, FORMAT_EVENTS, 0, to - from);
    buffer_varuint(&w->blocks.raw, w->last_event_ns);
    for (size_t i = from; i < to; i++) {
        buffer_zigzag64(&w->blocks.raw, (int64_t)(rows[i].time_ns - w->last_event_ns));
        w->last_event_ns = rows[i].time_ns;
    }
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, rows[i].type);
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, rows[i].process);
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, rows[i].thread);
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, rows[i].stack);
    for (size_t i = from; i < to; i++)
        buffer_varuint(&w->blocks.raw, rows[i].payload_bytes);
    for (size_t i = from; i < to; i++) {
        struct span payload = trace_event_payload(t, &rows[i]);
        buffer_append(&w->blocks.raw, payload.data, payload.size);
    }
}

/* What events of these belong to, of which most belong to nothing. */
static void writer_activities(struct trace_writer *w, const struct trace *t, size_t from, size_t to)
{
    const struct trace_event_activity *rows = t->event_activities.rows;
    size_t first = w->event_activities, end = first;
    while (end < t->event_activities.count && rows[end].event < to)
        end++;
    w->event_activities = end;
    if (end == first)
        return;
    writer_section(w, FORMAT_EVENT_ACTIVITIES, 0, end - first);
    for (size_t i = first; i < end; i++) {
        buffer_varuint(&w->blocks.raw, rows[i].event - (i > first ? rows[i - 1].event : from));
        buffer_append(&w->blocks.raw, rows[i].id, sizeof rows[i].id);
        buffer_append(&w->blocks.raw, rows[i].related, sizeof rows[i].related);
    }
}

/* Like the samples they are not needed any more once they are written. */
static bool writer_events(struct trace_writer *w, struct trace *t, struct error *err)
{
    enum { EVENT_ROW_BYTES = 36 + 37 }; /* and what it belongs to */
    for (size_t from = 1; from < t->events.count;) {
        size_t to = from;
        for (size_t bytes = 0; to < t->events.count && bytes < WRITER_BATCH_BYTES; to++)
            bytes += EVENT_ROW_BYTES + t->events.rows[to].payload_bytes;
        writer_event_columns(w, t, from, to);
        writer_activities(w, t, from, to);
        from = to;
        if (!writer_room(w, err))
            return false;
    }
    t->events.count = t->event_activities.count = w->event_activities = 1;
    buffer_clear(&t->payloads);
    return true;
}

/* Behind all else: a reader that does not know these sections stops here. */
static bool writer_told(struct trace_writer *w, struct trace *t, struct error *err)
{
    WRITE_TABLE(w, FORMAT_EVENT_TYPES, event_types, t->event_types, put_event_type)
    WRITE_TABLE(w, FORMAT_EVENT_DESCRIPTIONS, event_descriptions, t->event_types, put_event_description)
    WRITE_TABLE(w, FORMAT_SUBSCRIPTIONS, subscriptions, t->subscriptions, put_subscription)
    return writer_events(w, t, err);
}

/* Behind what every reader knows, likewise. */
static bool writer_method_lines(struct trace_writer *w, const struct trace *t, struct error *err)
{
    while (t->symbolized && w->method_lines < t->locations.count) {
        size_t id = w->method_lines, end = id;
        while (end < t->locations.count && end < id + METHOD_LINES_MAX &&
               t->locations.rows[end].line_of_method)
            end++;
        w->method_lines = end > id ? end : id + 1;
        if (end == id)
            continue;
        writer_section(w, FORMAT_METHOD_LINES, id, end - id);
        for (size_t i = id; i < end; i++)
            buffer_u8(&w->blocks.raw, 1);
        if (!writer_room(w, err))
            return false;
    }
    return true;
}

/* The locations at which something was inlined, and what. */
static bool writer_inlined(struct trace_writer *w, const struct trace *t, struct error *err)
{
    enum { LOCATION_BYTES = 10, ROW_BYTES = 15 };
    while (t->symbolized && w->inlined < t->locations.count) {
        size_t from = w->inlined, at = from, count = 0, bytes = 0;
        for (; at < t->locations.count && bytes < WRITER_BATCH_BYTES; at++)
            if (t->locations.rows[at].inlined_count) {
                count++;
                bytes += LOCATION_BYTES + t->locations.rows[at].inlined_count * (size_t)ROW_BYTES;
            }
        w->inlined = at;
        if (count == 0)
            continue;
        writer_section(w, FORMAT_INLINED, 0, count);
        for (size_t i = from, before = 0; i < at; i++) {
            if (!t->locations.rows[i].inlined_count)
                continue;
            put_inlined(&w->blocks.raw, t, i, before);
            before = i;
        }
        if (!writer_room(w, err))
            return false;
    }
    return true;
}

bool trace_writer_flush(struct trace_writer *w, struct trace_builder *b, struct error *err)
{
    if (w->blocks.failed) {
        if (err)
            *err = w->blocks.failure;
        return false;
    }
    const struct trace *t = &b->trace;
    if (!writer_strings(w, t, err) || (w->facts < t->facts.count && !writer_facts(w, t, err)) ||
        !writer_tables(w, t, err))
        return false;
    return writer_changed(w, b, err) && writer_locations(w, t, err) && writer_names(w, t, err) &&
           writer_stacks(w, t, err) && writer_samples(w, &b->trace.samples, err) &&
           writer_method_lines(w, t, err) && writer_told(w, &b->trace, err) && writer_inlined(w, t, err) &&
           (!w->blocks.raw.size || writer_put(w, FORMAT_BATCH, err));
}

bool trace_writer_close(struct trace_writer *w, struct trace_builder *b, struct trace_written *out,
                        struct error *err)
{
    w->subscriptions = 1; /* few; by now they have an end */
    bool ok = !w->blocks.failed && writer_strings(w, &b->trace, err) && writer_facts(w, &b->trace, err) &&
              trace_writer_flush(w, b, err) && writer_put(w, FORMAT_END, err);
    if (!ok && w->blocks.failed && err)
        *err = w->blocks.failure;
    if (out)
        *out = (struct trace_written){ w->blocks.bytes, w->samples_out };
    ok = block_writer_close(&w->blocks, ok ? err : NULL) && ok;
    free(w);
    return ok;
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
    return w->blocks.bytes;
}
