/*
 * jit_name: what a name in a perf map or jitdump says.
 *
 * .NET writes "instance void [App] Ns.Type::Method(string,valuetype [lib]N.S)[Tier]" and, for code of
 * no method, "stub A<B>". EventPipe spells the same signature "(class System.String,value class N.S)".
 * We turn the former into the latter, so that a method is one function whoever names it: primitive
 * types by a table, assemblies dropped, a nested type by its own name alone, array bounds dropped,
 * "method R *(A)" to "fnptr R(A)", modifiers dropped. Names of other JITs pass unchanged.
 */
#ifndef CLRPERF_CLR_JIT_NAME_H
#define CLRPERF_CLR_JIT_NAME_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "clr/code_name.h"

struct jit_name {
    struct buffer name, module; /* of the last name parsed */
};

void jit_name_init(struct jit_name *n);
void jit_name_done(struct jit_name *n);
/*
 * Fills everything of `out` but the resolver. Control characters become '?'. `other_module` is the
 * module of code that is not .NET's. The texts are valid until the next call.
 */
void jit_name_parse(struct jit_name *n, struct span raw, const char *other_module, struct code_name *out);

#endif
