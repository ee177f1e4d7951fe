#include "read/perf_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"

enum {
    FILE_HEADER_BYTES = 104,
    PIPE_HEADER_BYTES = 16,
    ATTR_BYTES_MIN = 64, /* PERF_ATTR_SIZE_VER0 */
    ATTR_BYTES_MAX = 4096,
    IDS_SECTION_BYTES = 16,
    SECTION_BYTES = 16,
    BUILD_ID_FIELD_BYTES = 24,
    BUILD_ID_BYTES_MAX = 20,
    MISC_BUILD_ID_SIZE = 1 << 15,
    UPDATE_NAME = 2,
};

/* Bits of the header, which are also the numbers in HEADER_FEATURE records. */
enum feature {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_NRCPUS = 7,
    FEATURE_CPUDESC = 8,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
    FEATURE_SAMPLE_TIME = 21,
    FEATURE_DIR_FORMAT = 24,
    FEATURE_CLOCK_DATA = 29,
    FEATURES_MAX = 256,
};

void perf_header_init(struct perf_header *h)
{
    *h = (struct perf_header){
        .hostname = "", .os_release = "", .tool_version = "", .arch = "", .cpu = "", .command_line = ""
    };
    arena_init(&h->text, PERF_HEADER_TEXT_BYTES_MAX);
}

void perf_header_done(struct perf_header *h)
{
    arena_done(&h->text);
    id_map_done(&h->by_id);
    free(h->events);
    free(h->ids);
    free(h->build_ids);
    *h = (struct perf_header){ 0 };
}

/* Ids. */

static bool id_same(const void *table, uint32_t id, const void *key)
{
    return ((const struct perf_event_id *)table)[id - 1].id == *(const uint64_t *)key;
}

static uint64_t id_hash(uint64_t id)
{
    return hash_pair(id, 0x6964);
}

uint32_t perf_header_event_of(const struct perf_header *h, uint64_t id)
{
    if (h->event_count < 2)
        return 0;
    uint32_t row = id_map_find(&h->by_id, id_hash(id), id_same, h->ids, &id);
    return row ? h->ids[row - 1].event : 0;
}

static bool add_id(struct perf_header *h, uint64_t id, uint32_t event, struct error *err)
{
    if (h->id_count >= PERF_HEADER_IDS_MAX)
        return error_set(err, ERROR_LIMIT, "perf.data has more than %d event ids", PERF_HEADER_IDS_MAX);
    if (id_map_find(&h->by_id, id_hash(id), id_same, h->ids, &id))
        return true;
    h->ids = mem_grow(h->ids, &h->ids_capacity, h->id_count + 1, sizeof *h->ids);
    h->ids[h->id_count++] = (struct perf_event_id){ id, event };
    id_map_add(&h->by_id, id_hash(id), (uint32_t)h->id_count);
    return true;
}

/* Attributes. */

static struct perf_event_attr decode_attr(struct span bytes)
{
    /* older attributes are shorter; what they lack is 0, so reading past the end is fine */
    struct cursor c = cursor_over(bytes);
    struct perf_event_attr a = { 0 };
    a.type = cursor_u32le(&c);
    a.size = cursor_u32le(&c);
    a.config = cursor_u64le(&c);
    a.sample_period = cursor_u64le(&c);
    a.sample_type = cursor_u64le(&c);
    a.read_format = cursor_u64le(&c);
    uint64_t flags = cursor_u64le(&c);
    a.exclude_user = flags >> 4 & 1;
    a.exclude_kernel = flags >> 5 & 1;
    a.freq = flags >> 10 & 1;
    a.sample_id_all = flags >> 18 & 1;
    a.exclude_callchain_kernel = flags >> 21 & 1;
    a.exclude_callchain_user = flags >> 22 & 1;
    a.use_clockid = flags >> 25 & 1;
    cursor_skip(&c, 4 + 4 + 8 + 8); /* wakeup, bp_type, config1, config2 */
    a.branch_sample_type = cursor_u64le(&c);
    a.sample_regs_user = cursor_u64le(&c);
    a.sample_stack_user = cursor_u32le(&c);
    a.clockid = (int32_t)cursor_u32le(&c);
    a.sample_regs_intr = cursor_u64le(&c);
    return a;
}

