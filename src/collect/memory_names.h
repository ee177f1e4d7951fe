/*
 * memory_names: names the methods of the watched processes from their memory, when a stack leads into them.
 *
 * A process's memory is opened at the first such stack. What is found is told to collect/runtime_names, in
 * step with the samples, so that at the end nobody has to list all methods. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_MEMORY_NAMES_H
#define CLRPERF_COLLECT_MEMORY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/runtime_names.h"
#include "collect/target_files.h"
#include "trace/builder.h"

struct memory_names;

/* Borrows all. `note` is told, once a process, what is lost where memory may not be read; may be NULL. */
struct memory_names *memory_names_new(struct trace_builder *b, const struct target_files *files,
                                      struct runtime_names *methods,
                                      void (*note)(void *user, const char *text), void *user);
/* NULL is fine. */
void memory_names_free(struct memory_names *names);

/* How the jitted code that begins at `begin` is unwound will be read: in one go, where its memory is open. */
void memory_names_follow(struct memory_names *names, uint32_t process, uint64_t time_ns, uint64_t begin);
/*
 * Bytes of a process's memory as it was at `time_ns` or later, all or nothing, within a deadline. `process`:
 * row of the trace.
 */
bool memory_names_read(struct memory_names *names, uint32_t process, uint64_t time_ns, uint64_t addr,
                       void *into, size_t size);
/*
 * Finds the method whose code holds `addr`, at the time of a sample, and tells of it. False when the runtime
 * knows of none there, or its memory cannot be read: then the mapping there may have turned out to be of an
 * image (see collect/unpacked_images).
 */
bool memory_names_find(struct memory_names *names, uint32_t process, uint64_t addr, uint64_t time_ns,
                       struct method_place *out);
/* A sample or an event of a process came: how many lead to what is not named decides how soon it is. */
void memory_names_sampled(struct memory_names *names, uint32_t process, uint32_t stack);
/* Finds out what kind of stub is at `addr`, as it was sampled just now. */
void memory_names_look_at_stub(struct memory_names *names, uint32_t process, uint64_t addr);
/* Opens a process's memory before it is needed. False when its methods cannot be told from it (yet). */
bool memory_names_open(struct memory_names *names, uint32_t process);
/* How long it takes until another try to open it may do better, in ms; -1: it is open, or none does. */
int memory_names_retry_ms(const struct memory_names *names, uint32_t process);
/* Whether the process's methods can be told from its memory now. */
bool memory_names_knows(const struct memory_names *names, uint32_t process);
/*
 * Looks for code that can be freed and is new, in processes whose runtime does not tell of it itself; in the
 * others for what the runtime leaves out of methods that were sampled. To be called now and then. `sampled`:
 * of the former names what samples led to since, too; else memory_names_find() is asked for it.
 */
void memory_names_look(struct memory_names *names, bool sampled);
/* Whether such code comes all the time, or what was sampled was gone: what is sampled of it is gone soon. */
bool memory_names_churn(const struct memory_names *names);
/* The same, and the end, of processes that ended before that time: their last samples have come. */
void memory_names_close_ended(struct memory_names *names, uint64_t before_ns);
/* After the last sample: names what was sampled and has no method yet, and gives back what was read for it.
 */
void memory_names_finish(struct memory_names *names);
/* The pid of a process whose memory is not read any more, as it kept us waiting; 0: of none that is open. */
pid_t memory_names_hung(const struct memory_names *names);
/* The modules of methods that runtimes told of, which they had before: of those new since the last call, or,
 * after what they told last, of `all` that are still missing. */
void memory_names_modules(struct memory_names *names, bool all);

#endif
