/*
 * stack_words: the words of a stack that was read while its thread stood still, from its pointer up.
 */
#ifndef CLRPERF_CLI_STACK_WORDS_H
#define CLRPERF_CLI_STACK_WORDS_H

#include <stddef.h>

#include "analyse/shown_stack.h"
#include "collect/taken_threads.h"

size_t stack_words_count(const struct taken_thread *thread);
/* `i` below that. */
uint64_t stack_words_at(const struct taken_thread *thread, size_t i);
/* The last of the first `words` that is an address in the code of a frame's caller, `caller`; SIZE_MAX: none.
 * Of earlier calls something may be left below. */
size_t stack_words_return(const struct taken_thread *thread, size_t words, const struct shown_frame *caller);

#endif
