#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/event_catalogue.h"
#include "clr/event_layout.h"
#include "clr/event_path.h"
#include "clr/event_schema.h"

enum { TEXT_MAX = 1 << 16, NEWEST = 4, ITEMS = 3 };

static struct span text_of(const char *text)
{
    return span_of(text, strlen(text));
}

/* What a visitor was told: "Name=value;" and brackets. */
static void note_value(void *user, const char *name, const struct event_value *v)
{
    struct buffer *out = user;
    buffer_format(out, "%s=", name);
    event_value_append(out, v);
    buffer_u8(out, ';');
}

static void note_begin(void *user, const char *name, bool array)
{
    buffer_format(user, "%s%c", name, array ? '[' : '{');
}

static void note_end(void *user, bool array)
{
    buffer_u8(user, array ? ']' : '}');
}

static bool visit(const struct event_schema *s, struct span payload, struct buffer *out)
{
    buffer_clear(out);
    const struct event_visitor visitor = { out, note_value, note_begin, note_end };
    return event_schema_visit(s, payload, &visitor);
}

/* The text stays until the next call. */
static const char *visited(const struct event_schema *s, struct span payload, bool expected_ok)
{
    static char text[4096];
    struct buffer out;
    buffer_init(&out, sizeof text);
    assert_int_equal(visit(s, payload, &out), expected_ok);
    buffer_u8(&out, 0);
    memcpy(text, out.data, out.size);
    buffer_done(&out);
    return text;
}

static struct event_schema *runtime_event(uint32_t id, uint32_t version, unsigned pointer_size)
{
    return event_schema_new(&(struct event_description){ .provider = "Microsoft-Windows-DotNETRuntime",
                                                         .event_id = id,
                                                         .version = version,
                                                         .name = "",
                                                         .pointer_size = pointer_size });
}

/* ---- every event of the catalogue, there and back ---- */

struct encoder {
    const struct event_fields *fields;
    struct buffer payload, told;
    uint64_t next; /* values are all different */
};

static void encode_field(struct encoder *e, const struct event_field *f, const char *name);

static void encode_number(struct encoder *e, const struct event_field *f, const char *name)
{
    uint64_t value = f->keeps ? ITEMS : e->next++;
    struct event_value v = { .size = f->size, .u = value, .i = (int64_t)value, .f = 0, .names = f->names };
    v.kind = f->type == FIELD_BOOL      ? EVENT_VALUE_BOOL
             : f->type == FIELD_INT     ? EVENT_VALUE_INT
             : f->type == FIELD_POINTER ? EVENT_VALUE_POINTER
                                        : EVENT_VALUE_UINT;
    if (f->size == 1)
        v.u = value %= 100, v.i = (int64_t)value;
    if (f->type == FIELD_BOOL)
        v.u = value %= 2;
    for (unsigned i = 0; i < f->size; i++)
        buffer_u8(&e->payload, i < 8 ? (uint8_t)(value >> 8 * i) : 0);
    note_value(&e->told, name, &v);
}

static void encode_text(struct encoder *e, const struct event_field *f, const char *name)
{
    char text[32];
    snprintf(text, sizeof text, "text %u", (unsigned)e->next++);
    if (f->type == FIELD_TEXT16) {
        utf16_append(&e->payload, text);
        buffer_u16le(&e->payload, 0);
    } else {
        buffer_append(&e->payload, text, strlen(text) + 1);
    }
    note_value(&e->told, name, &(struct event_value){ .kind = EVENT_VALUE_TEXT8, .bytes = text_of(text) });
}

static void encode_float(struct encoder *e, const char *name)
{
    double value = (double)e->next++ + 0.25;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    buffer_u64le(&e->payload, bits);
    note_value(&e->told, name, &(struct event_value){ .kind = EVENT_VALUE_FLOAT, .size = 8, .f = value });
}

static void encode_bytes(struct encoder *e, const struct event_field *f, const char *name)
{
    static const uint8_t zeros[16];
    size_t size = f->type == FIELD_BYTES ? ITEMS : f->size;
    buffer_append(&e->payload, zeros, size);
    enum event_value_kind kind = f->type == FIELD_GUID ? EVENT_VALUE_GUID : EVENT_VALUE_BYTES;
    if (f->type != FIELD_PAD)
        note_value(&e->told, name, &(struct event_value){ .kind = kind, .bytes = span_of(zeros, size) });
}

static void encode_list(struct encoder *e, const struct event_field *f, const char *name)
{
    bool array = f->type == FIELD_ARRAY;
    note_begin(&e->told, name, array);
    for (uint32_t i = 0; i < (array ? ITEMS : f->members); i++) {
        const struct event_field *row = &e->fields->rows[f->first + (array ? 0 : i)];
        encode_field(e, row, row->name);
    }
    note_end(&e->told, array);
}

