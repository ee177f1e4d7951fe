/*
 * json_writer: writes one JSON document, piece by piece.
 *
 * Commas and colons are placed by the writer. Strings may hold anything: control characters are
 * escaped, bytes that are no UTF-8 become U+FFFD. A number that JSON cannot hold is null.
 * Calls that do not fit (a value without key inside an object) are our mistakes and asserted.
 */
#ifndef CLRPERF_BASE_JSON_WRITER_H
#define CLRPERF_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

/* Takes what was written so far; false ends the writing (the caller knows why). */
typedef bool json_flush_fn(void *user, struct span bytes);

enum { JSON_DEPTH_MAX = 4096, JSON_FLUSH_BYTES = 1 << 16 };

struct json_writer {
    struct buffer *out;   /* borrowed */
    json_flush_fn *flush; /* or NULL: everything stays in `out` */
    void *user;
    bool failed;    /* flush said no; the rest is dropped */
    int os_error;   /* errno then */
    bool after_key; /* a value must follow */
    unsigned depth;
    uint8_t levels[JSON_DEPTH_MAX]; /* bit 0: an object (else an array), bit 1: has a member */
};

void json_init(struct json_writer *w, struct buffer *out);
/* As json_init(), and `flush` is given the bytes whenever about JSON_FLUSH_BYTES have gathered. */
void json_init_stream(struct json_writer *w, struct buffer *out, json_flush_fn *flush, void *user);
/* A flush function that writes to the descriptor behind `user`, an int. errno says why it failed. */
bool json_flush_to_fd(void *user, struct span bytes);

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);

/* NULL is null. */
void json_quoted(struct json_writer *w, const char *text);
void json_span(struct json_writer *w, struct span text);
void json_u64(struct json_writer *w, uint64_t value);
void json_i64(struct json_writer *w, int64_t value);
/* The shortest decimal that reads back the same; null when not finite. */
void json_double(struct json_writer *w, double value);
void json_float(struct json_writer *w, float value);
/* Nanoseconds as seconds, exactly. */
void json_ns_as_s(struct json_writer *w, int64_t ns);
/* An address: "0x7f00..." */
void json_hex(struct json_writer *w, uint64_t value);
void json_bool(struct json_writer *w, bool value);
/* A value that is JSON already. */
void json_raw(struct json_writer *w, struct span json);
void json_absent(struct json_writer *w);

/* Ends one document of several, each on a line of its own. */
void json_next(struct json_writer *w);
/*
 * Ends the document (every object and array must be closed) with a newline and flushes it; a next
 * document may follow (JSON lines). False when a flush or the buffer's ceiling dropped something.
 */
bool json_finish(struct json_writer *w, struct error *err);
/* The same behind the last json_next(). */
bool json_end_lines(struct json_writer *w, struct error *err);

#endif
