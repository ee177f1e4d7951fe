#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "cli/stack_async.h"

static void append_safe(struct buffer *out, const char *text)
{
    utf8_escape(out, span_of(text, strlen(text)));
}

static void text_head(const struct stack_async *async, struct buffer *out)
{
    const struct heap_walk_result *walk = &async->graph.walk;
    uint64_t waiting = 0;
    for (size_t i = 0; i < async->graph.type_count; i++)
        waiting += async->graph.types[i].waiting;
    buffer_format(out, "\nasync: %s method%s in %s chain%s; %s objects, %s", units_count(waiting).text,
                  waiting == 1 ? " waits" : "s wait", units_count(async->chains.followed).text,
                  async->chains.followed == 1 ? "" : "s", units_count(walk->objects).text,
                  units_size(walk->bytes).text);
    if (async->stopped_ns)
        buffer_format(out, "; the process stood still for %s", units_duration(async->stopped_ns).text);
    buffer_string(out, "\n");
}

/* F# does not tell one that runs from one that waits for its turn. */
static bool tells_running(const struct stack_async *async, const struct async_chain *chain)
{
    const struct async_frame *leaf = &async->chains.frames[chain->first_frame];
    return chain->frame_count && async->graph.types[leaf->type].first_await == 0;
}

static void text_wait(const struct stack_async *async, const struct async_chain *chain, struct buffer *out)
{
    switch ((enum async_wait)chain->wait) {
    case ASYNC_WAIT_OBJECT:
        buffer_string(out, ", waiting for ");
        append_safe(out, async->names[chain->waits_type]);
        break;
    case ASYNC_WAIT_RUNNING:
        buffer_string(out, ", running");
        break;
    case ASYNC_WAIT_READY:
        buffer_string(out, tells_running(async, chain)
                               ? ", waiting for a thread: what it waited for is done"
                               : ", running or waiting for a thread: what it waited for is done");
        break;
    case ASYNC_WAIT_CIRCLE:
        buffer_string(out, ", waiting for itself: the last awaits the first");
        break;
    case ASYNC_WAIT_UNKNOWN:
        break;
    }
}

/* How many frames from `i` on, of `count`, are the same: recursion. */
static uint32_t repeats(const struct stack_async *async, size_t i, uint32_t count)
{
    const struct async_frame *frames = async->chains.frames + i;
    uint32_t n = 1;
    while (n < count && frames[n].type == frames[0].type && frames[n].state == frames[0].state)
        n++;
    return n;
}

static void text_frame(const struct stack_async *async, size_t i, uint32_t times, struct buffer *out)
{
    const struct async_frame *frame = &async->chains.frames[i];
    const struct async_type *type = &async->graph.types[frame->type];
    const struct async_place *place = &async->places[i];
    buffer_string(out, "    ");
    append_safe(out, async->names[frame->type]);
    if (type->kind == ASYNC_METHOD && type->module[0]) {
        buffer_string(out, "  (");
        append_safe(out, type->module);
        buffer_string(out, ")");
    }
    if (type->kind == ASYNC_METHOD && frame->state >= 0)
        buffer_format(out, " at await %" PRId32, frame->state);
    if (place->file) {
        buffer_string(out, " in ");
        append_safe(out, place->file);
        buffer_format(out, ":%" PRIu32, place->line);
    }
    if (times > 1)
        buffer_format(out, " (%" PRIu32 " times)", times);
    buffer_string(out, "\n");
}

void stack_async_text(const struct stack_async *async, struct buffer *out)
{
    const struct async_chains *chains = &async->chains;
    if (async->problem.kind != ERROR_NONE)
        return;
    text_head(async, out);
    for (size_t i = 0; i < chains->count; i++) {
        const struct async_chain *chain = &chains->chains[i];
        buffer_format(out, "\n%s chain%s", units_count(chain->count).text, chain->count == 1 ? "" : "s");
        text_wait(async, chain, out);
        buffer_string(out, ":\n");
        for (uint32_t k = 0, times; k < chain->frame_count; k += times) {
            times = repeats(async, chain->first_frame + k, chain->frame_count - k);
            text_frame(async, chain->first_frame + k, times, out);
        }
        if (chain->truncated)
            buffer_string(out, "    [truncated: there are more callers]\n");
    }
}
