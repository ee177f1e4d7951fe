/*
 * jit_opt_out: whether the compiler was told to leave a method as it is written.
 *
 * A debugger wants whole modules so (DebuggableAttribute, as a debug build has it), which the runtime notes
 * in the Module's flags; one method asks for it by MethodImplOptions.NoOptimization (ECMA-335 II.23.1.11 as
 * extended in docs/design/specs/Ecma-335-Augments.md of dotnet/runtime). The runtime compiles such a method
 * once. What it was told for all methods (DOTNET_JITMinOpts=1) is not seen, nor what the compiler decides by
 * itself: static constructors on 8 without tiering are as they are written, though the runtime's events of
 * code that is there say optimized, too.
 */
#ifndef CLRPERF_CLR_JIT_OPT_OUT_H
#define CLRPERF_CLR_JIT_OPT_OUT_H

#include "clr/loaded_types.h"

enum jit_opt_out {
    JIT_OPT_OUT_UNKNOWN, /* its module or its metadata cannot be read, or the layout does not say where */
    JIT_OPT_OUT_NO,
    JIT_OPT_OUT_YES,
};
enum jit_opt_out jit_opt_out_find(struct loaded_types *types, const struct method_desc *method);

#endif
