/*
 * profile_trim: leaves out of a profile the nodes and frames that no sample is in.
 *
 * A filter decides about a stack when its frames have names, and then they are in the tree already.
 */
#ifndef CLRPERF_ANALYSE_PROFILE_TRIM_H
#define CLRPERF_ANALYSE_PROFILE_TRIM_H

#include "analyse/profile.h"

/* What remains keeps its order. */
void profile_trim(struct profile *p);

#endif
