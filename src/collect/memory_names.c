#include "collect/memory_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/il_offsets.h"
#include "collect/memory_session.h"
#include "collect/process_scan.h"
#include "collect/read_pace.h"
#include "collect/stub_kinds.h"
#include "collect/thread_names.h"
#include "collect/unpacked_images.h"

enum {
    MEMORY_PROCESSES_MAX = 4096,
    MEMORY_TRIES = 11,
    MEMORY_TRY_MS = 10,   /* before the second try; then twice as long each time */
    MEMORY_LOOK_MS = 250, /* between looks; then twice as long each time that nothing is new */
    MEMORY_LOOK_MS_MAX = 1000,
    MEMORY_HURRY_MS = 1000,
};

#define MS_NS UINT64_C(1000000)

struct known_memory {
    struct memory_session *session; /* NULL: not opened yet, or not to be had */
    struct unpacked_images *images; /* with the session */
    struct memory_names *names;
    uint32_t process;
    uint32_t space_without; /* process_state.space in which no runtime was mapped */
    unsigned tries;
    bool given_up;
    uint64_t next_try_ns;
    uint32_t asked; /* code up to which modules were asked for */
    size_t seen;    /* locations that were looked through */
    struct read_pace pace;
    uint64_t next_look_ns;
    unsigned look_ms;
};

struct memory_names {
    struct trace_builder *b;
    const struct target_files *files;
    struct runtime_names *methods;
    void (*note)(void *user, const char *text);
    void *user;
    struct known_memory *processes; /* by row of the trace */
    size_t capacity;
    uint64_t next_look_ns;   /* of any process */
    size_t news;             /* methods that are there since the last look */
    bool churns;             /* the last looks told of any */
    uint64_t hurry_until_ns; /* as what was sampled was gone when it was looked at */
    struct il_offsets *il_offsets;
    struct stub_kinds *stub_kinds;
    struct method_place *found; /* of the question under way */
};

struct memory_names *memory_names_new(struct trace_builder *b, const struct target_files *files,
                                      struct runtime_names *methods,
                                      void (*note)(void *user, const char *text), void *user)
{
    struct memory_names *names = mem_alloc(1, sizeof *names);
    *names = (struct memory_names){ .b = b, .files = files, .methods = methods, .note = note, .user = user };
    names->il_offsets = il_offsets_new(&b->trace);
    names->stub_kinds = stub_kinds_new(&b->trace);
    return names;
}

static void close_session(struct known_memory *known)
{
    unpacked_images_free(known->images);
    memory_session_close(known->session);
    known->images = NULL;
    known->session = NULL;
}

void memory_names_free(struct memory_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->capacity; i++)
        close_session(&names->processes[i]);
    il_offsets_free(names->il_offsets);
    stub_kinds_free(names->stub_kinds);
    free(names->processes);
    free(names);
}

/* Opening. */

/* A runtime that starts cannot be told from its memory yet, nor one whose process is about to end; one that
 * is not there never can. */
static void memory_refused(struct memory_names *names, struct known_memory *known, const struct error *err)
{
    char text[1200];
    bool may_change = err->kind == ERROR_UNSUPPORTED || err->kind == ERROR_TARGET;
    known->given_up = !may_change || ++known->tries == MEMORY_TRIES;
    known->next_try_ns = clock_monotonic_ns() + (MEMORY_TRY_MS * MS_NS << known->tries) / 2;
    if (!known->given_up || err->kind == ERROR_TARGET || !names->note)
        return;
    snprintf(
        text, sizeof text,
        "stacks of process %" PRIu32 " follow frame pointers through jitted code, callers of leaf methods "
        "are missing: %s%s%s",
        names->b->trace.processes.rows[known->process].pid, err->what, err->hint[0] ? "; " : "", err->hint);
    names->note(names->user, text);
}

static struct known_memory *memory_of(struct memory_names *names, uint32_t process)
{
    if (process >= MEMORY_PROCESSES_MAX)
        return NULL;
    names->processes =
        mem_grow_zeroed(names->processes, &names->capacity, process + 1, sizeof *names->processes);
    struct known_memory *known = &names->processes[process];
    known->names = names;
    known->process = process;
    return known;
}

