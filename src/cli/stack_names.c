#include "cli/stack_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/stack_threads.h"
#include "cli/stack_words.h"
#include "clr/aot_thread_name.h"
#include "clr/managed_thread_name.h"
#include "collect/thread_names.h"

enum {
    NAME_BYTES_MAX = 4 * MANAGED_THREAD_NAME_MAX,
    PAGES_BYTES_MAX = 16 << 20,
};

/* The kernel does not have it, or not all of it. */
static bool is_wanted(const struct stack_row *row)
{
    return !row->thread->name[0] || thread_name_is_cut(row->thread->name);
}

static void name_row(struct stack_row *row, struct span name)
{
    free(row->name);
    row->name = mem_format("%.*s", (int)name.size, (const char *)name.data);
}

/* One that begins otherwise was not read while it stood still, or the kernel was told another one. */
static void extend_name(struct stack_row *row, struct span name)
{
    if (thread_name_extends(row->name, name))
        name_row(row, name);
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
            extend_name(row, buffer_span(&name));
    }
    buffer_done(&name);
}

/* Between the return addresses into it and into its caller. */
static bool find_start_frame(const struct stack_row *row, struct span *out)
{
    const struct shown_stack *stack = row->stack;
    for (size_t i = 1; stack && i + 1 < stack->count; i++) {
        if (!shown_frame_is_called(&stack->frames[i], AOT_THREAD_START))
            continue;
        size_t end = stack_words_return(row->thread, stack_words_count(row->thread), &stack->frames[i + 1]);
        size_t begin = end != SIZE_MAX ? stack_words_return(row->thread, end, &stack->frames[i]) : SIZE_MAX;
        if (begin == SIZE_MAX)
            return false;
        *out = span_of(row->thread->stack + 8 * (begin + 1), 8 * (end - begin - 1));
        return true;
    }
    return false;
}

/* The kernel has the process's name of a thread that was given none: .NET 8 does not tell it those of
 * programs that were compiled ahead. */
static bool is_inherited(const struct stack_view *view, const struct stack_row *row)
{
    pid_t pid = view->stacks->target.pid;
    for (size_t i = 0; row->thread->tid != pid && i < view->row_count; i++)
        if (view->rows[i].thread->tid == pid)
            return strcmp(row->thread->name, view->rows[i].thread->name) == 0;
    return false;
}

/* Of a program that was compiled ahead. */
static void name_rows_of_aot(struct stack_view *view)
{
    struct memory_pages pages;
    struct buffer name;
    memory_pages_init(&pages, view->stacks->target.memory, PAGES_BYTES_MAX);
    buffer_init(&name, NAME_BYTES_MAX);
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        struct span frame;
        bool inherited = is_inherited(view, row);
        buffer_clear(&name);
        if (!(inherited || is_wanted(row)) || !find_start_frame(row, &frame) ||
            !aot_thread_name_read(&pages, frame, &name))
            continue;
        if (inherited)
            name_row(row, buffer_span(&name));
        else
            extend_name(row, buffer_span(&name));
    }
    buffer_done(&name);
    memory_pages_done(&pages);
}

void stack_names_read(struct stack_view *view)
{
    bool wanted = false;
    for (size_t i = 0; i < view->row_count; i++) {
        view->rows[i].name = mem_copy_string(view->rows[i].thread->name);
        wanted |= is_wanted(&view->rows[i]);
    }
    if (!view->stacks->walk)
        name_rows_of_aot(view);
    if (!wanted || !view->stacks->walk)
        return;
    struct loaded_types *types = code_walk_types(view->stacks->walk);
    struct managed_threads *threads = stack_threads_of(view, NULL);
    struct managed_thread_name_place place;
    if (threads && managed_thread_name_place_find(types, threads, &place))
        name_rows(view, types->pages, threads, &place);
}
