#include "collect/code_census.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "clr/module_name.h"
#include "collect/process_scan.h"
#include "collect/runtime_session.h"
#include "collect/unpacked_images.h"

enum { CENSUS_CHAINS = 2, CENSUS_LOOK_MS = 100 };

struct told_method {
    uint64_t addr, size_bytes, module_id, time_ns;
    uint32_t name, type_params, token; /* all but the token: strings */
    uint8_t tier;
    bool dynamic, gone;
};

struct told_module {
    uint64_t id;
    uint32_t path; /* string */
};

/* What a source tells, in its order: a module may come after its methods. */
struct telling {
    struct trace *t;
    struct told_method *methods;
    size_t method_count, method_capacity;
    struct told_module *modules;
    size_t module_count, module_capacity;
};

static void telling_done(struct telling *telling)
{
    free(telling->methods);
    free(telling->modules);
}

static void hear_method(void *user, const struct runtime_method *method)
{
    struct telling *telling = user;
    telling->methods = mem_grow(telling->methods, &telling->method_capacity, telling->method_count + 1,
                                sizeof *telling->methods);
    telling->methods[telling->method_count++] = (struct told_method){
        .addr = method->addr,
        .size_bytes = method->size_bytes,
        .module_id = method->module_id,
        .time_ns = method->time_ns,
        .name = intern_add(&telling->t->strings, method->name),
        .type_params = intern_add(&telling->t->strings, method->type_params),
        .token = method->dynamic ? 0 : method->token,
        .tier = method->tier,
        .dynamic = method->dynamic,
        .gone = method->change == RUNTIME_METHOD_UNLOADED,
    };
}

static void hear_module(void *user, const struct runtime_module *module)
{
    struct telling *telling = user;
    if (module->change == RUNTIME_METHOD_UNLOADED)
        return;
    telling->modules = mem_grow(telling->modules, &telling->module_capacity, telling->module_count + 1,
                                sizeof *telling->modules);
    telling->modules[telling->module_count++] =
        (struct told_module){ module->module_id, intern_add(&telling->t->strings, module->path) };
}

