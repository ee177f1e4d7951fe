#include "read/nettrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "read/nettrace_block.h"
#include "read/nettrace_stacks.h"
#include "read/nettrace_threads.h"
#include "read/nettrace_types.h"

/* The tags of the object framing. */
enum { TAG_END_OF_STREAM = 1, TAG_BEGIN = 4, TAG_BEGIN_PRIVATE = 5, TAG_END = 6 };

enum { TRACE_BYTES = 48, TYPE_NAME_MAX = 64, NS_PER_SECOND = 1000000000 };

/* What the next `want` bytes of the stream are. */
enum stage {
    STAGE_MAGIC,
    STAGE_PREAMBLE, /* the rest of the fixed bytes at the start */
    STAGE_TAG,      /* an object begins, or the stream ends */
    STAGE_TYPE,     /* the versions and the length of the type's name */
    STAGE_NAME,
    STAGE_TRACE, /* the first object: fixed size */
    STAGE_SIZE,  /* of a block */
    STAGE_BLOCK, /* padding, content, end tag */
    STAGE_ENDED,
};

struct nettrace_reader {
    struct nettrace_sink sink;
    enum stage stage;
    size_t want;
    struct buffer pending; /* fewer than `want` bytes */
    uint64_t stream_off;   /* of the next byte a stage takes */
    char type_name[TYPE_NAME_MAX + 1];
    uint32_t version; /* 3 or 4 */
    size_t padding, block_size;
    bool has_info;
    struct nettrace_info info;
    struct nettrace_types types;
    struct nettrace_stacks stacks;
    struct nettrace_threads threads;
    struct nettrace_counts counts;
    bool refused; /* by a callback: that is no damage */
    bool failed;
    struct error failure;
};

struct nettrace_reader *nettrace_reader_new(const struct nettrace_sink *sink)
{
    struct nettrace_reader *r = mem_alloc(1, sizeof *r);
    r->sink = *sink;
    r->stage = STAGE_MAGIC;
    r->want = 8;
    buffer_init(&r->pending, (size_t)NETTRACE_BLOCK_MAX + 8);
    nettrace_types_init(&r->types);
    nettrace_stacks_init(&r->stacks);
    return r;
}

void nettrace_reader_free(struct nettrace_reader *r)
{
    if (!r)
        return;
    buffer_done(&r->pending);
    nettrace_types_done(&r->types);
    nettrace_stacks_done(&r->stacks);
    nettrace_threads_done(&r->threads);
    free(r);
}

static uint64_t to_ns(const struct nettrace_reader *r, uint64_t ticks)
{
    if (r->info.frequency == NS_PER_SECOND)
        return ticks;
    return (uint64_t)((unsigned __int128)ticks * NS_PER_SECOND / r->info.frequency);
}

/* What a callback said: its refusal is no fault of the stream's. */
static bool called(struct nettrace_reader *r, bool ok)
{
    r->refused |= !ok;
    return ok;
}

static bool define_type(struct nettrace_reader *r, struct span payload, struct error *err)
{
    struct nettrace_type *type = NULL;
    switch (nettrace_types_define(&r->types, payload, &type)) {
    case NETTRACE_TYPE_BAD:
        return error_set(err, ERROR_INPUT, "the description of an event is malformed");
    case NETTRACE_TYPE_REFUSED:
        r->counts.limits++;
        return true;
    case NETTRACE_TYPE_SAME:
        return true;
    case NETTRACE_TYPE_NEW:
        break;
    }
    return !r->sink.on_type || called(r, r->sink.on_type(r->sink.user, type, err));
}

static bool report_progress(struct nettrace_reader *r, uint64_t thread_id, struct nettrace_progress p,
                            struct error *err)
{
    r->counts.sequence_breaks += p.back;
    r->counts.time_breaks += p.older;
    r->counts.limits += p.refused;
    r->counts.lost += p.lost;
    return p.lost == 0 || !r->sink.on_loss ||
           called(r, r->sink.on_loss(r->sink.user, thread_id, p.lost, err));
}

