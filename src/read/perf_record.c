#include "read/perf_record.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MISC_SWITCH_OUT_PREEMPT = 1 << 14,
    MISC_MMAP_BUILD_ID = 1 << 14,
    MISC_LOST_BY_FILTER = 1 << 15, /* PERF_RECORD_MISC_LOST_SAMPLES_BPF */
    BUILD_ID_BYTES_MAX = 20,
    BRANCH_ENTRY_BYTES = 24,
};

/* Names newer than the oldest kernel headers we build with. */
static const uint64_t format_lost = 1u << 4;
static const uint64_t branch_hw_index = 1u << 17;
static const uint64_t branch_counters = 1u << 19;

static const uint64_t head_fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
static const uint64_t trailer_fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

static inline uint64_t word_at(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return le64toh(value);
}

static inline uint32_t half_at(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return le32toh(value);
}

/* Each field of the head and of the trailer is one word. */
static int32_t fields_bytes(uint64_t fields)
{
    return 8 * __builtin_popcountll(fields);
}

static void place_sample_fields(struct perf_sample_layout *l)
{
    uint64_t type = l->sample_type;
    const int32_t start = PERF_RECORD_HEADER_BYTES;
    uint64_t before_time = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
    uint64_t before_id = before_time | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    l->head_bytes = (uint32_t)fields_bytes(type & head_fields);
    l->sample_time_at = type & PERF_SAMPLE_TIME ? start + fields_bytes(type & before_time) : -1;
    l->sample_id_at = type & PERF_SAMPLE_IDENTIFIER ? start
                      : type & PERF_SAMPLE_ID       ? start + fields_bytes(type & before_id)
                                                    : -1;
}

static void place_trailer_fields(struct perf_sample_layout *l)
{
    uint64_t type = l->sample_type;
    uint64_t behind_id = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    uint64_t behind_time = PERF_SAMPLE_ID | behind_id;
    l->trailer_bytes = (uint32_t)fields_bytes(type & trailer_fields);
    if (type & PERF_SAMPLE_TIME)
        l->trailer_time_at = 8 + fields_bytes(type & behind_time);
    if (type & PERF_SAMPLE_IDENTIFIER)
        l->trailer_id_at = 8;
    else if (type & PERF_SAMPLE_ID)
        l->trailer_id_at = 8 + fields_bytes(type & behind_id);
}

struct perf_sample_layout perf_sample_layout_of(const struct perf_event_attr *attr)
{
    struct perf_sample_layout l = {
        .sample_type = attr->sample_type,
        .read_format = attr->read_format,
        .branch_sample_type = attr->branch_sample_type,
        .user_regs = (uint32_t)__builtin_popcountll(attr->sample_regs_user),
        .intr_regs = (uint32_t)__builtin_popcountll(attr->sample_regs_intr),
        .trailer_time_at = -1,
        .trailer_id_at = -1,
    };
    place_sample_fields(&l);
    if (attr->sample_id_all)
        place_trailer_fields(&l);
    return l;
}

/* The caller has checked that the head lies in the record. */
static const uint8_t *decode_head(const uint8_t *at, uint64_t type, struct perf_sample *s)
{
    uint64_t identifier = 0;
    if (type & PERF_SAMPLE_IDENTIFIER) {
        identifier = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_IP) {
        s->ip = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_TID) {
        s->who.pid = half_at(at);
        s->who.tid = half_at(at + 4);
        at += 8;
    }
    if (type & PERF_SAMPLE_TIME) {
        s->who.time_ns = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_ADDR) {
        s->addr = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_ID) {
        s->who.id = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_STREAM_ID) {
        s->who.stream_id = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_CPU) {
        s->who.cpu = half_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_PERIOD) {
        s->period = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_IDENTIFIER)
        s->who.id = identifier;
    return at;
}

static struct span cursor_words(struct cursor *c, uint64_t count)
{
    if (count > cursor_left(c) / 8) {
        c->failed = true;
        return (struct span){ 0 };
    }
    return cursor_bytes(c, count * 8);
}

static void skip_read_values(struct cursor *c, uint64_t format)
{
    uint64_t times = ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0) +
                     (uint64_t)((format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0);
    uint64_t per_value = 1 + ((format & PERF_FORMAT_ID) != 0) + (uint64_t)((format & format_lost) != 0);
    uint64_t values = 1;
    if (format & PERF_FORMAT_GROUP) {
        values = cursor_u64le(c);
        /* checked before the product below, which could wrap */
        if (values > cursor_left(c) / 8)
            c->failed = true;
    }
    cursor_words(c, times);
    if (cursor_ok(c))
        cursor_words(c, values * per_value);
}

