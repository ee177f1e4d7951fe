#include "symbolize/kernel_lookup.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"

enum { TEXT_BYTES_MAX = 64 << 20 };

struct lookup_answer {
    uint64_t start;
    uint32_t name, module; /* offsets of texts that end with a NUL */
};

/* Until the thread was joined all but `addrs` and `count` is the thread's. */
struct kernel_lookup {
    pthread_t thread;
    bool has_thread; /* not joined yet */
    uint64_t *addrs;
    size_t count;
    struct lookup_answer *answers;
    struct buffer texts;
    struct kernel_symbols_result result;
    bool ok;
};

static uint32_t keep_text(struct kernel_lookup *lookup, const char *text)
{
    size_t offset = lookup->texts.size;
    buffer_append(&lookup->texts, text, strlen(text) + 1);
    return (uint32_t)offset;
}

static void keep_answer(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    struct kernel_lookup *lookup = user;
    lookup->answers[index] =
        (struct lookup_answer){ start, keep_text(lookup, name), keep_text(lookup, module) };
}

static void *lookup_run(void *user)
{
    struct kernel_lookup *lookup = user;
    AUTO_FD int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    lookup->ok = fd >= 0 &&
                 kernel_symbols_resolve(fd, lookup->addrs, lookup->count, keep_answer, lookup,
                                        &lookup->result, NULL) &&
                 !lookup->texts.failed;
    return NULL;
}

struct kernel_lookup *kernel_lookup_start(const uint64_t *addrs, size_t count)
{
    struct kernel_lookup *lookup = mem_alloc(1, sizeof *lookup);
    lookup->addrs = mem_alloc(count, sizeof *lookup->addrs);
    lookup->answers = mem_alloc(count, sizeof *lookup->answers);
    lookup->count = count;
    if (count)
        memcpy(lookup->addrs, addrs, count * sizeof *addrs);
    buffer_init(&lookup->texts, TEXT_BYTES_MAX);
    lookup->has_thread = thread_start(&lookup->thread, lookup_run, lookup);
    if (!lookup->has_thread)
        lookup_run(lookup);
    return lookup;
}

static void lookup_join(struct kernel_lookup *lookup)
{
    if (lookup->has_thread)
        pthread_join(lookup->thread, NULL);
    lookup->has_thread = false;
}

bool kernel_lookup_answer(struct kernel_lookup *lookup, const uint64_t *addrs, size_t count,
                          kernel_symbol_fn *emit, void *user, struct kernel_symbols_result *out)
{
    if (count != lookup->count || (count && memcmp(addrs, lookup->addrs, count * sizeof *addrs) != 0))
        return false;
    lookup_join(lookup);
    if (!lookup->ok)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct lookup_answer *a = &lookup->answers[i];
        const char *texts = (const char *)lookup->texts.data;
        emit(user, i, texts + a->name, texts + a->module, a->start);
    }
    *out = lookup->result;
    return true;
}

void kernel_lookup_free(struct kernel_lookup *lookup)
{
    if (!lookup)
        return;
    lookup_join(lookup);
    buffer_done(&lookup->texts);
    free(lookup->addrs);
    free(lookup->answers);
    free(lookup);
}
