#include "cli/live_target.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"
#include "cli/target_finder.h"

static bool open_live_file(void *user, const char *path, struct source *out)
{
    const struct live_target *live = user;
    int fd = target_files_open(&live->files, live->process, path);
    if (fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, out, NULL))
        return true;
    if (fd >= 0)
        close(fd);
    return false;
}

static void close_live_file(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

/* Who gets the first bytes of a large page waits until it is zeroed, and with him who wants any. */
static void *bring_in(void *user)
{
    mem_bring_in(user, LIVE_TARGET_READY_BYTES);
    return NULL;
}

static void expect_memory(void)
{
    pthread_t thread;
    void *heap = mem_expect_large(LIVE_TARGET_MEMORY_BYTES);
    if (heap && thread_start(&thread, bring_in, heap))
        pthread_detach(thread);
}

bool live_target_open(struct live_target *live, const struct target_query *query,
                      const struct symbol_cache *cache, const struct kept_folder *kept, struct error *err)
{
    *live = (struct live_target){ .process = 1 };
    live->finder = target_finder_live(&live->files);
    live->ahead = (struct images_ahead){ .files = &live->finder, .cache = cache, .kept = kept };
    live->memory = live_memory_new();
    if (!live->memory)
        return error_system(err, errno, "cannot share memory with a child process");
    if (!thread_stopper_open(&live->stopper, err) || !target_select(query, &live->list, err))
        return false;
    /* not before: what a forked child shares is copied */
    expect_memory();
    struct target *target = &live->list.items[0];
    target_files_add(&live->files, live->process, (uint32_t)target->pid);
    if (!live_memory_attach(live->memory, target->pid, target->start_ticks, err))
        return false;
    process_stacks_init(&live->stacks, &(struct stacks_target){
                                           .pid = target->pid,
                                           .machine = machine_own(),
                                           .memory = live_memory_view(live->memory),
                                           .files = { open_live_file, close_live_file, live },
                                       });
    return target_finish(target, err);
}

void live_target_finish_taking(struct live_target *live)
{
    thread_stopper_finish(live->stopper);
}

/* What nearly all stacks lead through, and takes longest to read. */
static const char *const busy_images[] = { "libc.so.6", "libcoreclr.so", "System.Private.CoreLib.dll" };

static const struct memory_mapping *find_code(const struct memory *memory, const char *file)
{
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct memory_mapping *m = &memory->mappings[i];
        const char *slash = strrchr(m->path, '/');
        if (m->executable && !m->deleted && slash && strcmp(slash + 1, file) == 0)
            return m;
    }
    return NULL;
}

/* Their tables first, which are wanted first. The mappings stay until it is joined. */
static void *read_ahead(void *user)
{
    struct live_target *live = user;
    const char *paths[ARRAY_LEN(busy_images)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(busy_images); i++) {
        const struct memory_mapping *code = find_code(live_memory_view(live->memory), busy_images[i]);
        if (!code)
            continue;
        process_stacks_read_tables(&live->stacks, code);
        paths[count++] = code->path;
    }
    images_ahead_begin(&live->ahead, live->process, paths, count);
    return NULL;
}

bool live_target_take(struct live_target *live, pid_t only_tid, struct error *err)
{
    if (!taken_threads_take(&live->stacks.threads, live->stacks.target.pid, live->stopper, only_tid, err))
        return false;
    if (!live_memory_refresh(live->memory, err))
        return false;
    if (!live->looked) { /* not before: a thread stops when it gets a CPU, and ours would take it */
        live->reading = thread_start(&live->reader, read_ahead, live);
        live_memory_keep_near(live->memory);
    }
    live->looked = true;
    taken_threads_describe_waits(&live->stacks.threads, live->stacks.target.pid,
                                 live_memory_view(live->memory));
    return true;
}

static void await_tables(struct live_target *live)
{
    if (live->reading)
        pthread_join(live->reader, NULL);
    live->reading = false;
}

void live_target_unwind(struct live_target *live, struct trace_builder *b)
{
    process_stacks_find_code(&live->stacks);
    await_tables(live);
    process_stacks_unwind(&live->stacks, b, live->process);
}

void live_target_close(struct live_target *live)
{
    await_tables(live);
    images_ahead_done(&live->ahead);
    process_stacks_done(&live->stacks);
    thread_stopper_close(live->stopper);
    live_memory_close(live->memory);
    target_files_done(&live->files);
    target_list_done(&live->list);
}
