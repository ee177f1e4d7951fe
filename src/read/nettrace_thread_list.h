/*
 * nettrace_thread_list: who the threads of a nettrace 6 stream are, by the index the stream gave them.
 */
#ifndef CLRPERF_READ_NETTRACE_THREAD_LIST_H
#define CLRPERF_READ_NETTRACE_THREAD_LIST_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/id_map.h"

struct nettrace_listed_thread {
    uint64_t index;
    uint64_t process_id, thread_id; /* of the operating system; 0: the stream does not say */
    struct span name;               /* UTF-8, valid while its row is read */
};

struct nettrace_thread_list {
    struct id_map ids;
    struct nettrace_listed_thread *rows; /* ids are 1 and up */
    size_t count, capacity;
    uint32_t latest; /* id that was found last */
};

typedef bool nettrace_thread_fn(void *user, const struct nettrace_listed_thread *thread, struct error *err);

void nettrace_thread_list_done(struct nettrace_thread_list *t);
void nettrace_thread_list_clear(struct nettrace_thread_list *t);
/* Reads a Thread block and calls `emit` for each. *refused grows by the threads beyond our bounds. */
bool nettrace_thread_list_read(struct nettrace_thread_list *t, struct span content, uint64_t *refused,
                               nettrace_thread_fn *emit, void *user, struct error *err);
/* NULL when the stream has not listed it. */
const struct nettrace_listed_thread *nettrace_thread_list_find(struct nettrace_thread_list *t,
                                                               uint64_t index);

#endif
