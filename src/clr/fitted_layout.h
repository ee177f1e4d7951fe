/*
 * fitted_layout: the layout that a runtime in a process turns out to have, with what was read by it.
 *
 * What the runtime says of itself comes first (10), then the measured layout of its version, then one that is
 * derived from the process. Each is checked against the metadata of the process's assemblies: nearly all
 * methods must belong to the types that own their rows.
 */
#ifndef CLRPERF_CLR_FITTED_LAYOUT_H
#define CLRPERF_CLR_FITTED_LAYOUT_H

#include "base/error.h"
#include "clr/code_survey.h"
#include "clr/loaded_types.h"
#include "clr/runtime_root.h"
#include "clr/runtime_version.h"

enum layout_way { LAYOUT_DESCRIBED, LAYOUT_MEASURED, LAYOUT_DERIVED };
enum { LAYOUT_ANY_WAY = 1 << LAYOUT_DESCRIBED | 1 << LAYOUT_MEASURED | 1 << LAYOUT_DERIVED };

struct fitted_layout {
    struct memory_pages *pages; /* borrowed, as the next two */
    const struct module_files *files;
    struct runtime_root *root;
    struct runtime_layout layout;
    enum layout_way way;
    struct runtime_version version; /* of the runtime by its path or file, or "" */
    uint32_t checked, agreed;       /* methods whose record was compared with metadata */
    struct code_survey survey;      /* by the layout */
    bool surveyed;                  /* the survey is of now */
    struct loaded_types types;      /* by the layout */
};

/* "descriptor", "table", "derived" */
const char *layout_way_name(enum layout_way way);

/*
 * Fills in the rest behind the first three members; it refers to itself, and must stay where it is.
 * `ways`: bits 1 << enum layout_way, those that may be taken. ERROR_UNSUPPORTED when no layout fits, or too
 * few methods are there to tell.
 */
bool fitted_layout_find(struct fitted_layout *fit, unsigned ways, struct error *err);
void fitted_layout_done(struct fitted_layout *fit);
/* The survey of now, unless there is one. */
void fitted_layout_survey(struct fitted_layout *fit);
/* So that the next survey is a new one. */
void fitted_layout_forget_survey(struct fitted_layout *fit);

#endif
