/*
 * vdso_names: the functions of the kernel's vdso that its symbols do not tell of.
 *
 * On a virtual machine with the clock of KVM the CPU's counter is read in a function of its own, which is
 * where a program that asks for the time is found most.
 */
#ifndef CLRPERF_SYMBOLIZE_VDSO_NAMES_H
#define CLRPERF_SYMBOLIZE_VDSO_NAMES_H

#include "base/cursor.h"

enum { VDSO_FUNCTION_BYTES_MAX = 512 };

/* The kernel's name of the function whose code this is, on x64; NULL: it is not known. */
const char *vdso_name_of(struct span code);

#endif
