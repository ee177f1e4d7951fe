#include "fetch/symbol_key.h"

#include <string.h>

enum {
    BUILD_ID_BYTES_MIN = 8,
    BUILD_ID_BYTES = 20, /* SSQP fills shorter ones up with zeros */
    GUID_BYTES = 16,
    FILE_NAME_BYTES_MAX = 255,
};

static const struct {
    enum symbol_protocol protocol;
    enum symbol_kind kind;
} keys[SYMBOL_KEYS] = {
    [KEY_SSQP_SYMBOLS] = { PROTOCOL_SSQP, SYMBOL_BUILD_ID },
    [KEY_DEBUGINFOD] = { PROTOCOL_DEBUGINFOD, SYMBOL_BUILD_ID },
    [KEY_SSQP_PDB] = { PROTOCOL_SSQP, SYMBOL_PDB },
    [KEY_SSQP_IMAGE] = { PROTOCOL_SSQP, SYMBOL_BUILD_ID },
};

enum symbol_protocol symbol_key_protocol(enum symbol_key key)
{
    return keys[key].protocol;
}

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    return size && size <= FILE_NAME_BYTES_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* Lower case, and as part of a URL: the name is the target's. */
static void put_name(const char *name, struct buffer *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *name; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name + ('a' - 'A')) : *name;
        if (strchr(plain, c))
            buffer_u8(out, (uint8_t)c);
        else
            buffer_format(out, "%%%02X", (uint8_t)c);
    }
}

static void put_hex(const uint8_t *bytes, size_t size, struct buffer *out)
{
    for (size_t i = 0; i < size; i++)
        buffer_format(out, "%02x", bytes[i]);
}

static void put_padded_id(const struct symbol_id *id, struct buffer *out)
{
    put_hex(id->bytes, id->size, out);
    for (size_t i = id->size; i < BUILD_ID_BYTES; i++)
        buffer_string(out, "00");
}

/* As GUIDs are written: the first three fields are numbers, little-endian in the file. */
static void put_guid(const uint8_t *guid, struct buffer *out)
{
    static const uint8_t order[GUID_BYTES] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
    for (size_t i = 0; i < GUID_BYTES; i++)
        put_hex(&guid[order[i]], 1, out);
}

bool symbol_key_put(enum symbol_key key, const struct symbol_id *id, const char *file_name,
                    struct buffer *out)
{
    bool named = key == KEY_SSQP_PDB || key == KEY_SSQP_IMAGE;
    size_t least = id->kind == SYMBOL_PDB ? GUID_BYTES : BUILD_ID_BYTES_MIN;
    if (keys[key].kind != id->kind || id->size < least || (named && !is_name(file_name)))
        return false;
    switch (key) {
    case KEY_SSQP_SYMBOLS:
        buffer_string(out, "_.debug/elf-buildid-sym-");
        put_padded_id(id, out);
        buffer_string(out, "/_.debug");
        break;
    case KEY_DEBUGINFOD:
        buffer_string(out, "buildid/");
        put_hex(id->bytes, id->size, out);
        buffer_string(out, "/debuginfo");
        break;
    case KEY_SSQP_PDB:
        put_name(file_name, out);
        buffer_u8(out, '/');
        put_guid(id->bytes, out);
        buffer_string(out, "FFFFFFFF/");
        put_name(file_name, out);
        break;
    case KEY_SSQP_IMAGE:
        put_name(file_name, out);
        buffer_string(out, "/elf-buildid-");
        put_padded_id(id, out);
        buffer_u8(out, '/');
        put_name(file_name, out);
        break;
    case SYMBOL_KEYS:
        return false;
    }
    return true;
}
