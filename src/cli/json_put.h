/*
 * json_put: a member of a JSON object, its key and its value at once.
 */
#ifndef CLRPERF_CLI_JSON_PUT_H
#define CLRPERF_CLI_JSON_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_writer.h"

/* NULL is null. */
void json_put_string(struct json_writer *w, const char *key, const char *text);
void json_put_u64(struct json_writer *w, const char *key, uint64_t value);
void json_put_i64(struct json_writer *w, const char *key, int64_t value);
void json_put_double(struct json_writer *w, const char *key, double value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
/* As json_put_u64() and json_put_double(), but null for what is not `known`. */
void json_put_known_u64(struct json_writer *w, const char *key, bool known, uint64_t value);
void json_put_known_double(struct json_writer *w, const char *key, bool known, double value);
/* The caller ends what they begin. */
void json_put_object(struct json_writer *w, const char *key);
void json_put_array(struct json_writer *w, const char *key);

#endif
