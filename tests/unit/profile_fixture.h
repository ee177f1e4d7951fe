/*
 * profile_fixture: profiles built by hand, for the tests of what reads one.
 */
#ifndef CLRPERF_TESTS_PROFILE_FIXTURE_H
#define CLRPERF_TESTS_PROFILE_FIXTURE_H

#include "analyse/profile.h"

struct fixture_sample {
    uint64_t time_ns, weight;
    uint32_t thread;
    uint16_t cpu;
    uint32_t path[8]; /* frames, root first; 0 ends it */
};

struct fixture {
    const struct profile_frame *frames; /* [0] is unused, as in the profile */
    uint32_t frame_count;
    const struct profile_thread *threads;
    uint32_t thread_count;
    const struct profile_process *processes;
    uint32_t process_count;
    const struct fixture_sample *samples;
    size_t sample_count;
};

/* Texts are borrowed from `fixture`. CPU samples at 100 Hz; the caller may change the fields after. */
void profile_fixture_build(const struct fixture *fixture, struct profile *p);
void profile_fixture_done(struct profile *p);

/* Two processes, three threads, every kind of code, two stacks in common. */
void profile_fixture_small(struct profile *p);
/* Names that break formats: separators, quotes, markup, bidirectional controls, very long. */
void profile_fixture_nasty(struct profile *p);
void profile_fixture_empty(struct profile *p);
/* As many samples as asked, pseudo-random and always the same: 8 threads, 4000 frames, up to about 60 deep.
 */
void profile_fixture_large(struct profile *p, size_t sample_count);

#endif
