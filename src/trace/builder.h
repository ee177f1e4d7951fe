/*
 * trace_builder: fills a trace from sources that report in time order.
 *
 * It knows what lives where at the moment: which processes and threads exist, what they have mapped,
 * which methods the runtime has compiled. From that it turns raw callchains into interned stacks. Samples,
 * events and methods may come a little after what the kernel tells of processes and mappings: they are looked
 * up among the mappings of their own time.
 * Everything it adds is in `trace`; the builder itself only holds the look-up state.
 */
#ifndef CLRPERF_TRACE_BUILDER_H
#define CLRPERF_TRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/id_map.h"
#include "trace/chain_cache.h"
#include "trace/function_index.h"
#include "trace/place_filter.h"
#include "trace/stack_table.h"
#include "trace/trace.h"

struct address_space;
struct location_memo;
struct past_mappings;

/* What a process has now. */
struct process_state {
    struct address_space *mappings;
    struct past_mappings *past;
    struct address_space *codes; /* ranges name rows of trace.codes */
    uint32_t space;              /* another number when an address may mean something else than before */
};

struct trace_builder {
    struct trace trace;
    struct function_index functions;
    struct id_map images, threads, pids, event_types;
    struct stack_table stacks;
    struct location_memo *memo;   /* by a hash of the address: what location_of() said last */
    unsigned memo_shift;          /* of that hash's 64 bits, to a place in `memo` */
    struct place_filter places;   /* what location_of() was asked for */
    struct process_state *states; /* by process id */
    size_t states_capacity;
    uint32_t *paths; /* of new chains: STACK_PATHS_MAX times TRACE_STACK_DEPTH_MAX locations */
    uint32_t spaces; /* numbers given out for process_state.space; the kernel has one, too */
    struct chain_cache *chains;
    uint32_t *ended; /* process ids, in the order of their ends; those before ended_first were forgotten */
    size_t ended_first, ended_count, ended_capacity;
    /* rows changed after they were added: (table << 32 | id), for the writer */
    uint64_t *changed;
    size_t changed_count, changed_capacity;
};

/* Tables whose rows can change after they were added. */
enum trace_changed_table { CHANGED_PROCESS, CHANGED_THREAD, CHANGED_MAPPING, CHANGED_CODE };

/* `chains`: how many distinct raw callchains to remember (32 bytes each, half of them free); older ones are
 * recomputed. */
void trace_builder_init(struct trace_builder *b, size_t chains);
void trace_builder_done(struct trace_builder *b);
/*
 * Takes over a trace that was read from somewhere, to add what is learnt about its processes now: methods,
 * names. Its processes are as they were at its end. `b` must not hold another trace.
 */
void trace_builder_adopt(struct trace_builder *b, struct trace *t);

/* The process that has this pid, or had it last, or 0. */
uint32_t trace_builder_process(const struct trace_builder *b, uint32_t pid);
/* The same, added when there is none. */
uint32_t trace_builder_process_start(struct trace_builder *b, uint32_t pid, uint64_t time_ns);
/* A child that shares its parent's mappings until it execs. `parent_pid` may be unknown. */
uint32_t trace_builder_process_fork(struct trace_builder *b, uint32_t parent_pid, uint32_t pid,
                                    uint64_t time_ns);
