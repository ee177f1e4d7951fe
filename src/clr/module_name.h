/*
 * module_name: what the runtime calls a module, from the path of its file.
 */
#ifndef CLRPERF_CLR_MODULE_NAME_H
#define CLRPERF_CLR_MODULE_NAME_H

#include <stdbool.h>

#include "base/cursor.h"

/* "System.Linq" of "/usr/share/.../System.Linq.dll", also of a path of Windows. A part of `path`. */
struct span module_simple_name(struct span path);
/* The path is that of an assembly: it has a name, and ends in .dll or .exe. */
bool module_path_is_assembly(struct span path);

#endif
