/*
 * doorbell: tells the other side of shared memory that there is something for it.
 *
 * Who waits looks for a moment, as the answer may be there in no time, and then sleeps at a socket. Who rings
 * writes to the socket only when the other side sleeps: to be woken takes many times what the work does.
 * Where the CPUs are busy the other side does not run meanwhile: who looked in vain again and again looks
 * seldom.
 */
#ifndef CLRPERF_BASE_DOORBELL_H
#define CLRPERF_BASE_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

/* One for each direction, in memory that both sides share; all zero at first. */
struct doorbell {
    uint32_t rung; /* how many times */
    bool sleeps;   /* who waits for it */
    uint8_t vain;  /* looks in vain, one after the other, up to a limit */
    uint8_t spare; /* waits to come in which nobody looks */
};

/* `look_us`, where that is of use: not where one CPU is all there is. */
unsigned doorbell_look_us(unsigned look_us);
/* `socket`: a stream socket to the other side. False when that is gone. `*out_woke`: it slept; NULL is fine.
 */
bool doorbell_ring(struct doorbell *bell, int socket, bool *out_woke);
/*
 * Returns once the bell has rung more than `heard` times: how often it was waited for. False when it did not
 * within `deadline_ms` (-1: for ever), or the other side is gone; then the bell is of no more use.
 */
bool doorbell_wait(struct doorbell *bell, uint32_t heard, int socket, unsigned look_us, int deadline_ms);

#endif