/* The process became another program: a new row of the same pid, without mappings and methods. */
void trace_builder_process_exec(struct trace_builder *b, uint32_t pid, struct span name, uint64_t time_ns);
void trace_builder_process_exit(struct trace_builder *b, uint32_t pid, uint64_t time_ns);
/* Gives back what is known of the code of processes that ended before: an address there is nowhere then. */
void trace_builder_forget_ended(struct trace_builder *b, uint64_t before_ns);
/* Says that a row was written to directly after it was added. */
void trace_builder_changed(struct trace_builder *b, enum trace_changed_table table, uint32_t id);
/* The thread `tid` of process `pid`, both added when new. */
uint32_t trace_builder_thread(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* A thread was born; its number may have belonged to another one before. */
void trace_builder_thread_start(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns);
void trace_builder_thread_name(struct trace_builder *b, uint32_t pid, uint32_t tid, struct span name,
                               uint64_t time_ns);
void trace_builder_thread_exit(struct trace_builder *b, uint32_t pid, uint32_t tid, uint64_t time_ns);

/* The image with these properties, added when new. `path` may end in " (deleted)". */
uint32_t trace_builder_image(struct trace_builder *b, struct span path, enum image_kind kind, uint32_t major,
                             uint32_t minor, uint64_t inode);
/* Something executable was mapped; it replaces what was mapped there. Returns the mapping. */
uint32_t trace_builder_mapping(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t size_bytes,
                               uint64_t file_off, uint32_t image, uint64_t time_ns);
/* A mapping turned out to be of an image, from `file_off` on: so it was all the time. */
void trace_builder_mapping_is(struct trace_builder *b, uint32_t mapping, uint32_t image, uint64_t file_off);
/* What is mapped at an address now: a mapping, or 0. */
uint32_t trace_builder_mapping_at(const struct trace_builder *b, uint32_t process, uint64_t addr);
/* What was mapped there a little while ago. */
uint32_t trace_builder_mapping_then(const struct trace_builder *b, uint32_t process, uint64_t addr,
                                    uint64_t time_ns);

/*
 * A method's code appeared at from_ns (0: it was there already). What the runtime had at these
 * addresses is over.
 */
uint32_t trace_builder_code(struct trace_builder *b, const struct trace_code *code);
/* The code that started at `addr` was freed. Returns the code that ended, or 0 when none was known. */
uint32_t trace_builder_code_end(struct trace_builder *b, uint32_t process, uint64_t addr, uint64_t time_ns);
/* The code that is at an address now, as far as is known, or 0. */
uint32_t trace_builder_code_at(const struct trace_builder *b, uint32_t process, uint64_t addr);
uint32_t trace_builder_function(struct trace_builder *b, const struct trace_function *function);

struct raw_sample;

/*
 * Says how many of the user frames are to be believed and how the stack ended; asked only for a chain that
 * was not seen before.
 */
typedef size_t raw_sample_judge_fn(void *user, uint32_t process, const struct raw_sample *s,
                                   enum stack_end *out_end);

enum { RAW_SAMPLE_CALLERS = 2 };

/* One observation, as captured. Callchains are leaf first; kernel frames are above user frames. */
struct raw_sample {
    uint64_t time_ns;
    uint64_t weight; /* ns for CPU samples */
    const uint64_t *kernel, *user;
    size_t kernel_count, user_count;
    const bool *
        user_exact; /* of each user frame: it goes on there, rather than behind a call; NULL: the leaf only */
    /* what the frames were made of and nothing else, to know it when it comes again; empty: the frames are
     * compared */
    struct span chain;
    struct chain_key hash; /* raw_sample_hash(), when it */
    bool is_hashed;        /* was taken already */
    uint32_t thread;       /* its row, or 0: */
    uint32_t pid, tid;     /* the one that has these numbers now, added when new */
    uint16_t cpu;
    enum sample_kind kind;
    enum stack_end end;         /* when there is no judge */
    raw_sample_judge_fn *judge; /* or NULL: all frames count */
    void *judge_user;
    bool by_callers; /* many have the same callers, below other leaves: those are remembered, too */
    /* the builder's own: what it found out of this sample so far */
    bool looked_at;
    uint8_t new_callers; /* of `callers`: those that are not remembered */
    struct chain_key key, callers[RAW_SAMPLE_CALLERS];
};

/* Of the chain, or of the frames where there is none: cheap while they were just written. */
struct chain_key raw_sample_hash(const struct raw_sample *s);
/*
 * Says that a sample of a known thread comes, so that what is known of it is brought from memory meanwhile.
 * Until it is added with what this left in it nothing but samples may be.
 */
void trace_builder_sample_expect(struct trace_builder *b, struct raw_sample *s);
/* Whether its `chain` is one that trace_builder_sample_again() would know: then its frames are not looked at.
 */
bool trace_builder_sample_is_known(struct trace_builder *b, struct raw_sample *s);
/* Adds a location that is on no stack yet, to be named as any: process 0 is the kernel. Returns its row. */
uint32_t trace_builder_place(struct trace_builder *b, uint32_t process, uint64_t addr, uint64_t time_ns);
/* Adds samples in this order, which waits less for memory than one by one. At most STACK_PATHS_MAX. */
void trace_builder_samples(struct trace_builder *b, struct raw_sample *s, size_t count);
/* Adds it. Returns its stack. */
uint32_t trace_builder_sample(struct trace_builder *b, struct raw_sample *s);
/*
 * Adds a sample whose `chain` is one that trace_builder_sample() had lately, in the same state of its
 * process: returns its stack. 0 when it is not: then find out the frames and how they end.
 */
uint32_t trace_builder_sample_again(struct trace_builder *b, struct raw_sample *s);
/* How a stack of this builder's ended. */
enum stack_end trace_builder_stack_end(const struct trace_builder *b, uint32_t stack);
/*
 * The stack of a callchain in a process, leaf first, without a sample of it. `leaf_exact`: the leaf goes on
 * at its address; else it, too, goes on behind a call, as an event's does. No addresses: the bare end.
 */
uint32_t trace_builder_stack(struct trace_builder *b, uint32_t process, const uint64_t *addrs, size_t count,
                             bool leaf_exact, uint64_t time_ns, enum stack_end end);
/* Which code was at a location at a time: a row of trace.codes, or 0 for what the location says itself. */
typedef uint32_t location_code_fn(void *user, uint32_t location, uint64_t time_ns);
/* The same stack with the code that was there at `time_ns`, for a source that learns of code afterwards. */
uint32_t trace_builder_stack_at(struct trace_builder *b, uint32_t stack, uint64_t time_ns,
                                location_code_fn *code_at, void *user);
/* For importers whose frames have names already: a stack of functions, root first is `functions[0]`. */
uint32_t trace_builder_named_stack(struct trace_builder *b, const uint32_t *functions, size_t count);
/* The same, of one whose root may not be `functions[0]`. */
uint32_t trace_builder_named_stack_to(struct trace_builder *b, const uint32_t *functions, size_t count,
                                      enum stack_end end);
/* The kind of event, added when new. */
uint32_t trace_builder_event_type(struct trace_builder *b, const struct trace_event_type *type);
/* The thread of this number in a process now, or 0: nothing is added. */
uint32_t trace_builder_find_thread(const struct trace_builder *b, uint32_t process, uint32_t tid);
void trace_builder_loss(struct trace_builder *b, enum loss_reason reason, uint32_t process, uint64_t from_ns,
                        uint64_t to_ns, uint64_t count);

#endif
