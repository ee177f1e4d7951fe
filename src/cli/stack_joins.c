#include "cli/stack_joins.h"

#include "cli/stack_words.h"
#include "clr/managed_thread_object.h"

#define JOIN "System.Threading.Thread.Join"

/* Where Join itself was optimized away, it is part of the method that called it. */
size_t stack_join_caller(const struct shown_stack *stack)
{
    size_t last = SIZE_MAX, first_managed = SIZE_MAX;
    for (size_t i = 0; i < stack->count; i++) {
        if (first_managed == SIZE_MAX && shown_frame_is_managed(&stack->frames[i]))
            first_managed = i;
        if (shown_frame_is_called(&stack->frames[i], JOIN))
            last = i;
    }
    size_t join = last != SIZE_MAX ? last : first_managed;
    return join != SIZE_MAX && join + 1 < stack->count ? join + 1 : 0;
}

const struct managed_thread *stack_join_target(const struct stack_view *view, const struct stack_row *row,
                                               struct memory_pages *pages, uint64_t *out_object)
{
    struct loaded_types *types = code_walk_types(view->stacks->walk);
    const struct managed_thread *found = NULL;
    size_t words = stack_words_return(row->thread, stack_words_count(row->thread),
                                      &row->stack->frames[row->join_caller]);
    for (size_t i = 0; words != SIZE_MAX && i < words; i++) {
        uint64_t word = stack_words_at(row->thread, i);
        const struct managed_thread *thread = managed_thread_of_object(types, pages, &view->threads, word);
        if (!thread || thread->tid == row->thread->ns_tid || thread == found)
            continue;
        if (found)
            return NULL;
        found = thread;
        *out_object = word;
    }
    return found;
}