/* Telling. */

static void memory_method(void *user, const struct runtime_method *method)
{
    const struct known_memory *known = user;
    struct memory_names *names = known->names;
    if (names->found)
        *names->found = (struct method_place){ method->addr, method->size_bytes, method->dynamic };
    else if (method->change == RUNTIME_METHOD_LOADED && method->time_ns != CODE_FROM_EVER)
        names->news++;
    runtime_names_method(names->methods, known->process, RESOLVER_MEMORY, method);
}

static void memory_module(void *user, const struct runtime_module *module)
{
    const struct known_memory *known = user;
    told_code_module(runtime_names_code(known->names->methods), known->process, module);
}

static struct runtime_sink memory_sink(struct known_memory *known)
{
    return (struct runtime_sink){ .user = known, .method = memory_method, .module = memory_module };
}

static int addr_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The addresses that a process was sampled at, of which no method is known, or not which instance of it; from
 * a row on. The caller frees. */
static uint64_t *unnamed_addrs(const struct memory_names *names, uint32_t process, size_t from, size_t *count)
{
    const struct trace *t = &names->b->trace;
    uint64_t *addrs = mem_alloc(t->locations.count - from + 1, sizeof *addrs);
    *count = 0;
    for (size_t i = from; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        bool unknown = !row->code || told_code_is_any_instance(runtime_names_code(names->methods), row->code);
        if (row->process == process && unknown && trace_location_may_be_jitted(t, row))
            addrs[(*count)++] = row->addr - (row->is_return ? 1 : 0);
    }
    qsort(addrs, *count, sizeof *addrs, addr_compare);
    return addrs;
}

/* The same of those that were not asked for yet, while samples come. The caller frees. */
static uint64_t *new_unnamed_addrs(struct known_memory *known, size_t *count)
{
    const struct trace *t = &known->names->b->trace;
    uint64_t *addrs = unnamed_addrs(known->names, known->process, known->seen, count);
    known->seen = t->locations.count;
    return addrs;
}

/* As no sample comes any more. */
static void name_all_sampled(struct known_memory *known)
{
    size_t count;
    AUTO_FREE uint64_t *addrs = unnamed_addrs(known->names, known->process, 1, &count);
    struct runtime_sink sink = memory_sink(known);
    memory_session_name(known->session, addrs, count, &sink, NULL);
}

static void tell_images(struct known_memory *known)
{
    unpacked_images_tell(known->images, known->names->b, known->process);
}

/* Of what is mapped it is found out once. */
static bool has_coreclr(struct known_memory *known)
{
    const struct trace_builder *b = known->names->b;
    uint32_t space = b->states[known->process].space;
    if (process_scan_has_coreclr(&b->trace, known->process))
        return true;
    if (known->space_without == space)
        return false;
    bool maps = process_scan_maps_coreclr(b, known->process);
    known->space_without = maps ? 0 : space;
    return maps;
}

/* The session of a process that has one, or NULL. */
static struct memory_session *memory_session_of(struct memory_names *names, uint32_t process)
{
    struct known_memory *known = memory_of(names, process);
    if (!known || known->session || known->given_up || clock_monotonic_ns() < known->next_try_ns)
        return known ? known->session : NULL;
    const struct trace_process *row = &names->b->trace.processes.rows[process];
    struct error err;
    if (row->to_ns || !has_coreclr(known) || !process_scan_start(names->b, process))
        return NULL;
    if (!memory_session_start((pid_t)row->pid, row->start_ticks, target_files_root(names->files, process),
                              &known->session, &err))
        memory_refused(names, known, &err);
    if (!known->session)
        return NULL;
    read_pace_begin(&known->pace, clock_monotonic_ns());
    known->images =
        unpacked_images_new(memory_session_memory(known->session), memory_session_files(known->session));
    tell_images(known);
    size_t count;
    AUTO_FREE uint64_t *addrs = new_unnamed_addrs(known, &count); /* it may be gone before the end */
    struct runtime_sink sink = memory_sink(known);
    /* no event will tell of what is there already */
    memory_session_look(known->session, addrs, count, &sink, NULL);
    code_walk_trim(memory_session_walk(known->session)); /* samples lead to few of its modules */
    return known->session;
}

