/*
 * kept_register: what a register was in a frame, whose callees have saved it and use it since.
 *
 * Functions that align their stack keep what SP was in a register which their callees give back: ld.so's
 * _dl_runtime_resolve*, through which each first call of a function goes, keeps it in RBX. The tables of all
 * callees say where they saved it.
 */
#ifndef CLRPERF_UNWIND_KEPT_REGISTER_H
#define CLRPERF_UNWIND_KEPT_REGISTER_H

#include "unwind/unwind_run.h"

/*
 * Of the frame that `r` is in, by its DWARF number. False when not all of its callees are native code whose
 * tables tell, or there are more than UNWIND_LEFT_MAX.
 */
bool kept_register(const struct unwind_run *r, uint8_t number, uint64_t *out);

#endif
