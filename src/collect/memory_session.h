/*
 * memory_session: what the memory of a .NET process tells about its methods while a recording runs.
 *
 * The other way to what collect/runtime_session gives, in the same records, without the runtime's help: for a
 * process that hangs, is stopped, or has its diagnostics switched off. Needs the rights of a debugger (ptrace
 * access), and stops nothing.
 *
 *     start -> look, now and then -> name, at the end -> close
 */
#ifndef CLRPERF_COLLECT_MEMORY_SESSION_H
#define CLRPERF_COLLECT_MEMORY_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "clr/code_walk.h"
#include "collect/il_offsets.h"
#include "collect/runtime_session.h"

struct memory_session;

/*
 * `start_ticks`: field 22 of its /proc/PID/stat, or 0. `root_fd`: a handle of the process's root directory,
 * borrowed, or -1: then metadata of assemblies is read from memory too, which brings their pages in for the
 * target. Fails as live_memory_open() and code_walk_open() do.
 */
bool memory_session_start(pid_t pid, uint64_t start_ticks, int root_fd, struct memory_session **out,
                          struct error *err);
/* The same over memory that does not change, a core dump's; both are borrowed. Fails as code_walk_open(). */
bool memory_session_over(const struct memory *memory, const struct module_files *files,
                         struct memory_session **out, struct error *err);
/* NULL is fine. */
void memory_session_close(struct memory_session *s);

/*
 * Learns `addrs` (see below), and tells of code that may be freed before the end (dynamic methods,
 * collectible assemblies) and was not there at the last look: RUNTIME_METHOD_LOADED at the time of that, or
 * of the start. Fails when the process is gone.
 */
bool memory_session_look(struct memory_session *s, const uint64_t *addrs, size_t count,
                         const struct runtime_sink *sink, struct error *err);
/*
 * Names the jitted code that holds `addr`, RUNTIME_METHOD_LOADED at `time_ns` when it can be freed and
 * CODE_FROM_EVER when not. False when the runtime knows of no method there.
 */
bool memory_session_find(struct memory_session *s, uint64_t addr, uint64_t time_ns,
                         const struct runtime_sink *sink);
/* Tells of the module whose code holds `addr`, if it was not told of before. False when there is none. */
bool memory_session_module(struct memory_session *s, uint64_t addr, const struct runtime_sink *sink);
/*
 * Names the code that holds `addrs` (ascending), each piece once, RUNTIME_METHOD_EXISTS_AT_END now; and
 * before the first of each module that. Fails when the process is gone: then nothing more is known than what
 * looks told.
 */
bool memory_session_name(struct memory_session *s, const uint64_t *addrs, size_t count,
                         const struct runtime_sink *sink, struct error *err);
/*
 * The same while samples still come, for those that come yet: what cannot be freed is RUNTIME_METHOD_LOADED,
 * CODE_FROM_EVER.
 */
bool memory_session_learn(struct memory_session *s, const uint64_t *addrs, size_t count,
                          const struct runtime_sink *sink, struct error *err);
/* The next question sees the mappings as they are then; else they are at most five seconds old. Memory that
 * kept us waiting too often is tried once more. */
void memory_session_expire(struct memory_session *s);
/* Tells of all jitted code, in the same way. */
bool memory_session_name_all(struct memory_session *s, const struct runtime_sink *sink, struct error *err);
/*
 * The IL map of jitted code that a session told of. As code_walk_il_map().
 */
bool memory_session_il_map(struct memory_session *s, unsigned major, uint64_t begin, uint64_t size_bytes,
                           struct il_map *out, struct error *err);
/* The same for il_offsets. */
struct il_map_reader memory_session_il_maps(struct memory_session *session);
/* Reads ahead how the jitted code that begins at `begin` is unwound, as it was at `time_ns` or later. */
void memory_session_follow(struct memory_session *s, uint64_t time_ns, uint64_t begin);
/*
 * Reads of its memory as it was at `time_ns` or later, all or nothing: when what was just found was read
 * since, it is at hand.
 */
bool memory_session_read(struct memory_session *s, uint64_t time_ns, uint64_t addr, void *into, size_t size);
/* Whether it kept us waiting so often that it is not read any more, see LIVE_MEMORY_HANGS_MAX. */
bool memory_session_hangs(const struct memory_session *s);
/* Its memory, and files as it sees them. Owned by `s`. */
const struct memory *memory_session_memory(const struct memory_session *s);
const struct module_files *memory_session_files(const struct memory_session *s);
/* The walk itself, for single questions, seen as of the last look or name. Owned by `s`. */
struct code_walk *memory_session_walk(struct memory_session *s);

#endif
