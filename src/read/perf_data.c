#include "read/perf_data.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "read/perf_order.h"

enum {
    RECORD_BYTES_MAX = 65535,
    WAITING_BYTES_MAX = 64 << 20,
    UNPACK_BYTES = 256 * 1024,
    /* idle stack memory packs well; beyond this it is a bomb */
    UNPACK_RATIO_MAX = 1024,
    UNPACK_FREE_BYTES = 1 << 20,
};

/* The perf tool's own records, tools/lib/perf/include/perf/event.h. */
enum tool_record {
    RECORD_HEADER_ATTR = 64,
    RECORD_HEADER_TRACING_DATA = 66,
    RECORD_HEADER_BUILD_ID = 67,
    RECORD_FINISHED_ROUND = 68,
    RECORD_AUXTRACE = 71,
    RECORD_EVENT_UPDATE = 78,
    RECORD_HEADER_FEATURE = 80,
    RECORD_COMPRESSED = 81,
    RECORD_COMPRESSED2 = 83,
};

/* One pass over the data. */
struct reading {
    struct perf_data *p;
    struct perf_order order;
    perf_data_record_fn *emit;
    perf_data_settle_fn *settle;
    void *user;
    ZSTD_DStream *unpacker;
    struct buffer unpacked; /* plain records that came out of compressed ones, the last perhaps partial */
    uint64_t unpacked_total;
    bool stopped;               /* damage: nothing behind it can be read */
    struct perf_record decoded; /* the one being handed out */
};

