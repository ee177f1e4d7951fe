#include "clr/contract_descriptor.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"

#define DESCRIPTOR_MAGIC UINT64_C(0x0043414443434e44) /* "DNCCDAC\0" */

enum {
    JSON_BYTES_MAX = 256 << 10,
    POINTERS_MAX = 1024,
    HEADER_BYTES = 40,
};

struct contract_descriptor {
    json_t *json;
    uint64_t *pointers;
    uint32_t pointer_count;
};

static bool load(struct memory_pages *pages, uint64_t addr, struct contract_descriptor *d)
{
    uint8_t header[HEADER_BYTES];
    if (!memory_pages_read(pages, addr, header, sizeof header))
        return false;
    struct cursor c = cursor_over(span_of(header, sizeof header));
    uint64_t magic = cursor_u64le(&c);
    uint32_t flags = cursor_u32le(&c), json_size = cursor_u32le(&c);
    uint64_t json = cursor_u64le(&c);
    uint32_t count = cursor_u32le(&c);
    cursor_u32le(&c);
    uint64_t data = cursor_u64le(&c);
    bool is_64 = (flags & 2) == 0;
    if (magic != DESCRIPTOR_MAGIC || !is_64 || json_size == 0 || json_size > JSON_BYTES_MAX ||
        count > POINTERS_MAX)
        return false;
    char *text = mem_alloc(json_size, 1);
    bool there = memory_pages_read(pages, json, text, json_size);
    d->json = there ? json_loadb(text, json_size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    d->pointers = mem_alloc(count ? count : 1, sizeof *d->pointers);
    d->pointer_count = count;
    for (uint32_t i = 0; i < count; i++)
        d->pointers[i] = memory_pages_u64(pages, data + 8 * (uint64_t)i);
    return d->json != NULL;
}

bool contract_descriptor_open(struct memory_pages *pages, uint64_t addr, struct contract_descriptor **out,
                              struct error *err)
{
    struct contract_descriptor *d = mem_alloc(1, sizeof *d);
    if (!load(pages, addr, d)) {
        contract_descriptor_close(d);
        return error_set(err, ERROR_INPUT, "the runtime's description of itself cannot be read");
    }
    *out = d;
    return true;
}

void contract_descriptor_close(struct contract_descriptor *descriptor)
{
    if (!descriptor)
        return;
    json_decref(descriptor->json);
    free(descriptor->pointers);
    free(descriptor);
}

/* A field is an offset, or [offset, "type"]. */
static const json_t *unwrap(const json_t *value)
{
    return json_is_array(value) ? json_array_get(value, 0) : value;
}

bool contract_descriptor_field(const struct contract_descriptor *descriptor, const char *type,
                               const char *field, uint16_t *out)
{
    const json_t *fields = json_object_get(json_object_get(descriptor->json, "types"), type);
    const json_t *value = unwrap(json_object_get(fields, field));
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= UINT16_MAX)
        return false;
    *out = (uint16_t)json_integer_value(value);
    return true;
}

bool contract_descriptor_number(const struct contract_descriptor *descriptor, const char *global,
                                uint64_t *out)
{
    const json_t *value = unwrap(json_object_get(json_object_get(descriptor->json, "globals"), global));
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    char *end;
    errno = 0;
    uint64_t number = text ? strtoull(text, &end, 0) : 0;
    if (!text || end == text || *end || errno)
        return false;
    *out = number;
    return true;
}

bool contract_descriptor_addr(const struct contract_descriptor *descriptor, const char *global, uint64_t *out)
{
    const json_t *slot =
        unwrap(unwrap(json_object_get(json_object_get(descriptor->json, "globals"), global)));
    if (!json_is_integer(slot) || json_integer_value(slot) < 0 ||
        json_integer_value(slot) >= descriptor->pointer_count)
        return false;
    *out = descriptor->pointers[json_integer_value(slot)];
    return *out != 0;
}

const char *contract_descriptor_text(const struct contract_descriptor *descriptor, const char *global)
{
    return json_string_value(unwrap(json_object_get(json_object_get(descriptor->json, "globals"), global)));
}

uint64_t contract_descriptor_version(const struct contract_descriptor *descriptor, const char *contract)
{
    const json_t *value = json_object_get(json_object_get(descriptor->json, "contracts"), contract);
    const char *text = json_string_value(value);
    json_int_t version = json_integer_value(value);
    if (text && text[0] == 'c' && text[1] >= '1' && text[1] <= '9')
        return CONTRACTS_ANEW + strtoul(text + 1, NULL, 10);
    return version > 0 ? (uint64_t)version : 0;
}
