/*
 * sample_stacks: the stack of each sample, found when it comes and added to the trace in its turn.
 *
 * A sample with registers is unwound (collect/sample_unwinder) at once, while its process and its code are
 * there. What its addresses mean is known when runtimes have told of its time: until then the stack waits. Of
 * a sample without registers the kernel's callchain is believed as far as it makes sense. Belongs to one
 * thread.
 */
#ifndef CLRPERF_COLLECT_SAMPLE_STACKS_H
#define CLRPERF_COLLECT_SAMPLE_STACKS_H

#include "base/time_queue.h"
#include "collect/memory_names.h"
#include "collect/sample_unwinder.h"
#include "collect/target_files.h"

struct sample_stacks;

/* All borrowed. `chain_frames_max`: frames of a callchain behind which the kernel stops. */
struct sample_stacks *sample_stacks_new(struct trace_builder *b, const struct target_files *files,
                                        struct memory_names *memory, size_t chain_frames_max);
/* NULL is fine. */
void sample_stacks_free(struct sample_stacks *stacks);

/* A method came or went; something was mapped: see sample_unwinder. */
void sample_stacks_method(struct sample_stacks *stacks, uint32_t process, const struct method_place *method,
                          bool ends);
void sample_stacks_mapped(struct sample_stacks *stacks, uint32_t process, uint64_t addr);

/*
 * Finds the stack of a sample, of which `raw` says everything else, and has both wait in `queue`, as
 * QUEUE_SAMPLE. False when the queue is full.
 */
bool sample_stacks_find(struct sample_stacks *stacks, uint32_t process, const struct perf_sample *sample,
                        struct raw_sample *raw, struct time_queue *queue);
/* Such an item's turn comes soon: what it will need is brought from memory. */
void sample_stacks_expect(struct sample_stacks *stacks, struct span item);
/* Adds such an item to the trace, in its turn. Returns how its stack ended. */
enum stack_end sample_stacks_add(struct sample_stacks *stacks, struct span item);

/*
 * Writes a sample without the stack bytes behind its thread's first frame, which the kernel copies too: most
 * of all that come. `into` has room for the whole record. Returns the size; 0: there is nothing to leave out.
 */
size_t sample_stacks_trim(struct sample_stacks *stacks, const struct perf_sample_layout *layout,
                          struct span record, uint8_t *into);
/* See sample_unwinder_is_pressed(). */
bool sample_stacks_are_pressed(const struct sample_stacks *stacks);

/*
 * After the last sample: tells the trace how many frames were found in each way, when stacks were unwound,
 * and gives back what was read of the targets.
 */
void sample_stacks_finish(struct sample_stacks *stacks);

#endif