static void encode_field(struct encoder *e, const struct event_field *f, const char *name)
{
    switch ((enum event_field_type)f->type) {
    case FIELD_ARRAY:
    case FIELD_OBJECT:
        encode_list(e, f, name);
        break;
    case FIELD_TEXT16:
    case FIELD_TEXT8:
        encode_text(e, f, name);
        break;
    case FIELD_FLOAT:
        encode_float(e, name);
        break;
    case FIELD_GUID:
    case FIELD_BYTES:
    case FIELD_PAD:
        encode_bytes(e, f, name);
        break;
    case FIELD_TIER: /* of flags that do not say "jitted" */
        buffer_format(&e->told, "%s=ReadyToRun;", name);
        break;
    default:
        encode_number(e, f, name);
        break;
    }
}

/* Each field alone is what it was among all. */
struct alone {
    const struct event_schema *s;
    struct span payload;
    unsigned depth, seen;
};

static bool read_alone(struct alone *all, const char *name, struct event_value *out)
{
    all->seen++;
    int index = event_schema_field(all->s, name);
    assert_int_not_equal(index, -1);
    return event_schema_read(all->s, all->payload, index, out);
}

static void alone_value(void *user, const char *name, const struct event_value *v)
{
    struct alone *all = user;
    struct event_value one = { 0 };
    struct buffer among, told;
    if (all->depth)
        return;
    buffer_init(&among, TEXT_MAX);
    buffer_init(&told, TEXT_MAX);
    assert_true(read_alone(all, name, &one));
    note_value(&among, name, v);
    note_value(&told, name, &one);
    assert_true(span_equals(buffer_span(&among), buffer_span(&told)));
    buffer_done(&among);
    buffer_done(&told);
}

static void alone_begin(void *user, const char *name, bool array)
{
    struct alone *all = user;
    struct event_value one = { 0 };
    if (all->depth++)
        return;
    assert_true(read_alone(all, name, &one));
    assert_int_equal(one.kind, array ? EVENT_VALUE_ARRAY : EVENT_VALUE_OBJECT);
}

static void alone_end(void *user, bool array)
{
    struct alone *all = user;
    (void)array;
    all->depth--;
}

static void check_reads(const struct event_schema *s, struct span payload)
{
    struct alone all = { .s = s, .payload = payload };
    const struct event_visitor visitor = { &all, alone_value, alone_begin, alone_end };
    struct event_value v = { 0 };
    assert_true(event_schema_visit(s, payload, &visitor));
    assert_true(all.seen <= event_schema_fields(s));
    for (uint32_t i = 0; i < event_schema_fields(s); i++)
        assert_true(event_schema_read(s, payload, (int)i, &v));
}

/* Cut anywhere it tells what was before, and says that there should be more. */
static void check_cuts(const struct event_schema *s, struct span payload, struct span whole)
{
    struct buffer out;
    buffer_init(&out, TEXT_MAX);
    for (size_t size = 0; size < payload.size; size++) {
        AUTO_FREE uint8_t *copy = mem_alloc(size ? size : 1, 1);
        for (size_t i = 0; i < size; i++)
            copy[i] = payload.data[i];
        assert_false(visit(s, span_of(copy, size), &out));
        while (out.size && (out.data[out.size - 1] == ']' || out.data[out.size - 1] == '}'))
            out.size--; /* what was open is closed */
        assert_true(span_equals(buffer_span(&out), span_part(whole, 0, out.size)));
        for (uint32_t i = 0; i < event_schema_fields(s); i++)
            event_schema_read(s, span_of(copy, size), (int)i, &(struct event_value){ 0 });
    }
    buffer_done(&out);
}

static void check_event(const char *provider, const struct catalogue_event *event, uint32_t version,
                        unsigned pointer_size)
{
    struct event_fields fields;
    struct encoder e = { .fields = &fields, .next = 1000 };
    struct buffer out;
    event_fields_init(&fields);
    buffer_init(&e.payload, TEXT_MAX);
    buffer_init(&e.told, TEXT_MAX);
    buffer_init(&out, TEXT_MAX);
    event_layout_read(event->layout, version, pointer_size, &fields);
    for (uint32_t i = 0; i < fields.root_count; i++)
        encode_field(&e, &fields.rows[fields.root + i], fields.rows[fields.root + i].name);

    struct event_schema *s = event_schema_new(&(struct event_description){ .provider = provider,
                                                                           .event_id = event->id,
                                                                           .version = version,
                                                                           .name = "",
                                                                           .pointer_size = pointer_size });
    assert_string_equal(event_schema_name(s), event->name);
    struct span payload = buffer_span(&e.payload);
    assert_true(visit(s, payload, &out));
    assert_true(span_equals(buffer_span(&out), buffer_span(&e.told)));
    check_reads(s, payload);
    check_cuts(s, payload, buffer_span(&e.told));
    buffer_u32le(&e.payload, 0xffffffff); /* what a later version appends */
    assert_true(visit(s, buffer_span(&e.payload), &out));
    assert_true(span_equals(buffer_span(&out), buffer_span(&e.told)));
    event_schema_free(s);
    buffer_done(&out);
    buffer_done(&e.payload);
    buffer_done(&e.told);
    event_fields_done(&fields);
}

