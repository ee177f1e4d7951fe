#include "read/nettrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "read/nettrace_contents.h"

/* The tags of the object framing. */
enum { TAG_END_OF_STREAM = 1, TAG_BEGIN = 4, TAG_BEGIN_PRIVATE = 5, TAG_END = 6 };

enum { TRACE_BYTES = 48, TYPE_NAME_MAX = 64 };

/* What the next `want` bytes of the stream are. */
enum stage {
    STAGE_MAGIC,
    STAGE_PREAMBLE, /* the rest of the fixed bytes at the start */
    STAGE_TAG,      /* an object begins, or the stream ends */
    STAGE_TYPE,     /* the versions and the length of the type's name */
    STAGE_NAME,
    STAGE_TRACE,      /* the first object: fixed size */
    STAGE_SIZE,       /* of a block */
    STAGE_BLOCK,      /* padding, content, end tag */
    STAGE_VERSION_V6, /* of nettrace 6: which one exactly */
    STAGE_HEAD_V6,    /* kind and size of a block */
    STAGE_BLOCK_V6,
    STAGE_ENDED,
};

struct nettrace_reader {
    enum stage stage;
    size_t want;
    struct buffer pending; /* fewer than `want` bytes */
    uint64_t stream_off;   /* of the next byte a stage takes */
    char type_name[TYPE_NAME_MAX + 1];
    uint32_t version; /* 3, 4 or 6 */
    size_t padding, block_size;
    uint8_t kind_v6; /* of the block that comes */
    struct nettrace_contents contents;
    bool failed;
    struct error failure;
};

struct nettrace_reader *nettrace_reader_new(const struct nettrace_sink *sink)
{
    struct nettrace_reader *r = mem_alloc(1, sizeof *r);
    r->stage = STAGE_MAGIC;
    r->want = 8;
    buffer_init(&r->pending, (size_t)NETTRACE_BLOCK_MAX + 8);
    nettrace_contents_init(&r->contents, sink);
    return r;
}

void nettrace_reader_free(struct nettrace_reader *r)
{
    if (!r)
        return;
    buffer_done(&r->pending);
    nettrace_contents_done(&r->contents);
    free(r);
}

/* By the name of its type. */
static enum nettrace_content content_of(const char *type_name)
{
    static const struct {
        const char *name;
        enum nettrace_content content;
    } kinds[] = {
        { "EventBlock", NETTRACE_EVENTS },
        { "MetadataBlock", NETTRACE_METADATA },
        { "StackBlock", NETTRACE_STACKS },
        { "SPBlock", NETTRACE_SEQUENCE_POINT },
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(type_name, kinds[i].name) == 0)
            return kinds[i].content;
    return NETTRACE_OTHER;
}

/* A block that is not what it should be need not be the end: the next one begins where its size says. */
static bool take_block(struct nettrace_reader *r, enum nettrace_content kind, struct span content,
                       struct error *err)
{
    struct error what;
    const struct nettrace_sink *sink = &r->contents.sink;
    r->contents.refused = false;
    if (nettrace_contents_read(&r->contents, kind, content, &what))
        return true;
    if (sink->on_damage && !r->contents.refused)
        return sink->on_damage(sink->user, r->stream_off, content.size, &what, err);
    if (err)
        *err = what;
    return false;
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
        expect(r, STAGE_PREAMBLE, 4);
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
    size_t seen = (size_t)r->stream_off - (r->version == 4 ? 8 : 0); /* of the preamble */
    if (r->version == 4 && seen == 0 && load_u32le(bytes.data) == 0) {
        expect(r, STAGE_VERSION_V6, 8);
        return true;
    }
    if (memcmp(bytes.data, preamble + seen, bytes.size) != 0)
        return error_set(err, ERROR_INPUT, "no event stream of a .NET runtime");
    if (seen + bytes.size < sizeof preamble - 1)
        expect(r, STAGE_PREAMBLE, sizeof preamble - 1 - seen - bytes.size);
    else
        expect(r, STAGE_TAG, 1);
    return true;
}

/* Later minor versions add what can be passed over. */
static bool take_version_v6(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    uint32_t major = load_u32le(bytes.data);
    if (major != 6)
        return error_set(err, ERROR_UNSUPPORTED, "nettrace version %" PRIu32, major);
    r->version = major;
    expect(r, STAGE_HEAD_V6, 4);
    return true;
}

enum { KIND_V6_END, KIND_V6_TRACE };

