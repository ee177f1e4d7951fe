#include "cli/import_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/mem.h"
#include "cli/capture_process.h"
#include "cli/target_finder.h"
#include "collect/memory_session.h"
#include "collect/sample_unwinder.h"
#include "collect/target_files.h"

/* A process of the file, if it still runs. */
struct imported_process {
    bool tried;
    struct memory_session *session; /* NULL: it is gone, or its memory may not be read */
};

struct imported_stacks {
    struct trace_builder *b;
    struct sample_unwinder *unwinder;
    struct target_files files;
    struct imported_process *processes; /* by row of the trace */
    size_t capacity;
};

/* Where a session's answer belongs. */
struct method_hearer {
    struct imported_stacks *stacks;
    uint32_t process;
};

static struct imported_process *process_of(struct imported_stacks *stacks, uint32_t process)
{
    stacks->processes =
        mem_grow_zeroed(stacks->processes, &stacks->capacity, process + 1, sizeof *stacks->processes);
    return &stacks->processes[process];
}

static void look_for(struct imported_stacks *stacks, uint32_t process, struct imported_process *p)
{
    struct trace *t = &stacks->b->trace;
    p->tried = true;
    if (!capture_process_find(t, process))
        return;
    const struct trace_process *row = &t->processes.rows[process];
    target_files_add(&stacks->files, process, row->pid);
    int root_fd = target_files_root(&stacks->files, process);
    if (!memory_session_start((pid_t)row->pid, row->start_ticks, root_fd, &p->session, NULL))
        p->session = NULL;
}

static struct memory_session *session_of(struct imported_stacks *stacks, uint32_t process)
{
    struct imported_process *p = process_of(stacks, process);
    if (!p->tried)
        look_for(stacks, process, p);
    return p->session;
}

static int open_file(void *user, uint32_t process, const char *path)
{
    struct imported_stacks *stacks = user;
    int fd = session_of(stacks, process) ? target_files_open(&stacks->files, process, path) : -1;
    return fd >= 0 ? fd : target_finder_open_here(path);
}

static bool read_memory(void *user, uint32_t process, uint64_t time_ns, uint64_t addr, void *into,
                        size_t size)
{
    struct memory_session *session = session_of(user, process);
    return session && memory_session_read(session, time_ns, addr, into, size);
}

static void hear_method(void *user, const struct runtime_method *method)
{
    const struct method_hearer *hearer = user;
    struct method_place place = { method->addr, method->size_bytes, method->dynamic };
    sample_unwinder_method(hearer->stacks->unwinder, hearer->process, &place, false);
}

static void hear_module(void *user, const struct runtime_module *module)
{
    (void)user;
    (void)module;
}

/* Where it lies is all that is wanted: its name is asked for with those of all others. */
static bool find_method(void *user, uint32_t process, uint64_t addr, uint64_t time_ns)
{
    struct method_hearer hearer = { user, process };
    struct runtime_sink sink = { .user = &hearer, .method = hear_method, .module = hear_module };
    struct memory_session *session = session_of(user, process);
    if (session)
        memory_session_find(session, addr, time_ns, &sink);
    return true;
}

static void *stacks_open(struct trace_builder *b, const struct import_machine *made_on)
{
    struct utsname here;
    struct imported_stacks *stacks = mem_alloc(1, sizeof *stacks);
    struct sample_sources sources = {
        .machine = made_on->arch[0] ? machine_of_name(made_on->arch) : machine_own(),
        .registers = made_on->registers,
        .own_kernel = uname(&here) == 0 && strcmp(here.release, made_on->kernel) == 0,
        .open = open_file,
        .read = read_memory,
        .find_method = find_method,
        .user = stacks,
    };
    if (!sources.machine) {
        free(stacks);
        return NULL;
    }
    stacks->b = b;
    stacks->unwinder = sample_unwinder_new(b, &sources);
    return stacks;
}

static bool stacks_run(void *user, uint32_t process, const struct perf_sample *sample, struct raw_sample *raw)
{
    const struct imported_stacks *stacks = user;
    struct unwound_stack stack;
    if (!sample_unwinder_run(stacks->unwinder, process, raw->kind, sample, NULL, 0, &stack))
        return false;
    raw->user = stack.ips;
    raw->user_exact = stack.exact;
    raw->user_count = stack.count;
    raw->end = stack.end;
    return true;
}

static void stacks_mapped(void *user, uint32_t process, uint64_t addr)
{
    const struct imported_stacks *stacks = user;
    sample_unwinder_mapped(stacks->unwinder, process, addr);
}

static void stacks_close(void *user)
{
    struct imported_stacks *stacks = user;
    sample_unwinder_fact(stacks->unwinder);
    sample_unwinder_free(stacks->unwinder);
    for (size_t i = 0; i < stacks->capacity; i++)
        memory_session_close(stacks->processes[i].session);
    target_files_done(&stacks->files);
    free(stacks->processes);
    free(stacks);
}

const struct import_unwinder import_stacks = {
    .open = stacks_open, .mapped = stacks_mapped, .run = stacks_run, .close = stacks_close
};