static void test_catalogue_round_trips(void **state)
{
    (void)state;
    size_t events = 0;
    for (const struct catalogue_provider *p = event_catalogue; p->name; p++)
        for (size_t i = 0; i < p->count; i++, events++) {
            assert_true(i == 0 || p->events[i - 1].id < p->events[i].id);
            for (uint32_t version = 0; version <= NEWEST; version++)
                for (unsigned pointer_size = 4; pointer_size <= 8; pointer_size += 4)
                    check_event(p->name, &p->events[i], version, pointer_size);
        }
    assert_true(events > 200);
}

/* Every "=name" of a layout is an enumeration: a misspelt one would be silently without names. */
static void test_enumerations_exist(void **state)
{
    (void)state;
    for (const struct catalogue_provider *p = event_catalogue; p->name; p++)
        for (size_t i = 0; i < p->count; i++)
            for (const char *at = strchr(p->events[i].layout, '='); at; at = strchr(at, '=')) {
                size_t size = strcspn(++at, ",}");
                assert_non_null(event_enum_find(span_of(at, size)));
            }
}

/* ---- payloads as runtimes sent them ---- */

static struct event_value read_field(const struct event_schema *s, struct span payload, const char *name)
{
    struct event_value v = { 0 };
    assert_true(event_schema_read(s, payload, event_schema_field(s, name), &v));
    return v;
}

static void test_gc_start(void **state)
{
    (void)state;
    static const uint8_t payload[] = { 7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1,
                                       0, 0, 0, 3, 0, 9, 0, 0, 0, 0, 0, 0, 0 };
    struct event_schema *s = runtime_event(1, 2, 8);
    struct span p = span_of(payload, sizeof payload);
    assert_string_equal(event_schema_name(s), "GC/Start");
    assert_string_equal(visited(s, p, true),
                        "Count=7;Depth=2;Reason=Induced;Type=BackgroundGC;ClrInstanceID=3;"
                        "ClientSequenceNumber=9;");
    assert_int_equal(event_schema_u64(s, p, event_schema_field(s, "Depth"), 99), 2);
    assert_int_equal(event_schema_u64(s, p, event_schema_field(s, "NoSuchField"), 99), 99);
    assert_int_equal(event_schema_u64(s, span_of(payload, 7), event_schema_field(s, "Depth"), 99), 99);
    event_schema_free(s);
    s = runtime_event(1, 0, 8);
    assert_string_equal(visited(s, span_of(payload, 8), true), "Count=7;Reason=LowMemory;");
    event_schema_free(s);
}

/* Both are the runtime's C structs, with the bytes a compiler leaves between fields. */
static void test_padded_structs(void **state)
{
    (void)state;
    static const uint8_t compact[] = { 0, 0, 1, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0,
                                       0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0 };
    static const uint8_t buckets[] = { 0, 0, 1, 0, 0x10, 0, 0, 0,    0, 0, 0, 0, 1, 0, 0,
                                       0, 0, 0, 4, 0,    0, 0, 0x68, 1, 0, 0, 0, 0, 0, 0 };
    struct event_schema *s = runtime_event(208, 0, 8);
    assert_string_equal(visited(s, span_of(compact, sizeof compact), true),
                        "ClrInstanceID=0;Count=1;Values[{TimePlan=3;TimeCompact=2;TimeRelocate=2;TotalRefs=5;"
                        "ZeroRefs=6;}]");
    event_schema_free(s);
    s = runtime_event(209, 0, 8);
    assert_string_equal(visited(s, span_of(buckets, sizeof buckets), true),
                        "ClrInstanceID=0;BucketKind=PlugsInCondemned;TotalSize=16;Count=1;"
                        "Values[{Index=0;Count=4;Size=360;}]");
    event_schema_free(s);
}

