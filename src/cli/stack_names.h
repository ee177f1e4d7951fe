/*
 * stack_names: what the threads of a look are called.
 */
#ifndef CLRPERF_CLI_STACK_NAMES_H
#define CLRPERF_CLI_STACK_NAMES_H

#include "cli/stack_view.h"

/*
 * Fills in the rows' names: the kernel's, which has 15 bytes, and in their place those that the program gave
 * where the kernel's is cut or, as in a core dump, missing. What cannot be read stays as it is. After the
 * rows' stacks are there.
 */
void stack_names_read(struct stack_view *view);

#endif