static bool deliver(struct nettrace_reader *r, const struct nettrace_record *record, struct error *err)
{
    const struct nettrace_type *type = nettrace_types_find(&r->types, record->type_id);
    if (!type) {
        r->counts.untyped++;
        return true;
    }
    if (type->unwanted) {
        r->counts.events++;
        return true;
    }
    struct nettrace_event event = {
        .type = type,
        .time_ns = to_ns(r, record->ticks),
        .thread_id = record->thread_id,
        .capture_thread_id = record->capture_thread_id,
        .sequence = record->sequence,
        .processor = record->processor,
        .sorted = record->sorted,
        .activity = record->activity,
        .related_activity = record->related_activity,
        .stack = record->stack,
        .payload = record->payload,
    };
    if (r->version >= 4 &&
        !nettrace_stacks_find(&r->stacks, record->stack_id, &event.stack, &event.stack_mark))
        r->counts.stackless++;
    if (event.stack.size % r->info.pointer_size != 0)
        return error_set(err, ERROR_INPUT, "the stack of an event is not a whole number of addresses");
    r->counts.events++;
    return !r->sink.on_event || called(r, r->sink.on_event(r->sink.user, &event, err));
}

/* Follows a thread's numbers; false when a callback refuses what was lost. */
static inline bool follow(struct nettrace_reader *r, const struct nettrace_record *record, struct error *err)
{
    if (nettrace_threads_event_next(&r->threads, record->capture_thread_id, record->sequence, record->ticks))
        return true;
    struct nettrace_progress p =
        nettrace_threads_event(&r->threads, record->capture_thread_id, record->sequence, record->ticks);
    return report_progress(r, record->capture_thread_id, p, err);
}

static bool read_events(struct nettrace_reader *r, struct span content, bool is_metadata, struct error *err)
{
    struct nettrace_block block;
    const struct nettrace_record *record;
    if (!nettrace_block_open(&block, content, r->version, err))
        return false;
    while ((record = nettrace_block_next(&block))) {
        if (is_metadata || (r->version < 4 && record->type_id == 0)) {
            if (!define_type(r, record->payload, err))
                return false;
            continue;
        }
        if (record->ticks < block.min_ticks || record->ticks > block.max_ticks) {
            r->counts.time_breaks++;
            if (r->sink.on_damage)
                return error_set(err, ERROR_INPUT, "an event outside the time of its block");
        }
        if ((r->version >= 4 && !follow(r, record, err)) || !deliver(r, record, err))
            return false;
    }
    return nettrace_block_finish(&block, err);
}

static bool read_sequence_point(struct nettrace_reader *r, struct span content, struct error *err)
{
    struct cursor c = cursor_over(content);
    uint64_t ticks = cursor_u64le(&c);
    uint32_t count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        uint64_t thread_id = cursor_u64le(&c);
        uint32_t sequence = cursor_u32le(&c);
        if (cursor_ok(&c) &&
            !report_progress(r, thread_id, nettrace_threads_reached(&r->threads, thread_id, sequence), err))
            return false;
    }
    nettrace_threads_end_point(&r->threads);
    nettrace_stacks_clear(&r->stacks); /* also where the point is damaged: old ids mean nothing any more */
    if (!cursor_finish(&c, err, "a sequence point"))
        return false;
    return !r->sink.on_sequence_point ||
           called(r, r->sink.on_sequence_point(r->sink.user, to_ns(r, ticks), err));
}

static bool read_block(struct nettrace_reader *r, struct span content, struct error *err)
{
    if (strcmp(r->type_name, "EventBlock") == 0)
        return read_events(r, content, false, err);
    if (strcmp(r->type_name, "MetadataBlock") == 0)
        return read_events(r, content, true, err);
    if (strcmp(r->type_name, "StackBlock") == 0)
        return nettrace_stacks_read(&r->stacks, content, r->info.pointer_size, &r->counts.limits, err);
    if (strcmp(r->type_name, "SPBlock") == 0)
        return read_sequence_point(r, content, err);
    return true; /* later versions may add kinds of blocks */
}

