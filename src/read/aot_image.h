/*
 * aot_image: the methods of a program that was compiled ahead of time (.NET's Native AOT), by what it carries
 * for the stack traces of its exceptions.
 *
 * Its section `__modules` leads to a ReadyToRun header, that to its parts, among which are metadata, a list
 * of methods with their owners and names, and tables of those that reflection can call (dotnet/runtime
 * src/coreclr/nativeaot: StackTraceMetadata.cs; src/coreclr/tools: Common/Internal/Runtime/ModuleHeaders.cs,
 * see read/aot_callable). Programs published with StackTraceSupport off have no such list.
 */
#ifndef CLRPERF_READ_AOT_IMAGE_H
#define CLRPERF_READ_AOT_IMAGE_H

#include "read/aot_callable.h"
#include "read/aot_metadata.h"
#include "read/elf.h"

struct aot_image {
    struct aot_metadata metadata;
    struct aot_method *methods; /* by address; of several at one the compiler found that they are the same */
    size_t count;
    struct buffer bytes; /* of the metadata */
};

/* ERROR_INPUT when it is no such program or has no such list. On success undo with aot_image_done(). */
bool aot_image_read(const struct elf *e, struct aot_image *out, struct error *err);
void aot_image_done(struct aot_image *image);

#endif
