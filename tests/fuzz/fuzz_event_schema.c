/*
 * An event's description and its payload: u8 flags, u8 version, u16 id, u16 bytes of fields, u16 bytes of
 * params, then these, then the payload.
 */
#include <stdint.h>
#include <stdlib.h>

#include "clr/event_catalogue.h"
#include "clr/event_schema.h"

enum { FLAG_POINTERS_4 = 1, FLAG_V6 = 2, FLAG_DESCRIBED = 4, PROVIDER_SHIFT = 4, TEXT_MAX = 1 << 20 };

static void touch_value(void *user, const char *name, const struct event_value *v)
{
    uint64_t *sum = user;
    *sum += (uint8_t)name[0] + v->u;
    for (size_t i = 0; i < v->bytes.size; i++)
        *sum += v->bytes.data[i];
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    event_value_append(&text, v);
    *sum += text.size;
    buffer_done(&text);
}

static void touch_begin(void *user, const char *name, bool array)
{
    uint64_t *sum = user;
    *sum += (uint8_t)name[0] + array;
}

static void touch_all(const struct event_schema *s, struct span payload)
{
    uint64_t sum = 0;
    const struct event_visitor visitor = { .user = &sum, .value = touch_value, .begin = touch_begin };
    bool whole = event_schema_visit(s, payload, &visitor);
    for (uint32_t i = 0; i < event_schema_fields(s); i++) {
        struct event_value v = { 0 };
        if (!event_schema_read(s, payload, (int)i, &v) && whole)
            abort(); /* what is there among all is there alone */
    }
}

static const char *provider_of(unsigned number)
{
    const struct catalogue_provider *p = event_catalogue;
    for (; number && p[1].name; number--)
        p++;
    return p->name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cursor c = cursor_over(span_of(data, size));
    uint8_t flags = cursor_u8(&c), version = cursor_u8(&c);
    struct event_description d = { .version = version, .event_id = cursor_u16le(&c) };
    uint16_t fields = cursor_u16le(&c), params = cursor_u16le(&c);
    d.fields = cursor_bytes(&c, fields);
    d.params = cursor_bytes(&c, params);
    d.provider = flags & FLAG_DESCRIBED ? "My-Source" : provider_of(flags >> PROVIDER_SHIFT);
    d.name = flags & FLAG_DESCRIBED ? "SomethingStart" : "";
    d.pointer_size = flags & FLAG_POINTERS_4 ? 4 : 8;
    d.v6 = flags & FLAG_V6;
    if (!cursor_ok(&c))
        return 0;
    struct event_schema *s = event_schema_new(&d);
    touch_all(s, cursor_bytes(&c, cursor_left(&c)));
    event_schema_free(s);
    return 0;
}
