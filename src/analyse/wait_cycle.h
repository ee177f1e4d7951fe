/*
 * wait_cycle: threads that wait for each other in a circle.
 *
 * Each thread waits for at most one other, so that what waits is a chain that ends, or a circle.
 */
#ifndef CLRPERF_ANALYSE_WAIT_CYCLE_H
#define CLRPERF_ANALYSE_WAIT_CYCLE_H

#include <stddef.h>
#include <stdint.h>

enum { WAIT_NOBODY = SIZE_MAX };

/*
 * waits_for[i]: whom thread i waits for, or WAIT_NOBODY. cycle_of[i] becomes the number of the circle that i
 * is in (1 and up), or 0. Returns how many circles there are.
 */
size_t wait_cycles_find(const size_t *waits_for, size_t count, uint32_t *cycle_of);

#endif
