#include "clr/async_type.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/type_fields.h"
#include "read/ecma_signature.h"

enum { BASES_MAX = 32 };

#define TASK       "System.Threading.Tasks.Task"
#define VALUE_TASK "System.Threading.Tasks.ValueTask"
#define MACHINE    "StateMachineBox`"
#define SERVICES   "System.Runtime.CompilerServices."

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* "Ns.Outer`1+Inner`1" of a name without the type arguments. */
static bool is_named(struct loaded_types *types, uint64_t table, const char *name)
{
    const struct loaded_type *type = loaded_types_find(types, table);
    size_t size = strlen(name);
    return type && type->name && begins_with(type->name, name) &&
           (type->name[size] == 0 || type->name[size] == '[');
}

/* The type itself or one of its bases; 0 when none is called that. */
static uint64_t find_base(struct loaded_types *types, uint64_t table, const char *name)
{
    for (unsigned i = 0; table && i < BASES_MAX; i++) {
        if (is_named(types, table, name))
            return table;
        table = type_fields_base(types, table);
    }
    return 0;
}

static uint32_t field_of(struct loaded_types *types, uint64_t table, const char *name)
{
    return table ? type_fields_in_object(types, table, name) : ASYNC_NO_FIELD;
}

/* A box, or what is derived from one. */
static uint64_t find_box(struct loaded_types *types, uint64_t table)
{
    for (unsigned i = 0; table && i < BASES_MAX; i++) {
        const struct loaded_type *type = loaded_types_find(types, table);
        struct type_field field;
        if (type && type->name && begins_with(type->name, SERVICES) && strstr(type->name, MACHINE) &&
            type_fields_find(types, table, "StateMachine", &field))
            return table;
        table = type_fields_base(types, table);
    }
    return 0;
}

/* A compiler's state machines. */
struct machine_fields {
    const char *state, *awaiter; /* a field's name, the beginning of others' */
    int32_t first_await;
};

static const struct machine_fields compilers[] = {
    { "<>1__state", "<>u__", 0 },        /* C# */
    { "$State", "$A", 0 },               /* Visual Basic */
    { "ResumptionPoint", "awaiter", 1 }, /* F# */
};

struct awaiter_search {
    const struct machine_fields *fields;
    struct async_type *type;
};

static bool take_awaiter(void *user, struct span name, const struct type_field *field)
{
    const struct awaiter_search *search = user;
    struct async_type *type = search->type;
    if (span_begins(name, search->fields->awaiter) &&
        (field->element == ELEMENT_VALUETYPE || field->element == ELEMENT_CLASS))
        type->awaiters[type->awaiter_count++] = field->offset;
    return type->awaiter_count < ASYNC_AWAITERS_MAX;
}

/* A loop's workers have it in a local variable (Parallel.ForEachAsync.cs). */
static bool take_loop(void *user, struct span name, const struct type_field *field)
{
    uint32_t *loop = user;
    if (!span_begins(name, "<state>") || field->element != ELEMENT_CLASS)
        return true;
    *loop = field->offset;
    return false;
}

/* Where a state machine has what its end is the end of, though nobody awaits it itself. */
static uint32_t find_completed(struct loaded_types *types, uint64_t machine)
{
    const struct loaded_type *type = loaded_types_find(types, machine);
    uint32_t loop = ASYNC_NO_FIELD;
    if (type && type->name && begins_with(type->name, "System.Threading.Tasks.Parallel+"))
        type_fields_list(types, machine, take_loop, &loop);
    return loop;
}

static uint32_t move_next(const struct ecma_metadata *md, uint32_t type_row)
{
    static const char name[] = "MoveNext";
    uint32_t row, end;
    for (ecma_type_methods(md, type_row, &row, &end); row < end; row++)
        if (span_equals(ecma_cell_string(md, ECMA_METHOD_DEF, row, ECMA_METHOD_DEF_NAME),
                        span_of(name, strlen(name))))
            return ecma_token(ECMA_METHOD_DEF, row);
    return 0;
}

static bool take_name(struct loaded_types *types, uint64_t table, struct async_type *out)
{
    const struct loaded_type *type = loaded_types_find(types, table);
    if (!type)
        return false;
    const struct loaded_module *module = loaded_types_module(types, type);
    out->name = mem_copy_string(type->name ? type->name : "");
    out->module = mem_copy_string(module->name);
    out->path = mem_copy_string(module->file_path);
    if (out->kind == ASYNC_METHOD)
        out->token = move_next(&module->md, type->table.row);
    return true;
}

static bool read_machine(struct loaded_types *types, uint64_t box, struct async_type *out)
{
    const struct loaded_type *type = loaded_types_find(types, box);
    struct type_field machine, state;
    uint64_t list;
    unsigned count = type ? method_table_arguments(types->pages, &type->table, &list) : 0;
    if (count == 0 || !type_fields_find(types, box, "StateMachine", &machine))
        return false;
    uint64_t table = memory_pages_u64(types->pages, list + 8 * (uint64_t)(count - 1));
    out->kind = ASYNC_METHOD;
    out->machine = OBJECT_FIELDS + machine.offset;
    out->by_reference = machine.element == ELEMENT_CLASS;
    uint32_t fields = out->by_reference ? OBJECT_FIELDS : 0;
    for (size_t i = 0; i < ARRAY_LEN(compilers) && out->state == ASYNC_NO_FIELD; i++) {
        if (!type_fields_find(types, table, compilers[i].state, &state))
            continue;
        out->state = fields + state.offset;
        out->first_await = compilers[i].first_await;
        type_fields_list(types, table, take_awaiter, &(struct awaiter_search){ &compilers[i], out });
    }
    for (unsigned i = 0; i < out->awaiter_count; i++)
        out->awaiters[i] += fields;
    out->completes = find_completed(types, table);
    if (out->completes != ASYNC_NO_FIELD)
        out->completes += fields;
    return take_name(types, table, out);
}

