/*
 * nettrace_told: what a reader of nettrace files tells its callbacks, as text.
 */
#ifndef CLRPERF_TESTS_NETTRACE_TOLD_H
#define CLRPERF_TESTS_NETTRACE_TOLD_H

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf16.h"
#include "read/nettrace.h"

enum { TOLD_MARK = 77 /* on each type, to be found on its events */ };

struct told {
    struct buffer text;
};

static inline bool tell_info(void *user, const struct nettrace_info *i, struct error *err)
{
    (void)err;
    struct told *told = user;
    buffer_format(&told->text, "info v%u %u-%u-%u f%llu p%u pid%u;", i->version, i->utc[0], i->utc[1],
                  i->utc[3], (unsigned long long)i->frequency, i->pointer_size, i->process_id);
    return true;
}

static inline bool tell_type(void *user, struct nettrace_type *t, struct error *err)
{
    (void)err;
    struct told *told = user;
    buffer_format(&told->text, "type %u ", t->id);
    utf16_append_utf8(&told->text, t->provider);
    buffer_format(&told->text, "/%u ", t->event_id);
    utf16_append_utf8(&told->text, t->name);
    buffer_format(&told->text, " v6:%u op%u k%llx l%u v%u f%zu p%zu;", t->is_v6, t->opcode,
                  (unsigned long long)t->keywords, t->level, t->version, t->fields.size, t->params.size);
    t->mark = TOLD_MARK;
    return true;
}

static inline bool tell_thread(void *user, uint64_t process_id, uint64_t thread_id, struct span name,
                               struct error *err)
{
    (void)err;
    struct told *told = user;
    buffer_format(&told->text, "thread %llu of %llu %.*s;", (unsigned long long)thread_id,
                  (unsigned long long)process_id, (int)name.size, name.size ? (const char *)name.data : "");
    return true;
}

static inline bool tell_event(void *user, const struct nettrace_event *e, struct error *err)
{
    (void)err;
    struct told *told = user;
    assert_int_equal(e->type->mark, TOLD_MARK);
    buffer_format(&told->text, "event %u p%llu t%llu #%u @%llu s%zu a%zu%s ", e->type->id,
                  (unsigned long long)e->process_id, (unsigned long long)e->thread_id, e->sequence,
                  (unsigned long long)e->time_ns, e->stack.size, e->activity.size,
                  e->sorted ? " sorted" : "");
    for (size_t i = 0; i < e->payload.size; i++)
        buffer_format(&told->text, "%02x", e->payload.data[i]);
    buffer_string(&told->text, ";");
    return true;
}

static inline bool tell_point(void *user, uint64_t time_ns, struct error *err)
{
    (void)err;
    struct told *told = user;
    buffer_format(&told->text, "point @%llu;", (unsigned long long)time_ns);
    return true;
}

static inline bool tell_loss(void *user, uint64_t thread_id, uint64_t count, struct error *err)
{
    (void)err;
    struct told *told = user;
    buffer_format(&told->text, "lost t%llu %llu;", (unsigned long long)thread_id, (unsigned long long)count);
    return true;
}

static inline struct nettrace_reader *new_reader(struct told *told)
{
    buffer_init(&told->text, 1 << 20);
    const struct nettrace_sink sink = { .user = told,
                                        .on_info = tell_info,
                                        .on_type = tell_type,
                                        .on_thread = tell_thread,
                                        .on_event = tell_event,
                                        .on_sequence_point = tell_point,
                                        .on_loss = tell_loss };
    return nettrace_reader_new(&sink);
}

/* Feeds in pieces of `step` bytes (0: in one piece, each in memory of exactly its size). */
static inline bool feed(struct nettrace_reader *r, struct span bytes, size_t step, struct error *err)
{
    bool ok = true;
    for (size_t at = 0; ok && at < bytes.size;) {
        size_t size = step && step < bytes.size - at ? step : bytes.size - at;
        uint8_t *piece = malloc(size);
        memcpy(piece, bytes.data + at, size);
        ok = nettrace_reader_feed(r, span_of(piece, size), err);
        free(piece);
        at += size;
    }
    return ok;
}

/* What a stream tells, as text of the caller's; *ok when it could be read so far, *ended when its end was
 * there. */
static inline char *read_all(struct span bytes, size_t step, bool *ok, bool *ended, struct error *err)
{
    struct told told;
    struct nettrace_reader *r = new_reader(&told);
    *ok = feed(r, bytes, step, err);
    *ended = nettrace_reader_ended(r);
    nettrace_reader_free(r);
    buffer_u8(&told.text, 0);
    return (char *)told.text.data;
}

#endif
