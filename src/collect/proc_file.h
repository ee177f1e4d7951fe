/*
 * proc_file: reads a file of /proc whole, into bounded memory.
 */
#ifndef CLRPERF_COLLECT_PROC_FILE_H
#define CLRPERF_COLLECT_PROC_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "read/procfs.h"

/*
 * Opens /proc/PID/NAME to be read; what goes with the process's memory by a thread that has it, see
 * memory_thread. ERROR_TARGET when the process is gone, ERROR_PERMISSION as the kernel says.
 */
bool proc_file_open(pid_t pid, const char *name, int *out_fd, struct error *err);
/*
 * Appends some of what follows in the file. `more`: whether there was any, and room for it. False, with
 * errno, when it cannot be read.
 */
bool proc_file_read_more(int fd, struct buffer *out, bool *more);
/* Why /proc/PID/NAME could not be read, in the words of proc_file_read(). False. */
bool proc_file_explain(int os_error, pid_t pid, const char *name, struct error *err);
/*
 * Replaces the content of `out` by /proc/PID/NAME. What does not fit under the buffer's ceiling is left
 * out. ERROR_TARGET when the process is gone, ERROR_PERMISSION as the kernel says.
 */
bool proc_file_read(pid_t pid, const char *name, struct buffer *out, struct error *err);
/* The same of one of its threads: /proc/PID/task/TID/NAME. */
bool proc_file_read_task(pid_t pid, pid_t tid, const char *name, struct buffer *out, struct error *err);
/* As above, for a path such as /proc/sys/kernel/perf_event_paranoid. */
bool proc_file_read_path(const char *path, struct buffer *out, struct error *err);
/* The same of a path in an open folder. */
bool proc_file_read_at(int folder, const char *path, struct buffer *out, struct error *err);
/* /proc/PID/stat, without the name. Fails as proc_file_read(). */
bool proc_file_stat(pid_t pid, struct proc_stat *out, struct error *err);
/* /proc/PID/status. Fails as proc_file_read(). */
bool proc_file_status(pid_t pid, struct proc_status *out, struct error *err);
/* A thread that is gone, or ending. */
bool proc_file_has_ended(pid_t tid);
/* Stopped, by a signal or a debugger; false when it is gone. */
bool proc_file_is_stopped(pid_t pid);
/* For longer than somebody takes to look at its threads. */
bool proc_file_stays_stopped(pid_t pid);
/* Field 22 of /proc/PID/stat: with the pid it names a process for ever. Fails as proc_file_read(). */
bool proc_file_start_ticks(pid_t pid, uint64_t *out, struct error *err);
/* Whether the number still is of the process that started then. */
bool proc_file_is_process(pid_t pid, uint64_t start_ticks);
/* The number in a file of one number; false when it cannot be read or is none. */
bool proc_file_number(const char *path, int64_t *out);
/* The target of a link of /proc/PID (exe, cwd, ns/pid), with a NUL behind. */
bool proc_file_link(pid_t pid, const char *name, char *out, size_t out_size, struct error *err);

#endif