/* A block that is not what it should be need not be the end: the next one begins where its size says. */
static bool take_block(struct nettrace_reader *r, struct span content, struct error *err)
{
    struct error what;
    r->refused = false;
    if (read_block(r, content, &what))
        return true;
    if (r->sink.on_damage && !r->refused)
        return r->sink.on_damage(r->sink.user, r->stream_off, content.size, &what, err);
    if (err)
        *err = what;
    return false;
}

static bool read_info(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    struct cursor c = cursor_over(bytes);
    struct nettrace_info info = { .version = r->version };
    for (size_t i = 0; i < 8; i++)
        info.utc[i] = cursor_u16le(&c);
    info.sync_ticks = cursor_u64le(&c);
    info.frequency = cursor_u64le(&c);
    info.pointer_size = cursor_u32le(&c);
    info.process_id = cursor_u32le(&c);
    info.processors = cursor_u32le(&c);
    info.sampling_period_ns = cursor_u32le(&c);
    if (info.pointer_size != 4 && info.pointer_size != 8)
        return error_set(err, ERROR_INPUT, "a pointer size of %" PRIu32, info.pointer_size);
    if (info.frequency == 0) {
        info.frequency = NS_PER_SECOND;
        r->counts.time_breaks++;
    }
    if (r->has_info)
        return error_set(err, ERROR_INPUT, "the stream begins twice");
    r->info = info;
    r->info.sync_ns = to_ns(r, info.sync_ticks);
    r->has_info = true;
    return !r->sink.on_info || r->sink.on_info(r->sink.user, &r->info, err);
}

static void expect(struct nettrace_reader *r, enum stage stage, size_t want)
{
    r->stage = stage;
    r->want = want;
}

bool nettrace_recognises(struct span head)
{
    return head.size >= 8 &&
           (memcmp(head.data, "Nettrace", 8) == 0 || memcmp(head.data, "\x14\0\0\0!Fas", 8) == 0);
}

static bool take_magic(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    if (memcmp(bytes.data, "Nettrace", 8) == 0) {
        r->version = 4;
        expect(r, STAGE_PREAMBLE, 24);
    } else if (memcmp(bytes.data, "\x14\0\0\0!Fas", 8) == 0) {
        r->version = 3;
        expect(r, STAGE_PREAMBLE, 16);
    } else {
        return error_set(err, ERROR_INPUT, "no event stream of a .NET runtime");
    }
    return true;
}

static bool take_preamble(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    static const char preamble[] = "\x14\0\0\0!FastSerialization.1";
    if (r->version == 4 && load_u32le(bytes.data) == 0)
        return error_set(err, ERROR_UNSUPPORTED, "nettrace version %" PRIu32, load_u32le(bytes.data + 4));
    if (memcmp(bytes.data, preamble + (24 - bytes.size), bytes.size) != 0)
        return error_set(err, ERROR_INPUT, "no event stream of a .NET runtime");
    expect(r, STAGE_TAG, 1);
    return true;
}

static bool take_tag(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    if (bytes.data[0] == TAG_END_OF_STREAM)
        expect(r, STAGE_ENDED, 0);
    else if (bytes.data[0] == TAG_BEGIN || bytes.data[0] == TAG_BEGIN_PRIVATE)
        expect(r, STAGE_TYPE, 14);
    else
        return error_set(err, ERROR_INPUT, "byte %u where an object should begin", bytes.data[0]);
    return true;
}

static bool take_type(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    uint32_t name_length = load_u32le(bytes.data + 10);
    uint32_t reader_version = load_u32le(bytes.data + 6);
    if ((bytes.data[0] != TAG_BEGIN && bytes.data[0] != TAG_BEGIN_PRIVATE) ||
        bytes.data[1] != TAG_END_OF_STREAM || name_length == 0 || name_length > TYPE_NAME_MAX)
        return error_set(err, ERROR_INPUT, "a malformed object header");
    if (reader_version > 4)
        return error_set(err, ERROR_UNSUPPORTED, "an object that needs a reader of version %" PRIu32,
                         reader_version);
    expect(r, STAGE_NAME, name_length + 1);
    return true;
}

