#include "cli/stack_words.h"

#include "base/cursor.h"

size_t stack_words_count(const struct taken_thread *thread)
{
    return thread->stack_bytes / 8;
}

uint64_t stack_words_at(const struct taken_thread *thread, size_t i)
{
    return load_u64le(thread->stack + 8 * i);
}

size_t stack_words_return(const struct taken_thread *thread, size_t words, const struct shown_frame *caller)
{
    while (words > 0)
        if (stack_words_at(thread, --words) == caller->location->addr)
            return words;
    return SIZE_MAX;
}
