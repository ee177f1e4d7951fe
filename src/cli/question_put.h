/*
 * question_put: what the answers to questions about runtime events have in common.
 */
#ifndef CLRPERF_CLI_QUESTION_PUT_H
#define CLRPERF_CLI_QUESTION_PUT_H

#include "analyse/capture_time.h"
#include "analyse/event_stacks.h"
#include "base/json_writer.h"
#include "cli/question.h"

enum { QUESTION_STRIP = 48 };

/* A question's capture, and the part of it that is asked about. */
struct question_scope {
    const struct question_call *call;
    const struct trace *trace;
    struct capture_time time;
    uint64_t from_ns, to_ns;   /* times of the trace, not before its start; to_ns 0: to its end */
    struct capture_time shown; /* that part alone: what rates and strips are of */
    bool raw_names;
};

/* What --time says. */
bool question_scope_init(struct question_scope *scope, const struct question_call *call, struct error *err);
/* The same, without a word about --time: of what was warned of before. */
bool question_scope_of_part(struct question_scope *scope, const struct question_call *call,
                            struct error *err);

/*
 * Fails when nobody was asked for the events of `question` and there are none (`any` says there are some),
 * naming what would record them.
 */
bool question_was_asked(const struct question_scope *scope, const struct question *question, bool any,
                        struct error *err);
/* Events the runtime dropped, at least. */
uint64_t question_lost(const struct question_scope *scope);

/* The lines above a table: which processes, when, for how long; and what was lost. */
void question_head(const struct question_scope *scope, struct buffer *out);
/* Breaks the lines behind `from`, of a name and what is said of it, where the terminal ends. */
void question_wrap(struct buffer *out, size_t from);
/* "web" or "web (4711)": what rows of several processes say. */
void question_process(const struct question_scope *scope, uint32_t process, struct buffer *out);
/* Whether events of more than one process are there, so that rows name theirs. */
bool question_has_processes(const struct question_scope *scope);

/* 0 of nothing. */
static inline double question_share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static inline double question_ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Begins the document: its schema and its capture. */
void question_json_begin(struct json_writer *j, struct buffer *text, const struct question_scope *scope,
                         const char *schema);
/* The members "process" and "pid". */
void question_json_process(struct json_writer *j, const struct question_scope *scope, uint32_t process);
/* The member `key`: the thread's number, or null. */
void question_json_thread(struct json_writer *j, const struct question_scope *scope, const char *key,
                          uint32_t thread);
/* The member "stack": names with their modules, the root first; null without one. */
void question_json_stack(struct json_writer *j, const struct event_stacks *stacks, uint32_t node);
bool question_json_end(struct json_writer *j, struct error *err);
/* "module!name", as the folded output has it. */
void question_frame(const struct profile_frame *f, struct buffer *out);

/* "Orders.Export < Web.Handle < ...", the leaf first, at most so many frames; "" for node 0. */
void question_stack_text(const struct event_stacks *stacks, uint32_t node, unsigned frames,
                         struct buffer *out);
/* The whole stack with modules, root first, ";" between: for CSV. */
void question_stack_csv(const struct event_stacks *stacks, uint32_t node, struct buffer *out);
/* Bars of eight heights, for values from 0 to their largest; a negative one is a gap. */
void question_strip(const double *values, size_t count, struct buffer *out);

/* Prints and frees the text. */
bool question_print(struct buffer *text, struct error *err);

#endif
