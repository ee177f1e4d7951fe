#include "symbolize/source_lookup.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_stamp.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"
#include "symbolize/kept_lines.h"
#include "symbolize/kept_sections.h"

struct source_lookup {
    struct source_store store;
    struct file_stamp stamp; /* of the file */
    uint64_t *addrs;
    size_t *indexes;
    size_t count;
    struct source_answers known; /* was kept */
    /* Until the thread was joined what follows is the thread's. */
    pthread_t thread;
    bool has_thread;
    int fd;
    uint64_t *asked; /* those that were not known */
    size_t asked_count;
    struct source_answers found;
};

static void keep_answer(void *user, size_t index, const struct source_frame *frames, size_t count)
{
    struct source_lookup *lookup = user;
    source_answers_add(&lookup->found, lookup->asked[index], frames, count);
}

/* What is asked again and again is worth to be kept unpacked. */
static void *lookup_run(void *user)
{
    struct source_lookup *lookup = user;
    const struct source_store *store = &lookup->store;
    AUTO_FD int kept = kept_sections_find(store->folder, &store->id, &lookup->stamp);
    struct source file;
    struct elf elf;
    if (!source_over_fd(kept >= 0 ? kept : lookup->fd, 0, UINT64_MAX, &file, NULL) ||
        !elf_open(&file, &elf, NULL))
        return NULL;
    native_source_find(&elf, lookup->asked, lookup->asked_count, keep_answer, lookup);
    if (kept < 0 && lookup->known.count)
        kept_sections_save(store->folder, &store->id, &lookup->stamp, &elf);
    elf_done(&elf);
    return NULL;
}

static void ask_unknown(struct source_lookup *lookup)
{
    lookup->asked = mem_alloc(lookup->count, sizeof *lookup->asked);
    for (size_t i = 0; i < lookup->count; i++)
        if (!source_answers_find(&lookup->known, lookup->addrs[i]))
            lookup->asked[lookup->asked_count++] = lookup->addrs[i];
    if (lookup->asked_count == 0)
        return;
    lookup->has_thread = thread_start(&lookup->thread, lookup_run, lookup);
    if (!lookup->has_thread)
        lookup_run(lookup);
}

struct source_lookup *source_lookup_start(int fd, const struct source_store *store, const uint64_t *addrs,
                                          const size_t *indexes, size_t count)
{
    AUTO_FD int own = count ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0)
        return NULL;
    struct source_lookup *lookup = mem_alloc(1, sizeof *lookup);
    lookup->store = *store;
    lookup->fd = take_fd(&own);
    lookup->stamp = file_stamp_of(lookup->fd);
    lookup->count = count;
    lookup->addrs = memcpy(mem_alloc(count, sizeof *addrs), addrs, count * sizeof *addrs);
    lookup->indexes = memcpy(mem_alloc(count, sizeof *indexes), indexes, count * sizeof *indexes);
    source_answers_init(&lookup->found);
    kept_lines_load(store->folder, &store->id, &lookup->stamp, &lookup->known);
    ask_unknown(lookup);
    return lookup;
}

/* What the file says nothing of need not be asked again either. */
static void note_unanswered(struct source_lookup *lookup)
{
    source_answers_sort(&lookup->found);
    size_t answered = lookup->found.count;
    for (size_t i = 0, at = 0; i < lookup->asked_count; i++) {
        while (at < answered && lookup->found.rows[at].addr < lookup->asked[i])
            at++;
        if (at == answered || lookup->found.rows[at].addr != lookup->asked[i])
            source_answers_add(&lookup->found, lookup->asked[i], NULL, 0);
    }
    source_answers_sort(&lookup->found);
}

/* The answers of this look, and of those before as far as there is room. */
static void keep_found(struct source_lookup *lookup)
{
    struct source_frame frames[SOURCE_FRAMES_MAX];
    struct source_answers *all = &lookup->found;
    for (size_t i = 0; i < lookup->known.count && all->count < SOURCE_ANSWERS_MAX; i++) {
        size_t count = source_answers_frames(&lookup->known, &lookup->known.rows[i], frames);
        source_answers_add(all, lookup->known.rows[i].addr, frames, count);
    }
    source_answers_sort(all);
    kept_lines_save(lookup->store.folder, &lookup->store.id, &lookup->stamp, all, NULL);
}

static void answer_one(const struct source_lookup *lookup, size_t i, native_source_fn *answer, void *user)
{
    struct source_frame frames[SOURCE_FRAMES_MAX];
    const struct source_answers *from = &lookup->known;
    const struct source_answer *row = source_answers_find(from, lookup->addrs[i]);
    if (!row) {
        from = &lookup->found;
        row = source_answers_find(from, lookup->addrs[i]);
    }
    size_t count = row ? source_answers_frames(from, row, frames) : 0;
    if (count)
        answer(user, lookup->indexes[i], frames, count);
}

void source_lookup_finish(struct source_lookup *lookup, native_source_fn *answer, void *user)
{
    if (!lookup)
        return;
    if (lookup->has_thread)
        pthread_join(lookup->thread, NULL);
    note_unanswered(lookup);
    for (size_t i = 0; i < lookup->count; i++)
        answer_one(lookup, i, answer, user);
    if (lookup->asked_count)
        keep_found(lookup);
    close(lookup->fd);
    source_answers_done(&lookup->known);
    source_answers_done(&lookup->found);
    free(lookup->addrs);
    free(lookup->indexes);
    free(lookup->asked);
    free(lookup);
}