/* What the GC tells of its own kind: some of it is known by its name. */
static void test_dynamic_event(void **state)
{
    (void)state;
    struct event_schema *s = runtime_event(39, 0, 8);
    for (unsigned known = 0; known < 2; known++) {
        struct buffer p;
        buffer_init(&p, TEXT_MAX);
        utf16_append(&p, known ? "CommittedUsage" : "SizeAdaptation");
        buffer_u16le(&p, 0);
        buffer_u32le(&p, 42);
        buffer_u16le(&p, 1);
        for (unsigned i = 2; i < 7; i++)
            buffer_u64le(&p, i);
        buffer_u16le(&p, 5);
        assert_string_equal(visited(s, buffer_span(&p), true),
                            known
                                ? "Name=CommittedUsage;DataSize=42;Data{Version=1;TotalCommittedInUse=2;"
                                  "TotalCommittedInGlobalDecommit=3;TotalCommittedInFree=4;"
                                  "TotalCommittedInGlobalFree=5;TotalBookkeepingCommitted=6;}ClrInstanceID=5;"
                                : "Name=SizeAdaptation;DataSize=42;Data={42 bytes};ClrInstanceID=5;");
        check_reads(s, buffer_span(&p));
        p.data[30] = 41; /* not as long as it should be */
        assert_string_equal(visited(s, buffer_span(&p), true),
                            known ? "Name=CommittedUsage;DataSize=41;Data={41 bytes};ClrInstanceID=1280;"
                                  : "Name=SizeAdaptation;DataSize=41;Data={41 bytes};ClrInstanceID=1280;");
        buffer_done(&p);
    }
    event_schema_free(s);
}

static void test_tier(void **state)
{
    (void)state;
    struct buffer p;
    buffer_init(&p, TEXT_MAX);
    buffer_u64le(&p, 0x7f00);
    buffer_u64le(&p, 0x7f10);
    buffer_u64le(&p, 0x7f20);
    buffer_u32le(&p, 64);
    buffer_u32le(&p, 0x06000001);
    buffer_u32le(&p, 0x8 | 4 << 7);
    for (const char *text = "N\0M\0S\0"; *text; text += 2) {
        utf16_append(&p, text);
        buffer_u16le(&p, 0);
    }
    buffer_u16le(&p, 0);
    struct event_schema *s = runtime_event(143, 1, 8);
    assert_string_equal(
        visited(s, buffer_span(&p), true),
        "MethodID=0x7f00;ModuleID=0x7f10;MethodStartAddress=0x7f20;MethodSize=64;"
        "MethodToken=0x6000001;MethodFlags=Jitted;MethodNamespace=N;MethodName=M;MethodSignature=S;"
        "ClrInstanceID=0;OptimizationTier=OptimizedTier1;");
    assert_int_equal(read_field(s, buffer_span(&p), "OptimizationTier").u, 4);
    assert_true(span_equals(read_field(s, buffer_span(&p), "MethodName").bytes, span_of("M", 2)));
    event_schema_free(s);
    buffer_done(&p);
}

static void test_unknown_events(void **state)
{
    (void)state;
    struct event_schema *s = runtime_event(4711, 0, 8);
    assert_string_equal(event_schema_name(s), "EventID(4711)");
    assert_int_equal(event_schema_fields(s), 0);
    assert_string_equal(visited(s, span_of("abc", 3), true), "");
    assert_false(event_schema_read(s, span_of("abc", 3), 0, &(struct event_value){ 0 }));
    event_schema_free(s);
}

static void test_enum_texts(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint64_t value;
        const char *text;
    } cases[] = {
        { "gc_reason", 17, "InducedAggressive" },
        { "gc_reason", 99, "99" },
        { "method_flags", 0, "None" },
        { "method_flags", 0xa, "Generic, Jitted" },
        { "method_flags", 0x10000208, "Jitted" },
        { "module_flags", 0x1000, "4096" },
        { "tiering", 15, "QuickJit, QuickJitForLoops, TieredPGO, ReadyToRun" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer out;
        buffer_init(&out, TEXT_MAX);
        const struct event_enum *names = event_enum_find(text_of(cases[i].id));
        assert_non_null(names);
        event_value_append(&out,
                           &(struct event_value){
                               .kind = EVENT_VALUE_UINT, .size = 4, .u = cases[i].value, .names = names });
        assert_true(span_equals(buffer_span(&out), text_of(cases[i].text)));
        buffer_done(&out);
    }
}