static const char *made_up_name(struct perf_header *h, const struct perf_event_attr *a)
{
    static const char *const hardware[] = {
        "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
        "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"
    };
    static const char *const software[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"
    };
    if (a->type == PERF_TYPE_HARDWARE && a->config < ARRAY_LEN(hardware))
        return hardware[a->config];
    if (a->type == PERF_TYPE_SOFTWARE && a->config < ARRAY_LEN(software))
        return software[a->config];
    char text[64];
    int size =
        snprintf(text, sizeof text, "event %" PRIu32 ":0x%" PRIx64, (uint32_t)a->type, (uint64_t)a->config);
    const char *kept = arena_string(&h->text, span_of(text, (size_t)size));
    return kept ? kept : "event";
}

static bool add_event(struct perf_header *h, struct span attr, struct error *err)
{
    if (h->event_count >= PERF_HEADER_EVENTS_MAX)
        return error_set(err, ERROR_LIMIT, "perf.data has more than %d events", PERF_HEADER_EVENTS_MAX);
    struct perf_event_info info = { .attr = decode_attr(attr) };
    info.layout = perf_sample_layout_of(&info.attr);
    info.name = made_up_name(h, &info.attr);
    h->events = mem_grow(h->events, &h->events_capacity, h->event_count + 1, sizeof *h->events);
    h->events[h->event_count++] = info;
    return true;
}

static bool take_ids(struct perf_header *h, struct cursor *ids, struct error *err)
{
    while (cursor_left(ids) >= 8)
        if (!add_id(h, cursor_u64le(ids), (uint32_t)h->event_count - 1, err))
            return false;
    return true;
}

bool perf_header_take_attr(struct perf_header *h, struct span body, struct error *err)
{
    uint32_t size = body.size >= 8 ? load_u32le(body.data + 4) : 0;
    if (size == 0)
        size = ATTR_BYTES_MIN;
    if (size < ATTR_BYTES_MIN || size > body.size)
        return error_set(err, ERROR_INPUT, "an event attribute record of %zu bytes claims %" PRIu32,
                         body.size, size);
    struct cursor ids = cursor_over(span_part(body, size, body.size - size));
    return add_event(h, span_part(body, 0, size), err) && take_ids(h, &ids, err);
}

void perf_header_take_update(struct perf_header *h, struct span body)
{
    struct cursor c = cursor_over(body);
    uint64_t type = cursor_u64le(&c);
    uint64_t id = cursor_u64le(&c);
    struct span name = cursor_zstring(&c);
    uint32_t event = perf_header_event_of(h, id);
    if (type != UPDATE_NAME || !cursor_ok(&c) || event >= h->event_count)
        return;
    const char *kept = arena_string(&h->text, name);
    if (kept)
        h->events[event].name = kept;
}

/* Features. */

/* u32 size, then that many bytes: a text, then NULs. */
static const char *take_text(struct perf_header *h, struct cursor *c)
{
    struct span bytes = cursor_bytes(c, cursor_u32le(c));
    const uint8_t *nul = bytes.size ? memchr(bytes.data, 0, bytes.size) : NULL;
    const char *text =
        arena_string(&h->text, (struct span){ bytes.data, nul ? (size_t)(nul - bytes.data) : bytes.size });
    return text ? text : "";
}

static const char *take_command_line(struct perf_header *h, struct cursor *c)
{
    struct buffer line;
    buffer_init(&line, 1 << 20);
    uint32_t count = cursor_u32le(c);
    for (uint32_t i = 0; i < count && cursor_ok(c); i++) {
        if (i)
            buffer_u8(&line, ' ');
        buffer_string(&line, take_text(h, c));
    }
    const char *text = arena_string(&h->text, buffer_span(&line));
    buffer_done(&line);
    return text ? text : "";
}

static void take_event_names(struct perf_header *h, struct cursor *c)
{
    uint32_t count = cursor_u32le(c);
    uint32_t attr_size = cursor_u32le(c);
    for (uint32_t i = 0; i < count && cursor_ok(c); i++) {
        cursor_skip(c, attr_size);
        uint32_t ids = cursor_u32le(c);
        const char *name = take_text(h, c);
        cursor_skip(c, (uint64_t)ids * 8);
        if (cursor_ok(c) && i < h->event_count && name[0])
            h->events[i].name = name;
    }
}

