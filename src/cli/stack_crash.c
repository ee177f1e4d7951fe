#include "cli/stack_crash.h"

#include <string.h>

#include "base/mem.h"
#include "cli/stack_threads.h"
#include "clr/managed_exception.h"
#include "clr/type_name.h"

enum { TYPE_BYTES_MAX = 64 << 10 };

static void take_exception(void *user, const char *type, struct span message)
{
    struct stack_view *view = user;
    struct buffer shown;
    buffer_init(&shown, TYPE_BYTES_MAX);
    type_name_show_full(span_of(type, strlen(type)), &shown);
    view->exceptions = mem_grow(view->exceptions, &view->exception_capacity, view->exception_count + 1,
                                sizeof *view->exceptions);
    view->exceptions[view->exception_count++] = (struct stack_exception){
        .type = mem_format("%.*s", (int)shown.size, (const char *)shown.data),
        .message = mem_format("%.*s", (int)message.size, message.size ? (const char *)message.data : ""),
    };
    buffer_done(&shown);
}

void stack_crash_read(struct stack_view *view)
{
    size_t i = 0;
    while (i < view->row_count && !view->rows[i].thread->signal)
        i++;
    if (i == view->row_count || !view->stacks->walk)
        return;
    struct loaded_types *types = code_walk_types(view->stacks->walk);
    const struct managed_threads *threads = stack_threads_of(view, NULL);
    const struct managed_thread *thread =
        threads ? managed_threads_by_tid(threads, view->rows[i].thread->ns_tid) : NULL;
    if (thread)
        managed_exception_list(types, thread, take_exception, view);
}
