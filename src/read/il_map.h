/*
 * il_map: which IL offset each piece of a method's machine code was made from.
 *
 * What the JIT and crossgen leave for debuggers. The runtime's DebugInfo contract (dotnet/runtime
 * docs/design/datacontracts/DebugInfo.md, src/coreclr/vm/debuginfostore.cpp) specifies both forms. A map says
 * where statements begin: in optimized code a call in the middle of an expression belongs to its statement,
 * and inlined code to the statement that called it.
 */
#ifndef CLRPERF_READ_IL_MAP_H
#define CLRPERF_READ_IL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum il_map_form {
    IL_MAP_NIBBLES, /* ReadyToRun before format 16, the JIT up to .NET 9 */
    IL_MAP_PACKED,  /* ReadyToRun 16, the JIT of .NET 10 */
    IL_MAP_HEADED,  /* ReadyToRun 26, the JIT of .NET 11: packed, behind a head that counts all parts */
    IL_MAP_FORMS
};

enum { IL_MAP_POINTS_MAX = 1 << 18 };

/* Not IL offsets: code of no statement, code before a method's statements, code that returns. */
#define IL_NO_MAPPING UINT32_C(0xffffffff)
#define IL_PROLOG     UINT32_C(0xfffffffe)
#define IL_EPILOG     UINT32_C(0xfffffffd)

struct il_point {
    uint32_t code_off; /* from the method's first byte */
    uint32_t il_off;   /* or one of the above */
};

struct il_map {
    struct il_point *points; /* owned; code_off ascends */
    size_t count, capacity;
};

/*
 * Reads the map at the start of `bytes`, which may go on behind it, for `code_bytes` of machine code.
 * ERROR_UNSUPPORTED when there is none, ERROR_INPUT when it ends too early or does not fit the code. On
 * success the caller ends with il_map_done(); on failure *out is untouched.
 */
bool il_map_read(struct span bytes, enum il_map_form form, uint64_t code_bytes, struct il_map *out,
                 struct error *err);
void il_map_done(struct il_map *map);
/* The IL offset of the code at `code_off`, an epilog's that of what returns there; or IL_NO_MAPPING,
 * IL_PROLOG. */
uint32_t il_map_find(const struct il_point *points, size_t count, uint32_t code_off);

#endif
