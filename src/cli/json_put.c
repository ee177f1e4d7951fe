#include "cli/json_put.h"

void json_put_string(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_quoted(w, text);
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_u64(w, value);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, key);
    json_i64(w, value);
}

void json_put_double(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_double(w, value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

void json_put_known_u64(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    json_key(w, key);
    if (known)
        json_u64(w, value);
    else
        json_absent(w);
}

void json_put_known_double(struct json_writer *w, const char *key, bool known, double value)
{
    json_key(w, key);
    if (known)
        json_double(w, value);
    else
        json_absent(w);
}

void json_put_object(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_begin_object(w);
}

void json_put_array(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_begin_array(w);
}
