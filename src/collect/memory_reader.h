/*
 * memory_reader: the child process that reads another process's memory, and may be killed while it does.
 */
#ifndef CLRPERF_COLLECT_MEMORY_READER_H
#define CLRPERF_COLLECT_MEMORY_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/doorbell.h"
#include "base/memory_path.h"

enum {
    MEMORY_READER_PIECES = 256,
    MEMORY_READER_BYTES = 1 << 18, /* of one batch */
};

/* What child and parent share. */
struct memory_batch {
    struct doorbell asked, answered;
    pid_t target; /* a thread of the process's that has memory */
    uint32_t count;
    uint32_t next;    /* the first piece that has not been read */
    bool one_by_one;  /* so that `next` tells which one hangs */
    bool follows;     /* the question is `path`; the pieces answer it, a page each */
    int32_t os_error; /* of the last piece that could not be read at all */
    struct memory_path path;
    struct {
        uint64_t addr;
        uint32_t size, got;
    } pieces[MEMORY_READER_PIECES];
    uint8_t bytes[MEMORY_READER_BYTES]; /* of all pieces, one after the other */
};

struct memory_reader {
    pid_t child;    /* 0: none runs */
    uint32_t asked; /* times, of this child */
    unsigned look_us;
    bool lost; /* a child cannot be killed: the batch is left to it */
    struct memory_batch *batch;
};

/* False when the system gives no memory for the batch. No child runs yet, and batch->target is not set. */
bool memory_reader_init(struct memory_reader *reader);
/* Starts the child before it is asked, which may fail: memory_reader_run() tries again. */
void memory_reader_start(struct memory_reader *reader);
/* Nothing more is read: the child ends while others work. */
void memory_reader_finish(struct memory_reader *reader);
void memory_reader_done(struct memory_reader *reader);
/*
 * Reads what reader->batch asks for, where it follows or from piece `next` on. False when it took longer than
 * `deadline_ms`, or no child could be started: the child is gone then, and `next` says how far it came.
 */
bool memory_reader_run(struct memory_reader *reader, int deadline_ms);

#endif
