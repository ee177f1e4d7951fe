/*
 * cpu_lease: a thread that others cannot wait for, and that needs a CPU again and again for a moment, comes
 * before all else; for a small share of a CPU.
 *
 * A thread that reads what a kernel buffer holds loses data while it waits for a CPU, on the very machines
 * that people look into. A nice value would not do, see urgency. So the thread has a real-time policy while
 * it has CPU time left of what it was given, which grows with time; whatever it does, it is as everybody
 * once that is used up: a timer of the kernel over its CPU time says so. Threads and processes that it
 * starts are as everybody.
 */
#ifndef CLRPERF_BASE_CPU_LEASE_H
#define CLRPERF_BASE_CPU_LEASE_H

struct cpu_lease;

/*
 * For the calling thread, which has all of `most_ms` of CPU time at first, and `percent` of the time that
 * passes. NULL where it is not ours to ask for, or where the user chose a policy for us.
 */
struct cpu_lease *cpu_lease_begin(unsigned most_ms, unsigned percent);
/* Between two pieces of work, by that thread. NULL is fine, also below. */
void cpu_lease_renew(struct cpu_lease *lease);
/* The thread is as before. */
void cpu_lease_end(struct cpu_lease *lease);

#endif