bool memory_names_open(struct memory_names *names, uint32_t process)
{
    return memory_session_of(names, process) != NULL;
}

int memory_names_retry_ms(const struct memory_names *names, uint32_t process)
{
    const struct known_memory *known = process < names->capacity ? &names->processes[process] : NULL;
    uint64_t now_ns = clock_monotonic_ns();
    if (!known || known->session || known->given_up || known->tries == 0)
        return -1;
    return known->next_try_ns > now_ns ? (int)((known->next_try_ns - now_ns) / MS_NS) + 1 : 0;
}

bool memory_names_read(struct memory_names *names, uint32_t process, uint64_t time_ns, uint64_t addr,
                       void *into, size_t size)
{
    struct memory_session *session = memory_session_of(names, process);
    return session && memory_session_read(session, time_ns, addr, into, size);
}

void memory_names_follow(struct memory_names *names, uint32_t process, uint64_t time_ns, uint64_t begin)
{
    struct memory_session *session = memory_session_of(names, process);
    if (session)
        memory_session_follow(session, time_ns, begin);
}

bool memory_names_find(struct memory_names *names, uint32_t process, uint64_t addr, uint64_t time_ns,
                       struct method_place *out)
{
    struct memory_session *session = memory_session_of(names, process);
    if (!session)
        return false;
    struct runtime_sink sink = memory_sink(&names->processes[process]);
    names->found = out;
    bool found = memory_session_find(session, addr, time_ns, &sink);
    names->found = NULL;
    if (!found)
        tell_images(&names->processes[process]);
    return found;
}

void memory_names_sampled(struct memory_names *names, uint32_t process, uint32_t stack)
{
    if (memory_names_knows(names, process))
        read_pace_sample(&names->processes[process].pace, &names->b->trace, stack);
}

void memory_names_look_at_stub(struct memory_names *names, uint32_t process, uint64_t addr)
{
    if (memory_names_knows(names, process) &&
        !stub_kinds_look(names->stub_kinds, process, addr,
                         memory_session_memory(names->processes[process].session)))
        names->hurry_until_ns = clock_monotonic_ns() + MEMORY_HURRY_MS * MS_NS;
}

bool memory_names_knows(const struct memory_names *names, uint32_t process)
{
    return process < names->capacity && names->processes[process].session;
}

/* What only the code at sampled places tells. */
static void read_sampled_code(struct known_memory *known)
{
    struct memory_names *names = known->names;
    struct il_map_reader maps = memory_session_il_maps(known->session);
    il_offsets_update(names->il_offsets, known->process, &maps);
    stub_kinds_update(names->stub_kinds, known->process, memory_session_memory(known->session));
}

/* Of a runtime that tells of its methods: those that were there before, and of which instance the others are.
 */
static void learn_sampled_methods(struct known_memory *known)
{
    size_t count;
    AUTO_FREE uint64_t *addrs = new_unnamed_addrs(known, &count);
    struct runtime_sink sink = memory_sink(known);
    if (count)
        memory_session_learn(known->session, addrs, count, &sink, NULL);
}

static void read_sampled(struct known_memory *known, uint64_t now_ns)
{
    struct memory_names *names = known->names;
    const struct trace *t = &names->b->trace;
    bool due = memory_names_churn(names) ? read_pace_has_news(&known->pace, t)
                                         : read_pace_is_due(&known->pace, t, now_ns);
    if (!due)
        return;
    read_pace_read(&known->pace, t, now_ns);
    read_sampled_code(known);
    if (runtime_names_listens(names->methods, known->process))
        learn_sampled_methods(known);
}