static void test_value_texts(void **state)
{
    (void)state;
    static const uint8_t guid[] = { 0x33, 0x22, 0x11, 0,    0x55, 0x44, 0x77, 0x66,
                                    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
    const struct {
        struct event_value v;
        const char *text;
    } cases[] = {
        { { .kind = EVENT_VALUE_FLOAT, .size = 8, .f = 0.1 }, "0.1" },
        { { .kind = EVENT_VALUE_FLOAT, .size = 4, .f = (double)1.1f }, "1.1" },
        { { .kind = EVENT_VALUE_FLOAT, .size = 8, .f = (double)NAN }, "NaN" },
        { { .kind = EVENT_VALUE_FLOAT, .size = 4, .f = -(double)NAN }, "NaN" },
        { { .kind = EVENT_VALUE_FLOAT, .size = 8, .f = (double)INFINITY }, "Infinity" },
        { { .kind = EVENT_VALUE_FLOAT, .size = 4, .f = -(double)INFINITY }, "-Infinity" },
        { { .kind = EVENT_VALUE_INT, .i = -5 }, "-5" },
        { { .kind = EVENT_VALUE_TIME, .u = 133500000000000001 }, "2024-01-17T21:20:00.0000001Z" },
        { { .kind = EVENT_VALUE_TIME, .u = 116444735999999999 }, "1969-12-31T23:59:59.9999999Z" },
        { { .kind = EVENT_VALUE_TIME, .u = 0 }, "1601-01-01T00:00:00.0000000Z" },
        { { .kind = EVENT_VALUE_BYTES, .bytes = { guid, 3 } }, "{3 bytes}" },
        { { .kind = EVENT_VALUE_GUID, .bytes = { guid, 16 } }, "00112233-4455-6677-8899-aabbccddeeff" },
        { { .kind = EVENT_VALUE_TEXT16, .bytes = { (const uint8_t *)"\xe9\0", 2 } }, "\xc3\xa9" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer out;
        buffer_init(&out, TEXT_MAX);
        event_value_append(&out, &cases[i].v);
        buffer_u8(&out, 0);
        assert_string_equal(out.data, cases[i].text);
        buffer_done(&out);
    }
}

/* ---- events that describe themselves ---- */

static void put_name(struct buffer *out, const char *name)
{
    utf16_append(out, name);
    buffer_u16le(out, 0);
}

/* A field of nettrace 3 to 5's first list: the type is in front. */
static void put_v1(struct buffer *out, uint32_t type, const char *name)
{
    buffer_u32le(out, type);
    put_name(out, name);
}

/* One of the "V2 params": its size, its name, and `type` behind. */
static void put_v2(struct buffer *out, const char *name, struct span type)
{
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    put_name(&text, name);
    buffer_u32le(out, (uint32_t)(4 + text.size + type.size));
    buffer_append(out, text.data, text.size);
    buffer_append(out, type.data, type.size);
    buffer_done(&text);
}

static struct event_schema *described(const char *name, uint8_t opcode, const struct buffer *fields,
                                      const struct buffer *params, bool v6)
{
    const struct buffer none = { 0 };
    return event_schema_new(&(struct event_description){ .provider = "My-Source",
                                                         .event_id = 7,
                                                         .name = name,
                                                         .opcode = opcode,
                                                         .fields = buffer_span(fields),
                                                         .params = buffer_span(params ? params : &none),
                                                         .pointer_size = 8,
                                                         .v6 = v6 });
}

static void test_described_by_fields(void **state)
{
    (void)state;
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 5);
    put_v1(&fields, 9, "id");
    put_v1(&fields, 3, "ok");
    put_v1(&fields, 18, "text");
    put_v1(&fields, 13, "ratio");
    put_v1(&fields, 5, "small");
    buffer_u32le(&p, (uint32_t)-2);
    buffer_u32le(&p, 1); /* a Boolean of four bytes */
    put_name(&p, "hi");
    buffer_u32le(&p, 0x3fc00000);
    buffer_u8(&p, 0xff);
    struct event_schema *s = described("RequestStart", 1, &fields, NULL, false);
    assert_string_equal(event_schema_name(s), "Request/Start");
    assert_string_equal(visited(s, buffer_span(&p), true), "id=-2;ok=true;text=hi;ratio=1.5;small=-1;");
    assert_int_equal((int64_t)event_schema_u64(s, buffer_span(&p), event_schema_field(s, "small"), 0), -1);
    check_reads(s, buffer_span(&p));
    event_schema_free(s);

    fields.size -= 3; /* its last name is cut short: the fields before are known */
    s = described("RequestStart", 1, &fields, NULL, false);
    assert_string_equal(visited(s, buffer_span(&p), true), "id=-2;ok=true;text=hi;ratio=1.5;");
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/*
 * A method (byte small, int n, string text, short last) described; what it passes on can be wider: an
 * enumeration of bytes is written as an int (WriteEvent's params), and all integers as longs beside one.
 */
static void test_wider_than_described(void **state)
{
    (void)state;
    static const struct {
        unsigned sizes[3]; /* of small, n, last in the payload */
        int64_t values[3];
        unsigned cut; /* bytes missing at the end */
        const char *told;
        bool ok;
    } cases[] = {
        { { 1, 4, 2 }, { 200, -5, -6 }, 0, "small=200;n=-5;text=hi;last=-6;", true },
        { { 4, 4, 2 }, { 200, -5, -6 }, 0, "small=200;n=-5;text=hi;last=-6;", true },
        { { 1, 4, 4 }, { 200, -5, -6 }, 0, "small=200;n=-5;text=hi;last=-6;", true },
        { { 4, 4, 4 }, { 200, -5, -6 }, 0, "small=200;n=-5;text=hi;last=-6;", true },
        { { 8, 8, 8 }, { 200, -5, 6 }, 0, "small=200;n=-5;text=hi;last=6;", true },
        { { 1, 8, 2 }, { 200, 1 << 30, 6 }, 0, "small=200;n=1073741824;text=hi;last=6;", true },
        /* its type could not hold it: as described, whatever that says */
        { { 4, 4, 2 }, { 256, 0, 1 }, 0, "small=0;n=1;text=;last=26624;", true },
        { { 1, 4, 2 }, { 7, 8, 9 }, 1, "small=7;n=8;text=hi;", false },
    };
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 4);
    put_v1(&fields, 6, "small");
    put_v1(&fields, 9, "n");
    put_v1(&fields, 18, "text");
    put_v1(&fields, 7, "last");
    struct event_schema *s = described("Mixed", 0, &fields, NULL, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer_clear(&p);
        for (size_t k = 0; k < 3; k++) {
            if (k == 2)
                put_name(&p, "hi");
            for (unsigned byte = 0; byte < cases[i].sizes[k]; byte++)
                buffer_u8(&p, (uint8_t)((uint64_t)cases[i].values[k] >> 8 * byte));
        }
        p.size -= cases[i].cut;
        assert_string_equal(visited(s, buffer_span(&p), cases[i].ok), cases[i].told);
        if (cases[i].ok)
            check_reads(s, buffer_span(&p));
    }
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/*
 * Many arguments, of which one is an enumeration of bytes: others can be made to fit, too, where zeros and
 * the text's length make up for it. As few as explain it are wide.
 */
static void test_few_are_wider(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t type;
        unsigned size; /* in the payload */
        int64_t value;
    } rows[] = { { "u8", 6, 1, 250 },   { "i8", 5, 1, 0 },    { "i16", 7, 2, 0 }, { "u16", 8, 2, 65535 },
                 { "i32", 9, 4, 0 },    { "c", 4, 2, 'a' },   { "s", 18, 0, 0 },  { "fl", 9, 4, 0 },
                 { "kind", 6, 4, 200 }, { "last", 11, 8, -5 } };
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_v1(&fields, rows[i].type, rows[i].name);
        if (rows[i].type == 18)
            put_name(&p, "s0");
        for (unsigned byte = 0; byte < rows[i].size; byte++)
            buffer_u8(&p, (uint8_t)((uint64_t)rows[i].value >> 8 * byte));
    }
    struct event_schema *s = described("All", 0, &fields, NULL, false);
    assert_string_equal(visited(s, buffer_span(&p), true),
                        "u8=250;i8=0;i16=0;u16=65535;i32=0;c=a;s=s0;fl=0;kind=200;last=-5;");
    check_reads(s, buffer_span(&p));
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/*
 * WriteEvent(n, ok, text, last) of a source made with EtwSelfDescribingEventFormat: its description is that
 * of any other source, but a Boolean takes one byte.
 */
static void test_narrow_bool(void **state)
{
    (void)state;
    static const struct {
        unsigned size; /* of the Boolean in the payload */
        const char *text, *told;
    } cases[] = {
        { 4, "p", "n=7;ok=true;text=p;last=9;" },
        { 1, "p", "n=7;ok=true;text=p;last=9;" },
        { 1, "", "n=7;ok=true;text=;last=9;" },
        { 1, "long enough to hide what is missing",
          "n=7;ok=true;text=long enough to hide what is missing;last=9;" },
    };
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 4);
    put_v1(&fields, 9, "n");
    put_v1(&fields, 3, "ok");
    put_v1(&fields, 18, "text");
    put_v1(&fields, 9, "last");
    struct event_schema *s = described("Plain", 0, &fields, NULL, false);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buffer_clear(&p);
        buffer_u32le(&p, 7);
        buffer_append(&p, "\1\0\0", cases[i].size);
        put_name(&p, cases[i].text);
        buffer_u32le(&p, 9);
        assert_string_equal(visited(s, buffer_span(&p), true), cases[i].told);
        check_reads(s, buffer_span(&p));
    }
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/* What a path leads to, as text until the next call; NULL: to nothing. */
static const char *at_path(const struct event_schema *s, struct span payload, const char *path)
{
    static char text[256];
    struct event_value v;
    struct buffer out;
    if (!event_path_read(s, payload, path, &v))
        return NULL;
    assert_true(event_schema_has_path(s, path));
    buffer_init(&out, sizeof text);
    event_value_append(&out, &v);
    buffer_u8(&out, 0);
    memcpy(text, out.data, out.size);
    buffer_done(&out);
    return text;
}

