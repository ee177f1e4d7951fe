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
#include "symbolize/kernel_list.h"
#include "symbolize/kernel_list_writer.h"

enum { TEXT_BYTES_MAX = 64 << 20 };

struct lookup_answer {
    uint64_t start;
    uint32_t name, module; /* offsets of texts that end with a NUL */
};

/* Until the thread was joined all but `kept`, `addrs` and `count` is the thread's. */
struct kernel_lookup {
    pthread_t thread;
    bool has_thread;  /* not joined yet */
    const char *kept; /* borrowed, or NULL */
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

static bool is_same_boot(const struct kernel_boot *boot)
{
    struct kernel_boot now;
    if (!kernel_boot_read(&now))
        return false;
    bool same = memcmp(now.key, boot->key, sizeof now.key) == 0;
    kernel_boot_done(&now);
    return same;
}

/* `keep_for`: keeps the list, too; or NULL. */
static bool ask_live(struct kernel_lookup *lookup, int live_fd, const struct kernel_boot *keep_for)
{
    struct kernel_list_writer *writer = keep_for ? kernel_list_writer_begin(lookup->kept, keep_for) : NULL;
    const struct kernel_lines_reader also = { kernel_list_writer_take, writer };
    bool ok = kernel_symbols_resolve(live_fd, lookup->addrs, lookup->count, writer ? &also : NULL,
                                     keep_answer, lookup, &lookup->result, NULL);
    kernel_list_writer_end(writer, ok && keep_for && is_same_boot(keep_for));
    return ok;
}

static bool ask_kept(struct kernel_lookup *lookup, int live_fd, const struct kernel_boot *boot)
{
    AUTO_FD int fd = kernel_list_open(lookup->kept);
    enum kernel_list_answer answered =
        fd < 0 ? KERNEL_LIST_BAD
               : kernel_list_resolve(fd, live_fd, boot, lookup->addrs, lookup->count, keep_answer, lookup,
                                     &lookup->result);
    return answered == KERNEL_LIST_ANSWERED ||
           ask_live(lookup, live_fd, answered == KERNEL_LIST_BAD ? boot : NULL);
}

static void *lookup_run(void *user)
{
    struct kernel_lookup *lookup = user;
    struct kernel_boot boot = { 0 };
    AUTO_FD int live_fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (live_fd >= 0)
        lookup->ok = lookup->kept && kernel_boot_read(&boot) ? ask_kept(lookup, live_fd, &boot)
                                                             : ask_live(lookup, live_fd, NULL);
    lookup->ok = lookup->ok && !lookup->texts.failed;
    kernel_boot_done(&boot);
    return NULL;
}

struct kernel_lookup *kernel_lookup_start(const char *kept, const uint64_t *addrs, size_t count)
{
    struct kernel_lookup *lookup = mem_alloc(1, sizeof *lookup);
    lookup->addrs = mem_alloc(count, sizeof *lookup->addrs);
    lookup->answers = mem_alloc(count, sizeof *lookup->answers);
    lookup->count = count;
    lookup->kept = kept;
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
