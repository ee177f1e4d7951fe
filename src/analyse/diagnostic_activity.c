#include "analyse/diagnostic_activity.h"

#include <string.h>

#include "base/id_map.h"
#include "base/own.h"

enum {
    TEXT_BYTES_MAX = 1 << 18, /* a payload of 64 KiB has no more */
    W3C_BYTES = 55,           /* "00-TRACE-SPAN-FLAGS" */
    W3C_FLAGS_BYTES = 3,      /* a parent's may have changed since */
};

static const char *const own_keys[] = { "Id", "ActivityId", "SpanId" };
static const char *const parent_keys[] = { "ParentId", "ActivityParentId", "ParentSpanId" };

/* The arguments of an event while they are visited. */
struct argument_reading {
    struct buffer text;
    int own, parent; /* index of the keys that the next value is of, or -1 */
    uint64_t owns[ARRAY_LEN(own_keys)], parents[ARRAY_LEN(parent_keys)]; /* 0: not there */
};

static int key_find(const char *const *keys, size_t count, struct span text)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(keys[i]) == text.size && memcmp(keys[i], text.data, text.size) == 0)
            return (int)i;
    return -1;
}

/* 0 of what is no id: nothing, or zeros only. */
static uint64_t id_hash(struct span id)
{
    size_t zeros = 0;
    while (zeros < id.size && id.data[zeros] == '0')
        zeros++;
    if (zeros == id.size)
        return 0;
    bool is_w3c = id.size == W3C_BYTES && memcmp(id.data, "00-", 3) == 0;
    uint64_t hash = hash_bytes(id.data, is_w3c ? id.size - W3C_FLAGS_BYTES : id.size);
    return hash ? hash : 1;
}

static void on_value(void *user, const char *name, const struct event_value *v)
{
    struct argument_reading *r = user;
    bool is_key = strcmp(name, "Key") == 0;
    if (!is_key && (strcmp(name, "Value") != 0 || (r->own < 0 && r->parent < 0)))
        return;
    buffer_clear(&r->text);
    event_value_append_text(&r->text, v);
    struct span text = buffer_span(&r->text);
    if (is_key) {
        r->own = key_find(own_keys, ARRAY_LEN(own_keys), text);
        r->parent = key_find(parent_keys, ARRAY_LEN(parent_keys), text);
        return;
    }
    if (r->own >= 0)
        r->owns[r->own] = id_hash(text);
    if (r->parent >= 0)
        r->parents[r->parent] = id_hash(text);
    r->own = r->parent = -1;
}

/* A path of numbers does not begin with a zero. */
static struct activity_path stand_in(uint64_t hash)
{
    struct activity_path path = { { 0 } };
    if (hash)
        memcpy(path.bytes + ACTIVITY_PATH_BYTES - sizeof hash, &hash, sizeof hash);
    return path;
}

bool diagnostic_activity_read(const struct event_schema *schema, struct span payload,
                              struct diagnostic_activity *out)
{
    if (event_schema_field(schema, "ActivityName") < 0)
        return false;
    struct argument_reading r = { .own = -1, .parent = -1 };
    buffer_init(&r.text, TEXT_BYTES_MAX);
    event_schema_visit(schema, payload, &(struct event_visitor){ .user = &r, .value = on_value });
    buffer_done(&r.text);
    for (size_t i = 0; i < ARRAY_LEN(own_keys); i++) {
        if (!r.owns[i])
            continue;
        *out = (struct diagnostic_activity){ stand_in(r.owns[i]), stand_in(r.parents[i]) };
        return true;
    }
    return false;
}