/* As EventSource.Write() sends: TraceEvent 4.0 reads four bytes for the Boolean, and all behind it wrong. */
static void test_self_describing(void **state)
{
    (void)state;
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 1);
    buffer_u32le(&fields, 1); /* an object of 4, whose name is behind them */
    buffer_u32le(&fields, 4);
    put_v1(&fields, 3, "ok");
    put_v1(&fields, 15, "price"); /* a decimal: a double */
    buffer_u32le(&fields, 1);     /* an object in it, of one */
    buffer_u32le(&fields, 1);
    put_v1(&fields, 4, "letter");
    put_name(&fields, "Inner");
    put_v1(&fields, 10, "last");
    put_name(&fields, "");
    buffer_u8(&p, 1);
    buffer_append(&p, "\0\0\0\0\0\0\xf4\x3f", 8);
    buffer_append(&p, "A\0", 2);
    buffer_u32le(&p, 77);
    struct event_schema *s = described("Order", 0, &fields, NULL, false);
    assert_string_equal(visited(s, buffer_span(&p), true), "ok=true;price=1.25;Inner{letter=A;}last=77;");
    assert_int_equal(read_field(s, buffer_span(&p), "Inner").kind, EVENT_VALUE_OBJECT);
    assert_string_equal(at_path(s, buffer_span(&p), "Inner.letter"), "A");
    assert_string_equal(at_path(s, buffer_span(&p), "last"), "77");
    static const char *const nowhere[] = { "Inner.last", "Inner.lette", "Inner.letter.x",
                                           "Inner.",     "letter",      "last.x" };
    for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
        assert_null(at_path(s, buffer_span(&p), nowhere[i]));
        assert_false(event_schema_has_path(s, nowhere[i]));
    }
    assert_null(at_path(s, span_of(p.data, 8), "Inner.letter")); /* cut off before it */
    check_reads(s, buffer_span(&p));
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/* WriteEvent(inner, ok, last) of such a source, where `inner` is a class of two: it has no name. */
static void test_object_beside_others(void **state)
{
    (void)state;
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 3);
    buffer_u32le(&fields, 1);
    buffer_u32le(&fields, 2);
    put_v1(&fields, 3, "open");
    put_v1(&fields, 9, "n");
    put_name(&fields, "");
    put_v1(&fields, 3, "ok");
    put_v1(&fields, 9, "last");
    buffer_u8(&p, 1);
    buffer_u32le(&p, 8);
    buffer_u8(&p, 0);
    buffer_u32le(&p, 9);
    struct event_schema *s = described("Two", 0, &fields, NULL, false);
    assert_string_equal(visited(s, buffer_span(&p), true), "{open=true;n=8;}ok=false;last=9;");
    check_reads(s, buffer_span(&p));
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/* As DiagnosticSource sends: only the "V2 params" say what it is, an array of pairs. */
static void test_arrays(void **state)
{
    (void)state;
    struct buffer fields, params, item, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&params, TEXT_MAX);
    buffer_init(&item, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u32le(&fields, 0);
    buffer_u32le(&item, 19); /* array of */
    buffer_u32le(&item, 1);  /* objects of */
    buffer_u32le(&item, 2);
    put_v2(&item, "Key", span_of("\x12\0\0\0", 4));
    put_v2(&item, "Value", span_of("\x12\0\0\0", 4));
    buffer_u32le(&params, 3);
    put_v2(&params, "SourceName", span_of("\x12\0\0\0", 4));
    put_v2(&params, "Arguments", buffer_span(&item));
    put_v2(&params, "Last", span_of("\x06\0\0\0", 4));
    put_name(&p, "src");
    buffer_u16le(&p, 2);
    put_name(&p, "a");
    put_name(&p, "1");
    put_name(&p, "b");
    put_name(&p, "2");
    buffer_u8(&p, 9);
    struct event_schema *s = described("Activity1Stop", 2, &fields, &params, false);
    static const char all[] = "SourceName=src;Arguments[{Key=a;Value=1;}{Key=b;Value=2;}]Last=9;";
    assert_string_equal(event_schema_name(s), "Activity1/Stop");
    assert_string_equal(visited(s, buffer_span(&p), true), all);
    assert_int_equal(read_field(s, buffer_span(&p), "Arguments").u, 2);
    assert_string_equal(at_path(s, buffer_span(&p), "Arguments.a"), "1");
    assert_string_equal(at_path(s, buffer_span(&p), "Arguments.b"), "2");
    assert_null(at_path(s, buffer_span(&p), "Arguments.Value"));
    assert_true(event_schema_has_path(s, "Arguments.any.key"));
    assert_false(event_schema_has_path(s, "SourceName.a"));
    check_reads(s, buffer_span(&p));
    check_cuts(s, buffer_span(&p), text_of(all));
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&params);
    buffer_done(&item);
    buffer_done(&p);
}

