#include "cli/stack_async.h"

static void write_frame(const struct stack_async *async, size_t i, struct json_writer *w)
{
    const struct async_frame *frame = &async->chains.frames[i];
    const struct async_type *type = &async->graph.types[frame->type];
    const struct async_place *place = &async->places[i];
    json_begin_object(w);
    json_key(w, "function");
    json_quoted(w, async->names[frame->type]);
    json_key(w, "module");
    json_quoted(w, type->module[0] ? type->module : NULL);
    json_key(w, "kind");
    json_quoted(w, type->kind == ASYNC_METHOD ? "method" : "task");
    json_key(w, "state");
    if (type->kind == ASYNC_METHOD && frame->state != ASYNC_STATE_UNKNOWN)
        json_i64(w, frame->state);
    else
        json_absent(w);
    json_key(w, "il_offset");
    if (place->file)
        json_u64(w, place->il_off);
    else
        json_absent(w);
    json_key(w, "file");
    json_quoted(w, place->file);
    json_key(w, "line");
    if (place->file)
        json_u64(w, place->line);
    else
        json_absent(w);
    json_end_object(w);
}

static void write_chain(const struct stack_async *async, const struct async_chain *chain,
                        struct json_writer *w)
{
    static const char *const waits[] = { [ASYNC_WAIT_UNKNOWN] = "unknown",
                                         [ASYNC_WAIT_OBJECT] = "object",
                                         [ASYNC_WAIT_RUNNING] = "running",
                                         [ASYNC_WAIT_READY] = "ready",
                                         [ASYNC_WAIT_CIRCLE] = "circle" };
    json_begin_object(w);
    json_key(w, "count");
    json_u64(w, chain->count);
    json_key(w, "wait");
    json_quoted(w, waits[chain->wait]);
    json_key(w, "waiting_on");
    json_quoted(w, chain->wait == ASYNC_WAIT_OBJECT ? async->names[chain->waits_type] : NULL);
    json_key(w, "frames");
    json_begin_array(w);
    for (uint32_t k = 0; k < chain->frame_count; k++)
        write_frame(async, chain->first_frame + k, w);
    json_end_array(w);
    json_key(w, "end");
    json_quoted(w, chain->truncated ? "truncated" : "whole");
    json_end_object(w);
}

static void write_methods(const struct stack_async *async, struct json_writer *w)
{
    json_begin_array(w);
    for (size_t i = 0; i < async->graph.type_count; i++) {
        const struct async_type *type = &async->graph.types[i];
        if (type->kind != ASYNC_METHOD)
            continue;
        json_begin_object(w);
        json_key(w, "function");
        json_quoted(w, async->names[i]);
        json_key(w, "type");
        json_quoted(w, type->addr ? NULL : type->name);
        json_key(w, "count");
        json_u64(w, type->count);
        json_key(w, "waiting");
        json_u64(w, type->waiting);
        json_end_object(w);
    }
    json_end_array(w);
}

void stack_async_json(const struct stack_async *async, struct json_writer *w)
{
    const struct heap_walk_result *walk = &async->graph.walk;
    bool walked = async->problem.kind == ERROR_NONE;
    json_begin_object(w);
    json_key(w, "problem");
    json_quoted(w, walked ? NULL : async->problem.what);
    json_key(w, "objects");
    json_u64(w, walk->objects);
    json_key(w, "bytes");
    json_u64(w, walk->bytes);
    json_key(w, "missed_bytes");
    json_u64(w, walk->unexplained_bytes + walk->unreadable_bytes);
    json_key(w, "complete");
    json_bool(w, walked && !walk->late && !async->map.cut && !async->graph.cut && !async->chains.cut);
    json_key(w, "stopped_ms");
    if (async->stopped_ns)
        json_double(w, (double)async->stopped_ns / 1e6);
    else
        json_absent(w);
    json_key(w, "chains");
    json_begin_array(w);
    for (size_t i = 0; i < async->chains.count; i++)
        write_chain(async, &async->chains.chains[i], w);
    json_end_array(w);
    json_key(w, "methods");
    write_methods(async, w);
    json_end_object(w);
}