static bool take_name(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    size_t length = bytes.size - 1;
    if (bytes.data[length] != TAG_END || memchr(bytes.data, 0, length))
        return error_set(err, ERROR_INPUT, "a malformed object header");
    memcpy(r->type_name, bytes.data, length);
    r->type_name[length] = '\0';
    bool is_trace = strcmp(r->type_name, "Trace") == 0;
    if (is_trace == r->has_info)
        return error_set(err, ERROR_INPUT, "an object '%.20s' out of place", r->type_name);
    if (is_trace)
        expect(r, STAGE_TRACE, TRACE_BYTES + 1);
    else
        expect(r, STAGE_SIZE, 4);
    return true;
}

static bool take_size(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    uint32_t size = load_u32le(bytes.data);
    if (size > NETTRACE_BLOCK_MAX)
        return error_set(err, ERROR_LIMIT, "a block of %" PRIu32 " bytes", size);
    r->block_size = size;
    r->padding = (4 - (r->stream_off + 4) % 4) % 4; /* content is aligned from the first byte of the stream */
    expect(r, STAGE_BLOCK, r->padding + size + 1);
    return true;
}

/* Takes the `want` bytes of the current stage and sets up the next. */
static bool take(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    switch (r->stage) {
    case STAGE_MAGIC:
        return take_magic(r, bytes, err);
    case STAGE_PREAMBLE:
        return take_preamble(r, bytes, err);
    case STAGE_TAG:
        return take_tag(r, bytes, err);
    case STAGE_TYPE:
        return take_type(r, bytes, err);
    case STAGE_NAME:
        return take_name(r, bytes, err);
    case STAGE_SIZE:
        return take_size(r, bytes, err);
    case STAGE_TRACE:
        expect(r, STAGE_TAG, 1);
        break;
    case STAGE_BLOCK:
        expect(r, STAGE_TAG, 1);
        break;
    case STAGE_ENDED:
        return true;
    }
    if (bytes.data[bytes.size - 1] != TAG_END)
        return error_set(err, ERROR_INPUT, "an object '%s' without its end", r->type_name);
    if (strcmp(r->type_name, "Trace") == 0)
        return read_info(r, bytes, err);
    return take_block(r, span_part(bytes, r->padding, r->block_size), err);
}

static bool feed(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    while (bytes.size > 0 && r->stage != STAGE_ENDED) {
        size_t missing = r->want - r->pending.size;
        size_t taken = missing < bytes.size ? missing : bytes.size;
        struct span whole = { bytes.data, taken };
        if (r->pending.size || taken < missing) {
            buffer_append(&r->pending, bytes.data, taken);
            whole = buffer_span(&r->pending);
        }
        bytes = span_part(bytes, taken, bytes.size - taken);
        if (whole.size < r->want)
            break;
        uint64_t start = r->stream_off;
        if (!take(r, whole, err))
            return error_context(err, "event stream at offset %" PRIu64, start);
        r->stream_off += whole.size;
        buffer_clear(&r->pending);
    }
    return true;
}

bool nettrace_reader_feed(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    if (!r->failed) {
        r->counts.bytes += bytes.size;
        r->failed = !feed(r, bytes, &r->failure);
    }
    if (r->failed && err)
        *err = r->failure;
    return !r->failed;
}

bool nettrace_reader_ended(const struct nettrace_reader *r)
{
    return r->stage == STAGE_ENDED;
}

const struct nettrace_info *nettrace_reader_info(const struct nettrace_reader *r)
{
    return r->has_info ? &r->info : NULL;
}

uint64_t nettrace_reader_offset(const struct nettrace_reader *r)
{
    return r->stream_off;
}

const struct nettrace_counts *nettrace_reader_counts(const struct nettrace_reader *r)
{
    return &r->counts;
}
