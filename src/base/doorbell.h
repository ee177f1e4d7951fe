/*
 * doorbell: tells the other side of shared memory that there is something for it.
 *
 * Who waits looks for a moment, as the answer may be there in no time, and then sleeps at a futex (futex(2)).
 * Who rings calls the kernel only when the other side sleeps: to be woken takes many times what the work
 * does. Where the CPUs are busy the other side does not run meanwhile: who looked in vain again and again
 * looks seldom. That the other side is gone nobody is told.
 */
#ifndef CLRPERF_BASE_DOORBELL_H
#define CLRPERF_BASE_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

/* One for each direction, in memory that both sides share; all zero at first. */
struct doorbell {
    uint32_t rung; /* how many times */
    bool sleeps;   /* who waits for it */
    bool over;     /* it rings no more */
    uint8_t vain;  /* looks in vain, one after the other, up to a limit */
    uint8_t spare; /* waits to come in which nobody looks */
};

/* `look_us`, where that is of use: not where one CPU is all there is. */
unsigned doorbell_look_us(unsigned look_us);
/* Returns whether who waits for it slept. */
bool doorbell_ring(struct doorbell *bell);
/* Who waits for it waits no more, now and later. */
void doorbell_end(struct doorbell *bell);
/*
 * Returns once the bell has rung more than `heard` times: how often it was waited for. False when it did not
 * within `deadline_ms` (-1: for ever), or it is over; then the bell is of no more use.
 */
bool doorbell_wait(struct doorbell *bell, uint32_t heard, unsigned look_us, int deadline_ms);

#endif
