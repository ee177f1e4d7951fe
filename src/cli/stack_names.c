#include "cli/stack_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/stack_threads.h"
#include "clr/managed_thread_name.h"

enum {
    KERNEL_NAME_BYTES = 15, /* TASK_COMM_LEN without its end */
    NAME_BYTES_MAX = 4 * MANAGED_THREAD_NAME_MAX,
};

#define RUNTIME_NAMES ".NET "

/* The kernel does not have it, or not all of it. Of the runtime's own threads that is nearly always so and
 * says enough: nothing is read for them. */
static bool is_wanted(const struct stack_row *row)
{
    const char *name = row->thread->name;
    return !name[0] ||
           (strlen(name) == KERNEL_NAME_BYTES && strncmp(name, RUNTIME_NAMES, strlen(RUNTIME_NAMES)) != 0);
}

/* One that begins otherwise was not read while it stood still, or the kernel was told another one. */
static void name_row(struct stack_row *row, struct span name)
{
    size_t known = strlen(row->name);
    if (name.size < known || memcmp(name.data, row->name, known) != 0)
        return;
    free(row->name);
    row->name = mem_format("%.*s", (int)name.size, (const char *)name.data);
}

static void name_rows(struct stack_view *view, struct memory_pages *pages,
                      const struct managed_threads *threads, const struct managed_thread_name_place *place)
{
    struct buffer name;
    buffer_init(&name, NAME_BYTES_MAX);
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        const struct managed_thread *thread =
            is_wanted(row) ? managed_threads_by_tid(threads, row->thread->ns_tid) : NULL;
        buffer_clear(&name);
        if (thread && managed_thread_name_read(pages, place, thread, &name))
            name_row(row, buffer_span(&name));
    }
    buffer_done(&name);
}

void stack_names_read(struct stack_view *view)
{
    bool wanted = false;
    for (size_t i = 0; i < view->row_count; i++) {
        view->rows[i].name = mem_copy_string(view->rows[i].thread->name);
        wanted |= is_wanted(&view->rows[i]);
    }
    if (!wanted || !view->stacks->walk)
        return;
    struct loaded_types *types = code_walk_types(view->stacks->walk);
    struct managed_threads threads;
    struct managed_thread_name_place place;
    if (!stack_threads_open(view->stacks, types->pages, &threads, NULL))
        return;
    if (managed_thread_name_place_find(types, &threads, &place))
        name_rows(view, types->pages, &threads, &place);
    managed_threads_done(&threads);
}
