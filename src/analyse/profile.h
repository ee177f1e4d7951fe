/*
 * profile: a trace's samples as a call tree with named frames, the form every report and export
 * reads.
 *
 * Immutable once built. Frames are functions as they are shown: the same name in the same module is
 * one frame, whatever its tier or address; when asked for, one for each source line of it, and then functions
 * that the compiler inlined are frames, too. Node 0 is the root; a node's parent has a smaller index. All
 * texts are UTF-8 without control characters, owned by the profile.
 */
#ifndef CLRPERF_ANALYSE_PROFILE_H
#define CLRPERF_ANALYSE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/gc_history.h"
#include "analyse/runtime_work.h"
#include "analyse/thread_filter.h"
#include "analyse/timeline.h"
#include "base/arena.h"
#include "base/error.h"
#include "trace/trace.h"

struct profile_frame {
    const char *name;
    const char *module;  /* "" when not known */
    const char *file;    /* source file, or NULL */
    uint32_t line;       /* in it; of a whole function: the first one that ran. 0 unknown */
    bool line_of_method; /* `line` is where the method begins: the statement is not known */
    bool inlined;        /* by the compiler, into the frame that called it; only with lines */
    uint8_t kind;        /* enum code_kind: where most of its samples' locations were */
    uint8_t tier;        /* enum code_tier, likewise */
    uint8_t resolver;    /* enum resolver */
    uint8_t unnamed;     /* enum unnamed_cause; 0 for a frame with a name */
    uint16_t type_bytes; /* of the name: the type that it is a member of; 0 when that is not known */
};

struct profile_node {
    uint32_t parent;
    uint32_t frame; /* 0 for the root and only there */
};

struct profile_thread {
    uint32_t pid, tid;
    const char *name;         /* the thread's, "" when not known */
    const char *process_name; /* never "" */
    uint64_t samples, weight;
};

struct profile_process {
    uint32_t pid;
    const char *name, *runtime_version, *container; /* the last two NULL when not known */
};

struct profile_counts {
    uint64_t samples;  /* in this profile, after filters */
    uint64_t recorded; /* before them */
    uint64_t captured; /* of all events in the capture: of which of them the lost ones are nobody knows */
    uint64_t weight;
    uint64_t lost, lost_by[LOSS_REASONS]; /* in the whole capture */
    uint64_t whole, truncated, broken;    /* stacks, counted per sample */
    uint64_t user_frames, named, native_without_symbols, unnamed;
    uint64_t unnamed_by[UNNAMED_CAUSES], named_by[RESOLVERS];
    bool work_known;             /* frames of a .NET runtime are in the capture */
    uint64_t work[WORK_CLASSES]; /* weight by what the runtime did; they add up to `weight` */
    uint64_t gc_untold;   /* of WORK_GC: where the runtime told nothing, so that it may be allocating */
    struct gc_summary gc; /* of the time that is shown */
};

struct profile {
    struct arena arena;
    struct profile_frame *frames; /* [0] is unused */
    uint32_t frame_count;
    struct profile_node *nodes; /* [0] is the root */
    uint32_t node_count;
    uint64_t *self, *total; /* weight by node */

    uint32_t *sample_node; /* columns, in time order; NULL in a profile of the tree only */
    uint32_t *sample_thread;
    uint64_t *sample_time_ns; /* since the capture's start */
    uint64_t *sample_weight;
    uint16_t *sample_cpu;
    uint32_t *sample_repeats; /* of a trace in runs: how many samples an entry stands for; else NULL */
    size_t sample_count;

    struct profile_thread *threads; /* [0] is unused */
    uint32_t thread_count;
    struct profile_process *processes; /* those with samples; [0] is unused */
    uint32_t process_count;

    struct timeline timeline; /* what else was told, when it was asked for */
    struct profile_counts counts;
    bool by_line;                /* frames are lines of functions */
    bool is_wall;                /* threads were there; whether they ran is not known */
    bool weights_are_samples;    /* an entry stands for as many samples as its weight says */
    const char *weight_unit;     /* "ns", "count", "bytes", "samples" */
    const char *title;           /* what was recorded, for people: "webapi (pid 4711)" */
    const char *event;           /* "cpu-clock" */
    const char *frames_found;    /* FACT_FRAMES_FOUND of such samples, before filters; NULL: not known */
    uint64_t start_monotonic_ns; /* of sample_time_ns 0 */
    uint64_t start_realtime_ns;  /* since the epoch; 0 unknown */
    uint64_t duration_ns;
    double rate_hz; /* 0 unknown */
};

struct profile_options {
    bool raw_names;          /* the runtime's spelling */
    uint64_t from_ns, to_ns; /* since the start; to_ns 0: to the end */
    struct thread_filter who;
    const char *const *include; /* NULL-terminated: keep samples with a frame that matches each */
    const char *const *exclude; /* NULL-terminated: drop samples with a frame that matches any */
    bool group_runtime;         /* the runtime's frames folded to one for each kind of work */
    bool lines;                 /* a frame is a line of a function, also of one that was inlined */
    bool tree_only;             /* no sample columns: for what shows sums */
    bool timeline;              /* what else was told, too */
    enum sample_kind kind;
    const uint64_t *weights; /* of the trace's samples, other than their own; NULL: their own */
};

/* ERROR_USAGE for a pattern that is none, ERROR_LIMIT when the texts have no room. The caller frees *out. */
bool profile_build(const struct trace *t, const struct profile_options *options, struct profile **out,
                   struct error *err);
void profile_free(struct profile *p);

/* How many samples one entry of the sample columns stands for. */
static inline uint64_t profile_samples_at(const struct profile *p, size_t i)
{
    return p->weights_are_samples ? p->sample_weight[i] : p->sample_repeats ? p->sample_repeats[i] : 1;
}

#endif
