#include "symbolize/source_lookup.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"

enum { TEXT_BYTES_MAX = 64 << 20 };

/* A source_frame; its texts are ids, 0 for none. */
struct kept_frame {
    uint32_t function, file, line;
};

struct kept_answer {
    size_t index, first, count; /* frames */
};

/* Until the thread was joined all is the thread's. */
struct source_lookup {
    pthread_t thread;
    bool has_thread;
    int fd;
    uint64_t *addrs;
    size_t *indexes;
    size_t count;
    struct kept_answer *answers;
    size_t answer_count;
    struct kept_frame *frames;
    size_t frame_count, frame_capacity;
    struct intern texts;
};

static void keep_answer(void *user, size_t index, const struct source_frame *frames, size_t count)
{
    struct source_lookup *lookup = user;
    lookup->answers[lookup->answer_count++] =
        (struct kept_answer){ lookup->indexes[index], lookup->frame_count, count };
    lookup->frames = mem_grow(lookup->frames, &lookup->frame_capacity, lookup->frame_count + count,
                              sizeof *lookup->frames);
    for (size_t i = 0; i < count; i++)
        lookup->frames[lookup->frame_count++] = (struct kept_frame){
            .function = frames[i].function ? intern_cstr(&lookup->texts, frames[i].function) : 0,
            .file = frames[i].file ? intern_cstr(&lookup->texts, frames[i].file) : 0,
            .line = frames[i].line,
        };
}

static void *lookup_run(void *user)
{
    struct source_lookup *lookup = user;
    struct source file;
    struct elf elf;
    if (!source_over_fd(lookup->fd, 0, UINT64_MAX, &file, NULL) || !elf_open(&file, &elf, NULL))
        return NULL;
    native_source_find(&elf, lookup->addrs, lookup->count, keep_answer, lookup);
    elf_done(&elf);
    return NULL;
}

struct source_lookup *source_lookup_start(int fd, const uint64_t *addrs, const size_t *indexes, size_t count)
{
    AUTO_FD int own = count ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0)
        return NULL;
    struct source_lookup *lookup = mem_alloc(1, sizeof *lookup);
    lookup->fd = take_fd(&own);
    lookup->count = count;
    lookup->addrs = memcpy(mem_alloc(count, sizeof *addrs), addrs, count * sizeof *addrs);
    lookup->indexes = memcpy(mem_alloc(count, sizeof *indexes), indexes, count * sizeof *indexes);
    lookup->answers = mem_alloc(count, sizeof *lookup->answers);
    intern_init(&lookup->texts, TEXT_BYTES_MAX);
    lookup->has_thread = thread_start(&lookup->thread, lookup_run, lookup);
    if (!lookup->has_thread)
        lookup_run(lookup);
    return lookup;
}

static void answer_one(const struct source_lookup *lookup, const struct kept_answer *kept,
                       native_source_fn *answer, void *user)
{
    struct source_frame frames[SOURCE_FRAMES_MAX];
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_frame *frame = &lookup->frames[kept->first + i];
        frames[i] = (struct source_frame){
            .function = i + 1 < kept->count ? intern_text(&lookup->texts, frame->function) : NULL,
            .file = frame->file ? intern_text(&lookup->texts, frame->file) : NULL,
            .line = frame->line,
        };
    }
    answer(user, kept->index, frames, kept->count);
}

void source_lookup_finish(struct source_lookup *lookup, native_source_fn *answer, void *user)
{
    if (!lookup)
        return;
    if (lookup->has_thread)
        pthread_join(lookup->thread, NULL);
    for (size_t i = 0; i < lookup->answer_count; i++)
        answer_one(lookup, &lookup->answers[i], answer, user);
    close(lookup->fd);
    intern_done(&lookup->texts);
    free(lookup->addrs);
    free(lookup->indexes);
    free(lookup->answers);
    free(lookup->frames);
    free(lookup);
}