/* A field of nettrace 6: its size without itself, its name in UTF-8, `type`. */
static void put_v6(struct buffer *out, const char *name, struct span type)
{
    buffer_u16le(out, (uint16_t)(1 + strlen(name) + type.size));
    buffer_u8(out, (uint8_t)strlen(name));
    buffer_string(out, name);
    buffer_append(out, type.data, type.size);
}

static void test_version_6(void **state)
{
    (void)state;
    struct buffer fields, p;
    buffer_init(&fields, TEXT_MAX);
    buffer_init(&p, TEXT_MAX);
    buffer_u16le(&fields, 6);
    put_v6(&fields, "small", span_of("\x14", 1));
    put_v6(&fields, "big", span_of("\x15", 1));
    put_v6(&fields, "yes", span_of("\x1a", 1));
    put_v6(&fields, "text", span_of("\x18\x17", 2));       /* at a place counted from this field's end */
    put_v6(&fields, "pair", span_of("\x16\x06\x02\0", 4)); /* two bytes */
    put_v6(&fields, "wide", span_of("\x19\x04", 2));       /* at a place counted from the start: UTF-16 */
    buffer_append(&p, "\x03\x80\x01\x01", 4);              /* -2, 128, true */
    buffer_u32le(&p, 2u << 16 | 6);                        /* from 8: at 14 */
    buffer_append(&p, "\x0a\x0b", 2);
    buffer_u32le(&p, 4u << 16 | 16);
    buffer_append(&p, "okA\0B\0", 6);
    struct event_schema *s = described("Tick", 0, &fields, NULL, true);
    assert_string_equal(visited(s, buffer_span(&p), true),
                        "small=-2;big=128;yes=true;text=ok;pair[=10;=11;]wide=AB;");
    check_reads(s, buffer_span(&p));
    assert_string_equal(visited(s, span_of(p.data, p.size - 1), false),
                        "small=-2;big=128;yes=true;text=ok;pair[=10;=11;]");
    event_schema_free(s);
    buffer_done(&fields);
    buffer_done(&p);
}