static const struct async_type no_type = {
    .kind = ASYNC_TASK,
    .flags = ASYNC_NO_FIELD,
    .continuation = ASYNC_NO_FIELD,
    .first = ASYNC_NO_FIELD,
    .resume = ASYNC_NO_FIELD,
    .machine = ASYNC_NO_FIELD,
    .completes = ASYNC_NO_FIELD,
    .state = ASYNC_NO_FIELD,
};

/* Subtypes made for one method's variables have no fields with names; those made by hand say what is awaited.
 */
static bool read_continuation(struct loaded_types *types, uint64_t table, uint64_t base,
                              struct async_type *out)
{
    static const char *const awaited[] = { "Task", "Source" };
    out->kind = ASYNC_AWAIT;
    out->continuation = field_of(types, base, "Next");
    out->resume = field_of(types, base, "ResumeInfo");
    out->state = field_of(types, base, "State");
    for (size_t i = 0; table != base && i < ARRAY_LEN(awaited); i++) {
        uint32_t field = field_of(types, table, awaited[i]);
        if (field != ASYNC_NO_FIELD)
            out->awaiters[out->awaiter_count++] = field;
    }
    return out->continuation != ASYNC_NO_FIELD && out->resume != ASYNC_NO_FIELD &&
           take_name(types, base, out);
}

/* Tasks made of a ValueTask that is none: they wait for what that was made of (ValueTask.cs). */
static const char *const stand_ins[] = {
    VALUE_TASK "+ValueTaskSourceAsTask",
    VALUE_TASK "`1+ValueTaskSourceAsTask",
};

static bool read_task(struct loaded_types *types, uint64_t table, uint64_t task, struct async_type *out)
{
    if (find_base(types, table, SERVICES "AsyncHelpers+RuntimeAsyncTask`1")) {
        out->kind = ASYNC_RUN;
        out->first = field_of(types, task, "m_stateObject");
    }
    for (size_t i = 0; i < ARRAY_LEN(stand_ins) && out->awaiter_count == 0; i++) {
        uint32_t source = field_of(types, find_base(types, table, stand_ins[i]), "_source");
        if (source != ASYNC_NO_FIELD)
            out->awaiters[out->awaiter_count++] = source;
    }
    return take_name(types, table, out);
}

bool async_type_read(struct loaded_types *types, uint64_t table, struct async_type *out)
{
    struct async_type type = no_type;
    uint64_t task = find_base(types, table, TASK), box = find_box(types, table);
    uint64_t continuation = task || box ? 0 : find_base(types, table, SERVICES "Continuation");
    /* what Task.WhenEach gives to each of its tasks is no Task, but goes on like one (Task.cs) */
    if (!task && !box && !continuation && !is_named(types, table, TASK "+WhenEachState"))
        return false;
    type.table = table;
    type.is_task = task != 0;
    type.flags = field_of(types, task, "m_stateFlags");
    type.continuation = field_of(types, task, "m_continuationObject");
    if (!(box            ? read_machine(types, box, &type)
          : continuation ? read_continuation(types, table, continuation, &type)
                         : read_task(types, table, task, &type)))
        return false;
    *out = type;
    return true;
}

bool async_type_read_source(struct loaded_types *types, uint64_t table, struct async_type *out)
{
    struct async_type type = no_type;
    type.table = table;
    type.kind = ASYNC_SOURCE;
    if (!take_name(types, table, &type))
        return false;
    *out = type;
    return true;
}

void async_type_of_resume(uint64_t resume, uint64_t addr, struct async_type *out)
{
    *out = no_type;
    out->kind = ASYNC_METHOD;
    out->resumes = resume;
    out->addr = addr;
    out->name = mem_copy_string("");
    out->module = mem_copy_string("");
    out->path = mem_copy_string("");
}

void async_type_done(struct async_type *type)
{
    free(type->name);
    free(type->module);
    free(type->path);
    type->name = type->module = type->path = NULL;
}

void async_link_read(struct loaded_types *types, uint64_t table, struct async_link *out)
{
    static const struct {
        const char *type, *field;
    } links[] = {
        { "System.Delegate", "_target" },
        { "System.Threading.Tasks.AwaitTaskContinuation", "m_action" },
        { "System.Threading.Tasks.ContinueWithTaskContinuation", "m_task" },
        { "System.Threading.Tasks.TaskCompletionSource", "_task" },
        { "System.Threading.Tasks.TaskCompletionSource`1", "_task" },
        { SERVICES "AsyncMethodBuilderCore+ContinuationWrapper", "_continuation" },
    };
    *out = (struct async_link){ table, ASYNC_NO_FIELD, ASYNC_NO_FIELD, ASYNC_NO_FIELD };
    for (size_t i = 0; i < ARRAY_LEN(links) && out->next == ASYNC_NO_FIELD; i++)
        out->next = field_of(types, find_base(types, table, links[i].type), links[i].field);
    if (is_named(types, table, "System.Collections.Generic.List`1")) {
        out->items = field_of(types, table, "_items");
        out->size = field_of(types, table, "_size");
    }
}