static void skip_branches(struct cursor *c, uint64_t branch_type)
{
    uint64_t count = cursor_u64le(c);
    if (branch_type & branch_hw_index)
        cursor_skip(c, 8);
    if (count > cursor_left(c) / BRANCH_ENTRY_BYTES) {
        c->failed = true;
        return;
    }
    cursor_skip(c, count * BRANCH_ENTRY_BYTES);
    if (branch_type & branch_counters)
        cursor_words(c, count);
}

static struct span decode_regs(struct cursor *c, uint32_t count, uint64_t *abi)
{
    *abi = cursor_u64le(c);
    return *abi == PERF_SAMPLE_REGS_ABI_NONE ? (struct span){ 0 } : cursor_words(c, count);
}

static void decode_user_stack(struct cursor *c, struct perf_sample *s)
{
    uint64_t size = cursor_u64le(c);
    if (size == 0)
        return;
    struct span stack = cursor_bytes(c, size);
    uint64_t used = cursor_u64le(c);
    s->user_stack_asked = size;
    s->user_stack = span_part(stack, 0, used < stack.size ? used : stack.size);
}

/* Fields behind STACK_USER that nobody here reads, but that stand before CGROUP. */
static void decode_tail(struct cursor *c, const struct perf_sample_layout *layout, struct perf_sample *s)
{
    uint64_t type = layout->sample_type;
    uint64_t intr_abi;
    if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
        cursor_skip(c, 8);
    if (type & PERF_SAMPLE_DATA_SRC)
        cursor_skip(c, 8);
    if (type & PERF_SAMPLE_TRANSACTION)
        cursor_skip(c, 8);
    if (type & PERF_SAMPLE_REGS_INTR)
        decode_regs(c, layout->intr_regs, &intr_abi);
    if (type & PERF_SAMPLE_PHYS_ADDR)
        cursor_skip(c, 8);
    if (type & PERF_SAMPLE_CGROUP)
        s->cgroup = cursor_u64le(c);
}

static bool decode_sample(struct span body, const struct perf_sample_layout *layout, struct perf_sample *s)
{
    uint64_t type = layout->sample_type;
    if (body.size < layout->head_bytes)
        return false;
    struct cursor c = cursor_over(body);
    c.pos = (size_t)(decode_head(body.data, type, s) - body.data);
    if (type & PERF_SAMPLE_READ)
        skip_read_values(&c, layout->read_format);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        uint64_t count = cursor_left(&c) >= 8 ? word_at(body.data + c.pos) : UINT64_MAX;
        cursor_skip(&c, 8);
        s->callchain = cursor_words(&c, count);
    }
    if (!(type & ~(head_fields | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN)))
        return cursor_ok(&c);
    if (type & PERF_SAMPLE_RAW)
        s->raw = cursor_bytes(&c, cursor_u32le(&c));
    if (type & PERF_SAMPLE_BRANCH_STACK)
        skip_branches(&c, layout->branch_sample_type);
    if (type & PERF_SAMPLE_REGS_USER)
        s->user_regs = decode_regs(&c, layout->user_regs, &s->user_abi);
    if (type & PERF_SAMPLE_STACK_USER)
        decode_user_stack(&c, s);
    decode_tail(&c, layout, s);
    return cursor_ok(&c);
}

static struct perf_sample_id decode_trailer(const uint8_t *at, uint64_t type)
{
    struct perf_sample_id who = { 0 };
    if (type & PERF_SAMPLE_TID) {
        who.pid = half_at(at);
        who.tid = half_at(at + 4);
        at += 8;
    }
    if (type & PERF_SAMPLE_TIME) {
        who.time_ns = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_ID) {
        who.id = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_STREAM_ID) {
        who.stream_id = word_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_CPU) {
        who.cpu = half_at(at);
        at += 8;
    }
    if (type & PERF_SAMPLE_IDENTIFIER)
        who.id = word_at(at);
    return who;
}

/* Names are padded with NULs to a multiple of 8. */
static struct span padded_text(struct cursor *c)
{
    struct span rest = cursor_bytes(c, cursor_left(c));
    const uint8_t *nul = rest.size ? memchr(rest.data, 0, rest.size) : NULL;
    return (struct span){ rest.data, nul ? (size_t)(nul - rest.data) : rest.size };
}