/* Whether code that can be freed is new. */
static bool look_at(struct known_memory *known, bool sampled)
{
    struct memory_names *names = known->names;
    if (runtime_names_listens(names->methods, known->process))
        return false;
    size_t count = 0;
    AUTO_FREE uint64_t *addrs = sampled ? new_unnamed_addrs(known, &count) : NULL;
    struct runtime_sink sink = memory_sink(known);
    names->news = 0;
    memory_session_look(known->session, addrs, count, &sink, NULL);
    return names->news > 0;
}

static void look_when_due(struct known_memory *known, uint64_t now_ns, bool sampled)
{
    if (now_ns < known->next_look_ns)
        return;
    bool news = look_at(known, sampled);
    known->names->churns |= news;
    known->look_ms = news || !known->look_ms ? MEMORY_LOOK_MS : known->look_ms * 2;
    if (known->look_ms > MEMORY_LOOK_MS_MAX)
        known->look_ms = MEMORY_LOOK_MS_MAX;
    known->next_look_ns = now_ns + known->look_ms * MS_NS;
}

void memory_names_look(struct memory_names *names, bool sampled)
{
    uint64_t now_ns = clock_monotonic_ns();
    bool due = now_ns >= names->next_look_ns;
    if (due) {
        names->next_look_ns = now_ns + MEMORY_LOOK_MS * MS_NS;
        names->churns = false;
    }
    for (size_t i = 0; i < names->capacity; i++) {
        struct known_memory *known = &names->processes[i];
        if (!known->session)
            continue;
        read_sampled(known, now_ns);
        if (due)
            look_when_due(known, now_ns, sampled);
    }
}

bool memory_names_churn(const struct memory_names *names)
{
    return names->churns || (names->hurry_until_ns && clock_monotonic_ns() < names->hurry_until_ns);
}

/* The end. */

/* Of methods that the runtime told of, whose modules it had before. */
static void tell_modules(struct known_memory *known, bool all)
{
    struct runtime_sink sink = memory_sink(known);
    uint32_t code = all ? 0 : known->asked;
    const struct told_code *told = runtime_names_code(known->names->methods);
    uint64_t addr;
    while (told_code_next_without_module(told, known->process, &code, &addr))
        memory_session_module(known->session, addr, &sink);
    known->asked = known->names->b->trace.codes.count - 1;
}

static void finish(struct known_memory *known)
{
    memory_session_expire(known->session);
    read_sampled_code(known); /* that of the last samples */
    tell_images(known);
    name_all_sampled(known);
    tell_modules(known, true);
    struct il_map_reader maps = memory_session_il_maps(known->session);
    il_offsets_finish(known->names->il_offsets, known->process, &maps);
    thread_names_extend(known->names->b, known->process, memory_session_walk(known->session));
}

pid_t memory_names_hung(const struct memory_names *names)
{
    for (size_t i = 0; i < names->capacity; i++)
        if (names->processes[i].session && memory_session_hangs(names->processes[i].session))
            return (pid_t)names->b->trace.processes.rows[i].pid;
    return 0;
}

void memory_names_finish(struct memory_names *names)
{
    for (size_t i = 0; i < names->capacity; i++) {
        /* one that was told to be a .NET process only lately was not opened yet */
        if (!names->processes[i].names || !memory_session_of(names, (uint32_t)i))
            continue;
        finish(&names->processes[i]);
        code_walk_trim(memory_session_walk(names->processes[i].session));
    }
}

void memory_names_close_ended(struct memory_names *names, uint64_t before_ns)
{
    for (size_t i = 0; i < names->capacity; i++) {
        struct known_memory *known = &names->processes[i];
        uint64_t ended_ns = known->session ? names->b->trace.processes.rows[i].to_ns : 0;
        if (!ended_ns || ended_ns >= before_ns)
            continue;
        finish(known);
        close_session(known);
    }
}

void memory_names_modules(struct memory_names *names, bool all)
{
    for (size_t i = 0; i < names->capacity; i++)
        if (names->processes[i].session)
            tell_modules(&names->processes[i], all);
}
