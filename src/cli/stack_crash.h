/*
 * stack_crash: the exceptions of the thread that a core dump's process died in.
 */
#ifndef CLRPERF_CLI_STACK_CRASH_H
#define CLRPERF_CLI_STACK_CRASH_H

#include "cli/stack_view.h"

/* Fills in view->exceptions: the last that the thread at fault threw, handled or not. None where the dump
 * does not hold them. */
void stack_crash_read(struct stack_view *view);

#endif
