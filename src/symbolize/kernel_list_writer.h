/*
 * kernel_list_writer: makes the file of symbolize/kernel_list.h while the kernel's list is read.
 *
 * It goes to the disk part by part and appears when it is whole. Whatever goes wrong, nothing is kept and
 * nothing said: the file only saves time.
 */
#ifndef CLRPERF_SYMBOLIZE_KERNEL_LIST_WRITER_H
#define CLRPERF_SYMBOLIZE_KERNEL_LIST_WRITER_H

#include "symbolize/kernel_boot.h"
#include "symbolize/kernel_symbols.h"

struct kernel_list_writer;

/* In the directory at `path`, which is made. NULL when nothing can be kept. `boot` is borrowed. */
struct kernel_list_writer *kernel_list_writer_begin(const char *path, const struct kernel_boot *boot);
/* The next whole lines of the list; a kernel_lines_fn. */
void kernel_list_writer_take(void *user, struct span lines);
/*
 * Frees `w`, and puts the file in its place if `whole`: all of the list was taken, and the kernel's state is
 * the one that it was at the beginning. `w` may be NULL.
 */
void kernel_list_writer_end(struct kernel_list_writer *w, bool whole);

#endif