static void decode_mmap(struct cursor *c, uint32_t type, uint16_t misc, struct perf_mmap *m)
{
    m->pid = cursor_u32le(c);
    m->tid = cursor_u32le(c);
    m->addr = cursor_u64le(c);
    m->size_bytes = cursor_u64le(c);
    m->file_off = cursor_u64le(c);
    if (type == PERF_RECORD_MMAP) {
        m->prot = misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ : PROT_READ | PROT_EXEC;
    } else {
        if (misc & MISC_MMAP_BUILD_ID) {
            uint8_t size = cursor_u8(c);
            cursor_skip(c, 3);
            struct span id = cursor_bytes(c, BUILD_ID_BYTES_MAX);
            m->build_id = span_part(id, 0, size < BUILD_ID_BYTES_MAX ? size : BUILD_ID_BYTES_MAX);
        } else {
            m->major = cursor_u32le(c);
            m->minor = cursor_u32le(c);
            m->inode = cursor_u64le(c);
            m->inode_generation = cursor_u64le(c);
        }
        m->prot = cursor_u32le(c);
        cursor_skip(c, 4); /* MAP_* flags */
    }
    m->path = padded_text(c);
}

static void decode_task(struct cursor *c, struct perf_task *t)
{
    t->pid = cursor_u32le(c);
    t->ppid = cursor_u32le(c);
    t->tid = cursor_u32le(c);
    t->ptid = cursor_u32le(c);
    t->time_ns = cursor_u64le(c);
}

