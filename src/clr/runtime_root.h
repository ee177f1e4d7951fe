/*
 * runtime_root: where a runtime in a process keeps its list of code regions, found from outside.
 *
 * By what it exports: its contract descriptor (9 and later; told by 10), else the first slot of g_dacTable (8
 * and later); else by a look through the runtime's writable data for a word that only the root can be. No
 * debug file is needed.
 */
#ifndef CLRPERF_CLR_RUNTIME_ROOT_H
#define CLRPERF_CLR_RUNTIME_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory_pages.h"
#include "clr/contract_descriptor.h"
#include "clr/runtime_layout.h"

enum runtime_root_way { ROOT_BY_DESCRIPTOR, ROOT_BY_DAC_TABLE, ROOT_BY_SCAN };

struct runtime_root {
    enum runtime_root_way way;
    bool list;                              /* a list, up to 7; else a radix map */
    uint64_t addr;                          /* of the map, or of the list's first node */
    uint64_t head;                          /* of a list: the variable that points to the first node */
    uint64_t base;                          /* where the runtime's file is loaded */
    const struct memory_mapping *module;    /* its first mapping; the memory's */
    struct contract_descriptor *descriptor; /* owned, or NULL */
};

/* "contract descriptor", "g_dacTable", "scan" */
const char *runtime_root_way_name(enum runtime_root_way way);
/*
 * ERROR_UNSUPPORTED when no runtime is loaded, or it has not started, or is of a kind nobody knows. Undo with
 * runtime_root_done().
 */
bool runtime_root_find(struct memory_pages *pages, struct runtime_root *out, struct error *err);
void runtime_root_done(struct runtime_root *root);

#endif