static void add_build_id(struct perf_header *h, struct span id, struct span path)
{
    const char *kept = h->build_id_count < PERF_HEADER_BUILD_IDS_MAX ? arena_string(&h->text, path) : NULL;
    if (!kept)
        return;
    struct perf_build_id row = { .path = kept };
    for (size_t i = 0; i < id.size && i < BUILD_ID_BYTES_MAX; i++)
        snprintf(row.hex + 2 * i, 3, "%02x", id.data[i]);
    h->build_ids =
        mem_grow(h->build_ids, &h->build_ids_capacity, h->build_id_count + 1, sizeof *h->build_ids);
    h->build_ids[h->build_id_count++] = row;
}

void perf_header_take_build_id(struct perf_header *h, struct span body, uint16_t misc)
{
    struct cursor c = cursor_over(body);
    cursor_skip(&c, 4); /* pid */
    struct span id = cursor_bytes(&c, BUILD_ID_FIELD_BYTES);
    struct span path = cursor_zstring(&c);
    if (!id.data || !cursor_ok(&c))
        return;
    /* before perf 5.12 the size was not said: always 20 */
    size_t size = misc & MISC_BUILD_ID_SIZE && id.data[20] < BUILD_ID_BYTES_MAX ? id.data[20] : 20;
    add_build_id(h, span_part(id, 0, size), path);
}

static void take_build_ids(struct perf_header *h, struct cursor *c)
{
    while (cursor_left(c) > 0) {
        cursor_skip(c, 4);
        uint16_t misc = cursor_u16le(c);
        uint16_t size = cursor_u16le(c);
        if (size < PERF_RECORD_HEADER_BYTES) {
            c->failed = true;
            return;
        }
        struct span body = cursor_bytes(c, size - PERF_RECORD_HEADER_BYTES);
        if (cursor_ok(c))
            perf_header_take_build_id(h, body, misc);
    }
}

static void take_feature(struct perf_header *h, uint64_t feature, struct span body)
{
    struct cursor c = cursor_over(body);
    switch (feature) {
    case FEATURE_BUILD_ID:
        take_build_ids(h, &c);
        break;
    case FEATURE_HOSTNAME:
        h->hostname = take_text(h, &c);
        break;
    case FEATURE_OSRELEASE:
        h->os_release = take_text(h, &c);
        break;
    case FEATURE_VERSION:
        h->tool_version = take_text(h, &c);
        break;
    case FEATURE_ARCH:
        h->arch = take_text(h, &c);
        break;
    case FEATURE_NRCPUS:
        cursor_skip(&c, 4);
        h->cpus_online = cursor_u32le(&c);
        break;
    case FEATURE_CPUDESC:
        h->cpu = take_text(h, &c);
        break;
    case FEATURE_CMDLINE:
        h->command_line = take_command_line(h, &c);
        break;
    case FEATURE_EVENT_DESC:
        take_event_names(h, &c);
        break;
    case FEATURE_SAMPLE_TIME:
        h->first_ns = cursor_u64le(&c);
        h->last_ns = cursor_u64le(&c);
        break;
    case FEATURE_CLOCK_DATA:
        cursor_skip(&c, 4);
        h->clock_id = cursor_u32le(&c);
        h->wall_ns = cursor_u64le(&c);
        h->wall_mono_ns = cursor_u64le(&c);
        h->has_clock_id = cursor_ok(&c);
        break;
    default:
        break;
    }
    if (!cursor_ok(&c))
        h->damaged_features++;
}

void perf_header_take_feature(struct perf_header *h, struct span body)
{
    if (body.size >= 8)
        take_feature(h, load_u64le(body.data), span_part(body, 8, body.size - 8));
}

void perf_header_read_features(struct perf_header *h, const struct source *file,
                               const struct perf_file_parts *parts)
{
    uint64_t table;
    if (__builtin_add_overflow(parts->data_off, parts->data_size, &table))
        return;
    struct buffer body;
    buffer_init(&body, PERF_HEADER_SECTION_BYTES_MAX);
    for (unsigned feature = 0; feature < FEATURES_MAX; feature++) {
        if (!(parts->features[feature / 64] >> feature % 64 & 1))
            continue;
        uint8_t entry[SECTION_BYTES];
        if (!source_read(file, table, entry, sizeof entry, NULL)) {
            h->damaged_features++;
            break;
        }
        table += SECTION_BYTES;
        bool wanted = (feature >= FEATURE_BUILD_ID && feature <= FEATURE_EVENT_DESC) ||
                      feature == FEATURE_SAMPLE_TIME || feature == FEATURE_CLOCK_DATA;
        if (!wanted)
            continue;
        if (source_load(file, load_u64le(entry), load_u64le(entry + 8), &body, NULL))
            take_feature(h, feature, buffer_span(&body));
        else
            h->damaged_features++;
    }
    buffer_done(&body);
}

