/*
 * activity_parents: what activities were begun in, as their begins told.
 *
 * The path of an activity says it, too, but not always: .NET 10 leaves numbers above 10 out of some paths
 * (1/1/11/2 comes as what would be 1/1/32), and where a path is full a new one begins. Where the begin was
 * not told, the path is all there is.
 */
#ifndef CLRPERF_ANALYSE_ACTIVITY_PARENTS_H
#define CLRPERF_ANALYSE_ACTIVITY_PARENTS_H

#include "base/id_map.h"
#include "clr/activity_path.h"
#include "trace/trace.h"

enum { ACTIVITY_DEPTH_MAX = 64 }; /* from one to its parent and so on; what is told may go in circles */

struct activity_parents {
    struct activity_birth *rows; /* [0] is unused */
    size_t count, capacity;
    struct id_map ids;
};

void activity_parents_init(struct activity_parents *parents, const struct trace *t);
void activity_parents_done(struct activity_parents *parents);
/* None: it was begun in no other. */
struct activity_path activity_parents_of(const struct activity_parents *parents, uint32_t process,
                                         const struct activity_path *path);

#endif