static int module_compare(const void *a, const void *b)
{
    const struct told_module *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* By address; of one address the latest first. */
static int method_compare(const void *a, const void *b)
{
    const struct told_method *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

static void add_code(struct code_census *census, const struct telling *telling,
                     const struct told_method *method)
{
    struct trace *t = &census->b.trace;
    struct told_module wanted = { .id = method->module_id };
    const struct told_module *module = telling->module_count
                                           ? bsearch(&wanted, telling->modules, telling->module_count,
                                                     sizeof *telling->modules, module_compare)
                                           : NULL;
    struct trace_function function = {
        .name = method->name,
        .type_params = method->type_params,
        .module = module ? trace_add_span(t, module_simple_name(trace_string_span(t, module->path))) : 0,
        .kind = method->dynamic ? CODE_DYNAMIC : CODE_JIT,
    };
    struct trace_code code = {
        .process = census->process,
        .function = trace_builder_function(&census->b, &function),
        .addr = method->addr,
        .size_bytes = method->size_bytes,
        .module_path = module ? module->path : 0,
        .token = method->token,
        .tier = method->tier,
        .resolver = (uint8_t)census->told_by,
    };
    trace_builder_code(&census->b, &code);
}

/* What lives now: of each address the last that was told, unless it is gone. */
static void add_codes(struct code_census *census, struct telling *telling)
{
    if (telling->module_count)
        qsort(telling->modules, telling->module_count, sizeof *telling->modules, module_compare);
    if (telling->method_count)
        qsort(telling->methods, telling->method_count, sizeof *telling->methods, method_compare);
    for (size_t i = 0; i < telling->method_count; i++)
        if (!telling->methods[i].gone && (i == 0 || telling->methods[i].addr != telling->methods[i - 1].addr))
            add_code(census, telling, &telling->methods[i]);
}

static bool list_methods(struct code_census *census, const struct code_census_choice *choice,
                         const struct runtime_sink *sink)
{
    struct error *err = &census->memory_error;
    unpacked_images_tell_once(memory_session_memory(census->memory), memory_session_files(census->memory),
                              &census->b, census->process);
    return choice->addrs ? memory_session_name(census->memory, choice->addrs, choice->count, sink, err)
                         : memory_session_name_all(census->memory, sink, err);
}

static bool ask_memory(struct code_census *census, const struct target *target,
                       const struct code_census_choice *choice, const struct runtime_sink *sink)
{
    struct error *err = &census->memory_error;
    int root_fd = target_files_root(&census->files, census->process);
    return memory_session_start(target->pid, target->start_ticks, root_fd, &census->memory, err) &&
           list_methods(census, choice, sink);
}

static bool ask_core(struct code_census *census, const struct code_census_choice *choice,
                     const struct runtime_sink *sink)
{
    struct stacks_target target = core_target_stacks(census->core);
    return memory_session_over(target.memory, &target.files, &census->memory, &census->memory_error) &&
           list_methods(census, choice, sink);
}

static bool drain_to_end(struct runtime_session *session, const struct runtime_sink *sink, struct error *err)
{
    uint64_t end_ns = clock_monotonic_ns() + CODE_CENSUS_PATIENCE_MS * UINT64_C(1000000);
    while (!runtime_session_ended(session)) {
        struct pollfd ready[RUNTIME_SESSION_STREAMS];
        if (clock_monotonic_ns() > end_ns)
            return error_set(err, ERROR_TARGET, "the runtime did not list its methods within %d s",
                             CODE_CENSUS_PATIENCE_MS / 1000);
        poll(ready, runtime_session_polls(session, ready), CENSUS_LOOK_MS);
        if (!runtime_session_drain(session, sink, err))
            return false;
    }
    return runtime_session_complete(session) ||
           error_set(err, ERROR_TARGET, "the runtime ended its list of methods early");
}

static bool ask_runtime(struct code_census *census, const struct target *target,
                        const struct runtime_sink *sink)
{
    struct error *err = &census->runtime_error;
    struct runtime_session_options options = { 0 };
    struct runtime_session *session;
    if (!runtime_session_start(target->pid, target->start_ticks, &options, &session, err))
        return false;
    bool ok = runtime_session_stop(session, err) && drain_to_end(session, sink, err);
    runtime_session_close(session);
    return ok;
}

/* `target`: NULL for a core dump. */
static void ask(struct code_census *census, const struct target *target,
                const struct code_census_choice *choice)
{
    struct telling telling = { .t = &census->b.trace };
    struct runtime_sink sink = { .user = &telling, .method = hear_method, .module = hear_module };
    if (target ? ask_memory(census, target, choice, &sink) : ask_core(census, choice, &sink)) {
        census->told_by = RESOLVER_MEMORY;
    } else if (target && !choice->by_memory_only) {
        telling.method_count = telling.module_count = 0;
        if (ask_runtime(census, target, &sink))
            census->told_by = RESOLVER_EVENTPIPE;
    }
    if (census->told_by != RESOLVER_NONE)
        add_codes(census, &telling);
    telling_done(&telling);
}

bool code_census_take(const struct target *target, const struct code_census_choice *choice,
                      struct code_census *out, struct error *err)
{
    struct code_census census = { 0 };
    if (target->maps_denied) {
        error_set(err, ERROR_PERMISSION, "the mappings of process %d may not be seen", (int)target->pid);
        return error_hint(err, "run as the user of that process, or with CAP_SYS_PTRACE (sudo)");
    }
    trace_builder_init(&census.b, CENSUS_CHAINS);
    census.process = process_scan_read(&census.b, (uint32_t)target->pid, 0);
    process_scan_identity(&census.b, census.process, target);
    target_files_add(&census.files, census.process, (uint32_t)target->pid);
    if (!choice->none)
        ask(&census, target, choice);
    if (!target_is_alive(target)) {
        code_census_done(&census);
        return error_set(err, ERROR_TARGET, "process %d ended meanwhile", (int)target->pid);
    }
    *out = census;
    return true;
}

void code_census_take_core(struct core_target *core, const struct code_census_choice *choice,
                           struct code_census *out)
{
    *out = (struct code_census){ .core = core };
    trace_builder_init(&out->b, CENSUS_CHAINS);
    out->process = core_target_describe(core, &out->b);
    ask(out, NULL, choice);
}

void code_census_done(struct code_census *census)
{
    memory_session_close(census->memory);
    target_files_done(&census->files);
    trace_builder_done(&census->b);
}
