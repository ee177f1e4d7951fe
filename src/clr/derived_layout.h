/*
 * derived_layout: the layout of a runtime that nobody has measured, found in a process that runs it.
 *
 * Each number is what most of the process agrees on: a place counts as that of a code header's method when
 * what lies there is a method in nearly all headers and no other place comes close, the width of a method's
 * row when metadata says that nearly all methods are their types' own, and so on. What nothing or not enough
 * speaks for is not guessed: then there is no layout. What a name can do without (tiers of code, metadata of
 * assemblies that the program emits) may stay LAYOUT_NONE. Who uses the result checks it as any other.
 */
#ifndef CLRPERF_CLR_DERIVED_LAYOUT_H
#define CLRPERF_CLR_DERIVED_LAYOUT_H

#include "base/error.h"
#include "clr/loaded_module.h"
#include "clr/runtime_root.h"

/*
 * `files` may be NULL. *out has no name and no version. ERROR_UNSUPPORTED, with the step that failed, when
 * the process does not show enough yet, or is like nothing we know; ERROR_LIMIT when it takes too long.
 */
bool derived_layout_find(struct memory_pages *pages, const struct runtime_root *root,
                         const struct module_files *files, struct runtime_layout *out, struct error *err);

#endif