static bool reading_stop(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Not an error of the caller's: what was read so far stands. */
static bool reading_stop(struct reading *r, const char *format, ...)
{
    struct perf_data_stats *stats = &r->p->stats;
    r->stopped = true;
    if (stats->damage[0])
        return true;
    va_list args;
    va_start(args, format);
    vsnprintf(stats->damage, sizeof stats->damage, format, args);
    va_end(args);
    stats->damage_off = r->p->stream->pos;
    return true;
}

static const struct perf_sample_layout *first_layout(const struct perf_data *p)
{
    static const struct perf_sample_layout none = {
        .sample_time_at = -1, .sample_id_at = -1, .trailer_time_at = -1, .trailer_id_at = -1
    };
    return p->header.event_count ? &p->header.events[0].layout : &none;
}

static bool deliver(void *user, struct span record, uint64_t time_ns, struct error *err)
{
    struct reading *r = user;
    struct perf_data *p = r->p;
    (void)time_ns;
    uint32_t event = 0;
    /* where the id stands is the same for all events of a recording */
    if (p->header.event_count > 1)
        event = perf_header_event_of(&p->header, perf_record_event_id(record, first_layout(p)));
    const struct perf_sample_layout *layout =
        event < p->header.event_count ? &p->header.events[event].layout : first_layout(p);
    if (!perf_record_decode(record, layout, &r->decoded, NULL)) {
        p->stats.malformed++;
        return true;
    }
    p->stats.samples += r->decoded.type == PERF_RECORD_SAMPLE;
    return r->emit(r->user, event, &r->decoded, err);
}

static void settle(void *user)
{
    struct reading *r = user;
    r->settle(r->user);
}

/* What does not wait. */
static bool deliver_now(struct reading *r, struct span record, struct error *err)
{
    bool ok = deliver(r, record, 0, err);
    settle(r);
    return ok;
}

static bool take_kernel_record(struct reading *r, struct span record, struct error *err)
{
    uint64_t time_ns = perf_record_time_ns(record, first_layout(r->p));
    r->p->stats.records++;
    /* what perf made up itself (the processes that ran before) has no time and is for now */
    if (time_ns == 0 || time_ns == UINT64_MAX)
        return deliver_now(r, record, err);
    return perf_order_add(&r->order, record, time_ns, err);
}

/* A record that is not followed by anything. */
static bool take_record(struct reading *r, uint32_t type, uint16_t misc, struct span record,
                        struct error *err)
{
    struct perf_header *h = &r->p->header;
    struct span body = span_part(record, PERF_RECORD_HEADER_BYTES, record.size - PERF_RECORD_HEADER_BYTES);
    if (type < RECORD_HEADER_ATTR)
        return take_kernel_record(r, record, err);
    switch (type) {
    case RECORD_HEADER_ATTR: {
        struct error why;
        if (!r->p->parts.is_pipe)
            return true;
        return perf_header_take_attr(h, body, &why) || reading_stop(r, "%.150s", why.what);
    }
    case RECORD_HEADER_BUILD_ID:
        perf_header_take_build_id(h, body, misc);
        return true;
    case RECORD_EVENT_UPDATE:
        perf_header_take_update(h, body);
        return true;
    case RECORD_HEADER_FEATURE:
        perf_header_take_feature(h, body);
        return true;
    case RECORD_FINISHED_ROUND:
        return perf_order_round(&r->order, err);
    default:
        return true;
    }
}

static size_t record_size(struct span bytes)
{
    return (size_t)(bytes.data[6] | bytes.data[7] << 8);
}

/* Hands out the whole records among the unpacked bytes and keeps the rest. */
static bool take_unpacked(struct reading *r, struct error *err)
{
    size_t pos = 0;
    struct span all = buffer_span(&r->unpacked);
    while (!r->stopped && all.size - pos >= PERF_RECORD_HEADER_BYTES) {
        struct span rest = span_part(all, pos, all.size - pos);
        size_t size = record_size(rest);
        if (size < PERF_RECORD_HEADER_BYTES)
            return reading_stop(r, "a compressed record claims %zu bytes", size);
        if (size > rest.size)
            break;
        uint16_t misc = (uint16_t)(rest.data[4] | rest.data[5] << 8);
        uint32_t type = load_u32le(rest.data);
        if (type == RECORD_COMPRESSED || type == RECORD_COMPRESSED2)
            return reading_stop(r, "a compressed record lies in a compressed record");
        if (!take_record(r, type, misc, span_part(rest, 0, size), err))
            return false;
        pos += size;
    }
    memmove(r->unpacked.data, r->unpacked.data + pos, r->unpacked.size - pos);
    r->unpacked.size -= pos;
    return true;
}

static bool unpack(struct reading *r, struct span packed, struct error *err)
{
    if (!r->unpacker)
        r->unpacker = ZSTD_createDStream();
    if (!r->unpacker)
        return error_set(err, ERROR_LIMIT, "no memory to unpack perf.data");
    r->p->stats.compressed_bytes += packed.size;
    ZSTD_inBuffer in = { packed.data, packed.size, 0 };
    for (bool full = true; (in.pos < in.size || full) && !r->stopped;) {
        uint8_t *room = buffer_reserve(&r->unpacked, UNPACK_BYTES);
        if (!room)
            return reading_stop(r, "unpacked records do not end");
        ZSTD_outBuffer out = { room, UNPACK_BYTES, 0 };
        size_t before = in.pos;
        size_t left = ZSTD_decompressStream(r->unpacker, &out, &in);
        if (ZSTD_isError(left))
            return reading_stop(r, "a compressed record cannot be unpacked: %s", ZSTD_getErrorName(left));
        full = out.pos == out.size;
        r->unpacked.size += out.pos;
        r->unpacked_total += out.pos;
        if (r->unpacked_total > UNPACK_FREE_BYTES + (uint64_t)UNPACK_RATIO_MAX * r->p->stats.compressed_bytes)
            return reading_stop(r, "compressed records unpack to more than %d times their size",
                                UNPACK_RATIO_MAX);
        if (!take_unpacked(r, err))
            return false;
        if (out.pos == 0 && in.pos == before)
            break;
    }
    return true;
}

static struct span packed_part(uint32_t type, struct span body)
{
    if (type == RECORD_COMPRESSED)
        return body;
    struct cursor c = cursor_over(body); /* COMPRESSED2 says the size, because it is padded */
    uint64_t size = cursor_u64le(&c);
    return cursor_bytes(&c, size < cursor_left(&c) ? size : cursor_left(&c));
}

/* Bytes that follow a record and do not belong to its size. */
static uint64_t bytes_behind(uint32_t type, struct span body)
{
    if (type == RECORD_AUXTRACE && body.size >= 8)
        return load_u64le(body.data);
    if (type == RECORD_HEADER_TRACING_DATA && body.size >= 4)
        return ((uint64_t)load_u32le(body.data) + 7) & ~7ull;
    return 0;
}

/* The next record of the file; *left counts the bytes of the data section down. */
static bool take_outer(struct reading *r, struct span there, uint64_t *left, struct error *err)
{
    struct byte_stream *s = r->p->stream;
    size_t size = record_size(there);
    uint32_t type = load_u32le(there.data);
    uint16_t misc = (uint16_t)(there.data[4] | there.data[5] << 8);
    if (size < PERF_RECORD_HEADER_BYTES)
        return reading_stop(r, "a record of type %" PRIu32 " claims %zu bytes", type, size);
    if (size > there.size || size > *left) {
        r->p->stats.is_cut = true;
        return reading_stop(r, "the last record is cut");
    }
    struct span record = span_part(there, 0, size);
    struct span body = span_part(record, PERF_RECORD_HEADER_BYTES, size - PERF_RECORD_HEADER_BYTES);
    uint64_t behind = bytes_behind(type, body);
    bool ok = type == RECORD_COMPRESSED || type == RECORD_COMPRESSED2
                  ? unpack(r, packed_part(type, body), err)
                  : take_record(r, type, misc, record, err);
    if (!ok || r->stopped)
        return ok;
    byte_stream_take(s, size);
    *left -= size;
    if (behind == 0)
        return true;
    uint64_t skipped;
    if (!byte_stream_skip(s, behind < *left ? behind : *left, &skipped, err))
        return false;
    *left -= skipped;
    if (type == RECORD_AUXTRACE)
        r->p->stats.aux_bytes += skipped;
    r->p->stats.is_cut |= skipped < behind;
    return true;
}

static bool read_all(struct reading *r, struct error *err)
{
    struct perf_data *p = r->p;
    uint64_t left = p->parts.data_size ? p->parts.data_size : UINT64_MAX;
    while (left > 0 && !r->stopped) {
        struct span there;
        if (!byte_stream_peek(p->stream, PERF_RECORD_HEADER_BYTES, &there, err))
            return false;
        if (there.size >= PERF_RECORD_HEADER_BYTES && record_size(there) > there.size &&
            !byte_stream_peek(p->stream, record_size(there), &there, err))
            return false;
        if (there.size == 0) {
            p->stats.is_cut |= p->parts.data_size != 0;
            break;
        }
        if (there.size < PERF_RECORD_HEADER_BYTES) {
            p->stats.is_cut = true;
            reading_stop(r, "the last record is cut");
            break;
        }
        if (!take_outer(r, there, &left, err))
            return false;
    }
    /* a record that was to go on in a compressed one that did not come */
    p->stats.is_cut |= !r->stopped && r->unpacked.size > 0;
    if (r->stopped && byte_stream_is_seekable(p->stream) && p->stream->source.size > p->stats.damage_off) {
        uint64_t behind = p->stream->source.size - p->stats.damage_off;
        p->stats.damage_bytes = behind < left ? behind : left;
    }
    return perf_order_flush(&r->order, err);
}

bool perf_data_read(struct perf_data *p, perf_data_record_fn *emit, perf_data_settle_fn *settled, void *user,
                    struct error *err)
{
    struct reading r = { .p = p, .emit = emit, .settle = settled, .user = user };
    perf_order_init(&r.order, WAITING_BYTES_MAX, deliver, settle, &r);
    buffer_init(&r.unpacked, UNPACK_BYTES + 2 * RECORD_BYTES_MAX);
    bool ok = read_all(&r, err);
    p->stats.late = r.order.late;
    perf_order_done(&r.order);
    buffer_done(&r.unpacked);
    ZSTD_freeDStream(r.unpacker);
    return ok;
}

static bool open_file(struct perf_data *p, struct error *err)
{
    struct byte_stream *s = p->stream;
    uint64_t skipped;
    if (!byte_stream_is_seekable(s)) {
        error_set(err, ERROR_UNSUPPORTED, "a perf.data in file layout cannot be read from a pipe");
        return error_hint(err, "give the file's name, or record with 'perf record -o -'");
    }
    if (p->parts.is_of_folder) {
        error_set(err, ERROR_UNSUPPORTED,
                  "'perf record --threads' made it, which writes its samples into files "
                  "of their own beside it");
        return error_hint(err, "record without --threads, or have perf read its folder: "
                               "perf script -F +pid -i FOLDER | clrperf report -");
    }
    if (!perf_header_read_events(&p->header, &s->source, &p->parts, err))
        return false;
    p->stats.is_unfinished = p->parts.data_size == 0;
    p->stats.is_cut =
        p->parts.data_off > s->source.size || p->parts.data_size > s->source.size - p->parts.data_off;
    if (!p->stats.is_unfinished && !p->stats.is_cut)
        perf_header_read_features(&p->header, &s->source, &p->parts);
    return byte_stream_skip(s, p->parts.data_off, &skipped, err);
}

bool perf_data_open(struct perf_data *p, struct byte_stream *stream, struct error *err)
{
    struct span head;
    *p = (struct perf_data){ .stream = stream };
    perf_header_init(&p->header);
    bool ok = byte_stream_peek(stream, 104, &head, err) && perf_header_read_parts(head, &p->parts, err);
    if (ok && p->parts.is_pipe)
        byte_stream_take(stream, (size_t)p->parts.data_off);
    else if (ok)
        ok = open_file(p, err);
    if (!ok)
        perf_data_close(p);
    return ok;
}

void perf_data_close(struct perf_data *p)
{
    perf_header_done(&p->header);
}