/* `body` without the trailer. */
static bool decode_other(struct span body, struct perf_record *r)
{
    struct cursor c = cursor_over(body);
    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        decode_mmap(&c, r->type, r->misc, &r->mmap);
        break;
    case PERF_RECORD_COMM:
        r->comm.pid = cursor_u32le(&c);
        r->comm.tid = cursor_u32le(&c);
        r->comm.name = padded_text(&c);
        r->comm.is_exec = (r->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        decode_task(&c, &r->task);
        break;
    case PERF_RECORD_LOST:
        r->lost.id = cursor_u64le(&c);
        r->lost.count = cursor_u64le(&c);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        r->lost.count = cursor_u64le(&c);
        if (r->misc & MISC_LOST_BY_FILTER) /* nobody wanted them */
            r->lost.count = 0;
        r->lost.is_sum = !r->who.time_ns;
        break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        r->throttle.time_ns = cursor_u64le(&c);
        r->throttle.id = cursor_u64le(&c);
        r->throttle.stream_id = cursor_u64le(&c);
        break;
    case PERF_RECORD_SWITCH_CPU_WIDE:
        r->switched.other_pid = cursor_u32le(&c);
        r->switched.other_tid = cursor_u32le(&c);
        __attribute__((fallthrough));
    case PERF_RECORD_SWITCH:
        r->switched.out = (r->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
        r->switched.preempted = (r->misc & MISC_SWITCH_OUT_PREEMPT) != 0;
        break;
    default:
        break;
    }
    return cursor_ok(&c);
}

bool perf_record_decode(struct span bytes, const struct perf_sample_layout *layout, struct perf_record *out,
                        struct error *err)
{
    if (bytes.size < PERF_RECORD_HEADER_BYTES)
        return error_set(err, ERROR_INPUT, "a perf record ends within its header");
    uint16_t size = (uint16_t)(bytes.data[6] | bytes.data[7] << 8);
    struct perf_record r = {
        .type = half_at(bytes.data),
        .misc = (uint16_t)(bytes.data[4] | bytes.data[5] << 8),
    };
    if (size < PERF_RECORD_HEADER_BYTES || size > bytes.size)
        return error_set(err, ERROR_INPUT, "a perf record of type %" PRIu32 " claims %u of %zu bytes", r.type,
                         size, bytes.size);
    r.body = span_of(bytes.data + PERF_RECORD_HEADER_BYTES, size - PERF_RECORD_HEADER_BYTES);
    bool ok;
    if (r.type == PERF_RECORD_SAMPLE) {
        ok = decode_sample(r.body, layout, &r.sample);
        r.who = r.sample.who;
    } else if (r.type >= 64) {
        ok = true;
    } else if (r.body.size < layout->trailer_bytes) {
        ok = false;
    } else {
        size_t own = r.body.size - layout->trailer_bytes;
        if (layout->trailer_bytes)
            r.who = decode_trailer(r.body.data + own, layout->sample_type);
        ok = decode_other(span_of(r.body.data, own), &r);
    }
    if (!ok)
        return error_set(err, ERROR_INPUT, "a perf record of type %" PRIu32 " and %u bytes is too short",
                         r.type, size);
    *out = r;
    return true;
}

static uint64_t field_at(struct span bytes, int32_t in_sample, int32_t from_end)
{
    if (bytes.size < PERF_RECORD_HEADER_BYTES)
        return 0;
    size_t size = (size_t)(bytes.data[6] | bytes.data[7] << 8);
    uint32_t type = half_at(bytes.data);
    if (size > bytes.size || type >= 64)
        return 0;
    if (type == PERF_RECORD_SAMPLE)
        return in_sample >= 0 && (size_t)in_sample + 8 <= size ? word_at(bytes.data + in_sample) : 0;
    return from_end >= 0 && PERF_RECORD_HEADER_BYTES + (size_t)from_end <= size
               ? word_at(bytes.data + size - (size_t)from_end)
               : 0;
}

uint64_t perf_record_time_ns(struct span bytes, const struct perf_sample_layout *layout)
{
    return field_at(bytes, layout->sample_time_at, layout->trailer_time_at);
}

uint64_t perf_record_event_id(struct span bytes, const struct perf_sample_layout *layout)
{
    return field_at(bytes, layout->sample_id_at, layout->trailer_id_at);
}

enum chain_part { PART_BY_ADDRESS, PART_KERNEL, PART_USER, PART_NONE };

static enum chain_part part_of_marker(uint64_t marker, bool *is_user_deferred)
{
    switch ((int64_t)marker) {
    case (int64_t)PERF_CONTEXT_KERNEL:
        return PART_KERNEL;
    case (int64_t)PERF_CONTEXT_USER:
        return PART_USER;
    case PERF_CONTEXT_DEFERRED_WORD:
        *is_user_deferred = true; /* followed by a cookie, not by an address */
        return PART_NONE;
    default:
        return PART_NONE;
    }
}

/* Copies words up to the next marker; returns how many. This loop sees every frame of every sample. */
static size_t copy_run(const uint8_t *words, size_t count, uint64_t *into)
{
    size_t i = 0;
    for (; i < count; i++) {
        uint64_t word = word_at(words + i * 8);
        if (__builtin_expect(word >= (uint64_t)PERF_CONTEXT_MAX, 0))
            break;
        into[i] = word;
    }
    return i;
}

static size_t kernel_words(const uint64_t *words, size_t count)
{
    size_t i = 0;
    while (i < count && words[i] >> 63)
        i++;
    return i;
}

struct perf_callchain perf_callchain_split(struct span words, uint64_t *into, size_t max)
{
    struct perf_callchain chain = { 0 };
    enum chain_part part = PART_BY_ADDRESS;
    size_t count = words.size / 8;
    for (size_t i = 0; i < count && !chain.is_cut;) {
        uint64_t word = word_at(words.data + i * 8);
        if (word >= (uint64_t)PERF_CONTEXT_MAX) {
            part = part_of_marker(word, &chain.is_user_deferred);
            i++;
            continue;
        }
        /* the kernel never writes its own frames behind those of the user */
        if (part == PART_NONE || (part == PART_KERNEL && chain.user_count)) {
            i++;
            continue;
        }
        size_t used = chain.kernel_count + chain.user_count;
        size_t room = max - used;
        size_t run = copy_run(words.data + i * 8, count - i < room ? count - i : room, into + used);
        size_t kernel = part == PART_KERNEL                                ? run
                        : part == PART_BY_ADDRESS && chain.user_count == 0 ? kernel_words(into + used, run)
                                                                           : 0;
        chain.kernel_count += kernel;
        chain.user_count += run - kernel;
        chain.is_cut = run == 0;
        i += run;
    }
    chain.kernel = into;
    chain.user = into + chain.kernel_count;
    return chain;
}

/* The stack is the last of a sample: how many bytes the kernel reserved, those bytes, how many it copied. */
size_t perf_record_cut_stack(struct span record, const struct perf_sample *sample, uint64_t keep,
                             uint8_t *out)
{
    enum { WORD = sizeof(uint64_t), SIZE_AT = offsetof(struct perf_event_header, size) };
    size_t at = sample->user_stack.size ? (size_t)(sample->user_stack.data - record.data) : 0;
    uint64_t asked = sample->user_stack_asked;
    if (!at || keep >= sample->user_stack.size || at + asked + WORD != record.size ||
        record.size > UINT16_MAX)
        return 0;
    keep = (keep + WORD - 1) / WORD * WORD; /* within what was asked for, which is whole words */
    size_t size = at + (size_t)keep + WORD;
    uint16_t record_size = (uint16_t)size;
    memcpy(out, record.data, at + (size_t)keep);
    memcpy(out + SIZE_AT, &record_size, sizeof record_size);
    memcpy(out + at - WORD, &keep, WORD);
    memcpy(out + at + keep, &keep, WORD);
    return size;
}