static bool take_head_v6(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    uint32_t head = load_u32le(bytes.data);
    r->block_size = head & 0xffffff;
    r->kind_v6 = (uint8_t)(head >> 24);
    if (r->kind_v6 != KIND_V6_END && (r->kind_v6 == KIND_V6_TRACE) == r->contents.has_info)
        return error_set(err, ERROR_INPUT, "a block of kind %u out of place", r->kind_v6);
    if (r->kind_v6 == KIND_V6_END)
        expect(r, STAGE_ENDED, 0);
    else
        expect(r, STAGE_BLOCK_V6, r->block_size);
    return true;
}

static bool take_block_v6(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    static const uint8_t contents[] = {
        [2] = NETTRACE_EVENTS, [3] = NETTRACE_METADATA, [4] = NETTRACE_SEQUENCE_POINT,
        [5] = NETTRACE_STACKS, [6] = NETTRACE_THREADS,  [7] = NETTRACE_ENDED_THREADS,
        [8] = NETTRACE_LABELS,
    };
    uint8_t kind = r->kind_v6;
    expect(r, STAGE_HEAD_V6, 4);
    if (kind == KIND_V6_TRACE)
        return nettrace_contents_info(&r->contents, bytes, r->version, err);
    return take_block(r, kind < ARRAY_LEN(contents) ? (enum nettrace_content)contents[kind] : NETTRACE_OTHER,
                      bytes, err);
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
    if (is_trace == r->contents.has_info)
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
    case STAGE_VERSION_V6:
        return take_version_v6(r, bytes, err);
    case STAGE_HEAD_V6:
        return take_head_v6(r, bytes, err);
    case STAGE_BLOCK_V6:
        return take_block_v6(r, bytes, err);
    case STAGE_ENDED:
        return true;
    }
    if (bytes.data[bytes.size - 1] != TAG_END)
        return error_set(err, ERROR_INPUT, "an object '%s' without its end", r->type_name);
    if (strcmp(r->type_name, "Trace") == 0)
        return nettrace_contents_info(&r->contents, bytes, r->version, err);
    return take_block(r, content_of(r->type_name), span_part(bytes, r->padding, r->block_size), err);
}

static bool take_whole(struct nettrace_reader *r, struct span whole, struct error *err)
{
    uint64_t start = r->stream_off;
    if (!take(r, whole, err))
        return error_context(err, "event stream at offset %" PRIu64, start);
    r->stream_off += whole.size;
    return true;
}

/* A part of what is wanted, or the rest of it. */
static bool take_part(struct nettrace_reader *r, struct span bytes, size_t *out_taken, struct error *err)
{
    size_t missing = r->want - r->pending.size;
    *out_taken = missing < bytes.size ? missing : bytes.size;
    buffer_append(&r->pending, bytes.data, *out_taken);
    if (r->pending.size < r->want)
        return true;
    if (!take_whole(r, buffer_span(&r->pending), err))
        return false;
    buffer_clear(&r->pending);
    return true;
}

static bool feed(struct nettrace_reader *r, struct span bytes, size_t *out_taken, struct error *err)
{
    size_t taken = 0;
    if (r->pending.size || bytes.size < r->want)
        return take_part(r, bytes, out_taken, err);
    while (r->stage != STAGE_ENDED && taken < bytes.size && bytes.size - taken >= r->want) {
        size_t size = r->want;
        if (!take_whole(r, span_part(bytes, taken, size), err))
            return false;
        taken += size;
    }
    *out_taken = r->stage == STAGE_ENDED ? bytes.size : taken;
    return true;
}

bool nettrace_reader_take(struct nettrace_reader *r, struct span bytes, size_t *out_taken, struct error *err)
{
    size_t taken = 0;
    if (!r->failed) {
        r->failed = !feed(r, bytes, &taken, &r->failure);
        r->contents.counts.bytes += r->failed ? bytes.size : taken;
    }
    if (r->failed && err)
        *err = r->failure;
    if (!r->failed)
        *out_taken = taken;
    return !r->failed;
}

bool nettrace_reader_feed(struct nettrace_reader *r, struct span bytes, struct error *err)
{
    size_t taken;
    for (size_t at = 0; at < bytes.size; at += taken)
        if (!nettrace_reader_take(r, span_part(bytes, at, bytes.size - at), &taken, err))
            return false;
    return true;
}

size_t nettrace_reader_wanted(const struct nettrace_reader *r)
{
    return r->want > r->pending.size ? r->want - r->pending.size : 1;
}

bool nettrace_reader_ended(const struct nettrace_reader *r)
{
    return r->stage == STAGE_ENDED;
}

const struct nettrace_info *nettrace_reader_info(const struct nettrace_reader *r)
{
    return r->contents.has_info ? &r->contents.info : NULL;
}

uint64_t nettrace_reader_offset(const struct nettrace_reader *r)
{
    return r->stream_off;
}

const struct nettrace_counts *nettrace_reader_counts(const struct nettrace_reader *r)
{
    return &r->contents.counts;
}