/* Descriptions that lie: about counts, sizes, depth; and items without bytes, of which there may be any
 * number. */
static void test_bad_descriptions(void **state)
{
    (void)state;
    struct buffer deep, many, empty;
    buffer_init(&deep, TEXT_MAX);
    buffer_init(&many, TEXT_MAX);
    buffer_init(&empty, TEXT_MAX);
    buffer_u32le(&deep, 1);
    for (unsigned i = 0; i < 1000; i++) {
        buffer_u32le(&deep, 1);
        buffer_u32le(&deep, 1);
    }
    struct event_schema *s = described("Deep", 0, &deep, NULL, false);
    assert_int_equal(event_schema_fields(s), 0);
    event_schema_free(s);
    buffer_u32le(&many, UINT32_MAX);
    put_v1(&many, 6, "only");
    s = described("Many", 0, &many, NULL, false);
    assert_string_equal(visited(s, span_of("\x05", 1), true), "only=5;");
    event_schema_free(s);
    buffer_u16le(&empty, 1);
    put_v6(&empty, "n",
           span_of("\x16\x16\x01\0\0\xff\xff\xff\xff", 9)); /* 65535 x 65535 objects of nothing */
    s = described("Empty", 0, &empty, NULL, true);
    assert_string_equal(visited(s, span_of("", 0), true), "n[[{}]]");
    event_schema_free(s);
    buffer_done(&deep);
    buffer_done(&many);
    buffer_done(&empty);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t opcode;
        const char *shown;
    } cases[] = {
        { "RequestStart", 1, "Request/Start" },
        { "RequestStart", 0, "Request/Start" },
        { "RequestStop", 2, "Request/Stop" },
        { "Request", 1, "Request/Start" },
        { "Start", 0, "Start" },
        { "EventCounters", 0, "EventCounters" },
        { "TaskWaitBegin", 9, "TaskWaitBegin/Transfer" },
        { "Received", 240, "Received/240" },
    };
    const struct buffer none = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct event_schema *s = described(cases[i].name, cases[i].opcode, &none, NULL, false);
        assert_string_equal(event_schema_name(s), cases[i].shown);
        event_schema_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalogue_round_trips),
        cmocka_unit_test(test_enumerations_exist),
        cmocka_unit_test(test_gc_start),
        cmocka_unit_test(test_padded_structs),
        cmocka_unit_test(test_tier),
        cmocka_unit_test(test_dynamic_event),
        cmocka_unit_test(test_unknown_events),
        cmocka_unit_test(test_described_by_fields),
        cmocka_unit_test(test_wider_than_described),
        cmocka_unit_test(test_few_are_wider),
        cmocka_unit_test(test_narrow_bool),
        cmocka_unit_test(test_self_describing),
        cmocka_unit_test(test_object_beside_others),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_version_6),
        cmocka_unit_test(test_bad_descriptions),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_enum_texts),
        cmocka_unit_test(test_value_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