/* The file's own header. */

bool perf_header_recognises(struct span head)
{
    return head.size >= 8 && (memcmp(head.data, "PERFILE2", 8) == 0 ||
                              memcmp(head.data, "2ELIFREP", 8) == 0 || memcmp(head.data, "PERFFILE", 8) == 0);
}

bool perf_header_read_parts(struct span head, struct perf_file_parts *out, struct error *err)
{
    if (head.size >= 8 && memcmp(head.data, "2ELIFREP", 8) == 0)
        return error_set(err, ERROR_UNSUPPORTED, "perf.data was written on a big-endian machine");
    if (head.size < 8 || memcmp(head.data, "PERFILE2", 8) != 0)
        return error_set(err, ERROR_UNSUPPORTED, "perf.data is not of version 2 (no 'PERFILE2' at byte 0)");
    struct perf_file_parts p = { 0 };
    struct cursor c = cursor_over(head);
    cursor_skip(&c, 8);
    uint64_t size = cursor_u64le(&c);
    if (cursor_ok(&c) && size == PIPE_HEADER_BYTES) {
        *out = (struct perf_file_parts){ .is_pipe = true, .data_off = PIPE_HEADER_BYTES };
        return true;
    }
    p.attr_size = cursor_u64le(&c);
    p.attrs_off = cursor_u64le(&c);
    p.attrs_size = cursor_u64le(&c);
    p.data_off = cursor_u64le(&c);
    p.data_size = cursor_u64le(&c);
    cursor_skip(&c, SECTION_BYTES); /* event types, no longer written */
    for (unsigned i = 0; i < ARRAY_LEN(p.features); i++)
        p.features[i] = cursor_u64le(&c);
    p.is_of_folder = p.features[0] >> FEATURE_DIR_FORMAT & 1;
    if (!cursor_finish(&c, err, "the header of perf.data"))
        return false;
    if (p.attr_size < ATTR_BYTES_MIN + IDS_SECTION_BYTES || p.attr_size > ATTR_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "perf.data has event attributes of %" PRIu64 " bytes",
                         p.attr_size);
    if (p.data_off < FILE_HEADER_BYTES)
        return error_set(err, ERROR_INPUT, "perf.data has its records at byte %" PRIu64 ", in its header",
                         p.data_off);
    *out = p;
    return true;
}

/* `ids` has room for what all events together may still have: many may name the same megabytes. */
static bool read_event(struct perf_header *h, const struct source *file, struct span entry,
                       struct buffer *ids, struct error *err)
{
    size_t attr_size = entry.size - IDS_SECTION_BYTES;
    uint64_t ids_off = load_u64le(entry.data + attr_size);
    uint64_t ids_size = load_u64le(entry.data + attr_size + 8);
    if (!add_event(h, span_part(entry, 0, attr_size), err))
        return false;
    if (!source_load(file, ids_off, ids_size, ids, err))
        return error_context(err, "the ids of event %zu of perf.data", h->event_count);
    ids->ceiling -= ids->size;
    struct cursor c = cursor_over(buffer_span(ids));
    return take_ids(h, &c, err);
}

bool perf_header_read_events(struct perf_header *h, const struct source *file,
                             const struct perf_file_parts *parts, struct error *err)
{
    uint64_t count = parts->attrs_size / parts->attr_size; /* the divisor was checked: 80 to 4096 */
    if (count == 0)
        return error_set(err, ERROR_INPUT, "perf.data has no events");
    if (count > PERF_HEADER_EVENTS_MAX)
        return error_set(err, ERROR_LIMIT, "perf.data has %" PRIu64 " events, more than %d", count,
                         PERF_HEADER_EVENTS_MAX);
    struct buffer attrs, ids;
    buffer_init(&attrs, (size_t)PERF_HEADER_EVENTS_MAX * ATTR_BYTES_MAX);
    buffer_init(&ids, (size_t)PERF_HEADER_IDS_MAX * 8);
    bool ok = source_load(file, parts->attrs_off, count * parts->attr_size, &attrs, err) ||
              error_context(err, "the events of perf.data");
    for (uint64_t i = 0; ok && i < count; i++)
        ok = read_event(h, file, span_part(buffer_span(&attrs), i * parts->attr_size, parts->attr_size), &ids,
                        err);
    buffer_done(&attrs);
    buffer_done(&ids);
    return ok;
}
