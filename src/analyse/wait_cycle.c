#include "analyse/wait_cycle.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

size_t wait_cycles_find(const size_t *waits_for, size_t count, uint32_t *cycle_of)
{
    size_t cycles = 0;
    size_t *walk_of = mem_alloc(count + 1, sizeof *walk_of); /* by which walk a thread was met; 0: by none */
    memset(cycle_of, 0, count * sizeof *cycle_of);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        while (at < count && walk_of[at] == 0) {
            walk_of[at] = i + 1;
            at = waits_for[at];
        }
        if (at >= count || walk_of[at] != i + 1)
            continue; /* ends at somebody who runs, or in what was walked before */
        cycles++;
        for (size_t member = at; cycle_of[member] == 0; member = waits_for[member])
            cycle_of[member] = (uint32_t)cycles;
    }
    free(walk_of);
    return cycles;
}
