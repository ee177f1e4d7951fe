/*
 * layout_evidence: what of a running process can speak for or against a layout of its runtime.
 *
 * Pieces of code by where they start, records of methods, their types and modules: as many as are needed to
 * tell, taken from all over the process. Each step needs the part of the layout that leads there.
 */
#ifndef CLRPERF_CLR_LAYOUT_EVIDENCE_H
#define CLRPERF_CLR_LAYOUT_EVIDENCE_H

#include "clr/code_survey.h"
#include "clr/loaded_module.h"

/* A piece of jitted code. */
struct evident_code {
    uint64_t start, header; /* addresses of the code, and of its RealCodeHeader */
    uint64_t range_begin;   /* what the header counts from */
};

struct layout_evidence {
    struct memory_pages *pages; /* borrowed */
    struct code_survey survey;
    struct evident_code *codes; /* by start */
    size_t code_count, code_capacity;
    struct method_desc *methods; /* by address, each once; their rows mean nothing */
    size_t method_count, method_capacity;
    uint64_t *tables; /* MethodTables, ascending, each once */
    size_t table_count;
    struct loaded_module *modules; /* by address, each once */
    size_t module_count, module_capacity;
};

/* Reads the regions of code; `layout` is the form of the root, and borrowed. Undo with
 * layout_evidence_done(). */
void layout_evidence_init(struct layout_evidence *e, struct memory_pages *pages,
                          const struct runtime_layout *layout, uint64_t root);
void layout_evidence_done(struct layout_evidence *e);

/* The pieces of code; needs the form of the nibble maps. */
void layout_evidence_codes(struct layout_evidence *e);
/* The records of methods, and their types; needs the code header. */
void layout_evidence_methods(struct layout_evidence *e);
/* The modules that types belong to; needs where a type and a module say so. */
void layout_evidence_modules(struct layout_evidence *e, const struct module_files *files);

/* The module at `addr`, or NULL. */
const struct loaded_module *layout_evidence_module(const struct layout_evidence *e, uint64_t addr);
/* The piece of code that starts there, or NULL. */
const struct evident_code *layout_evidence_code(const struct layout_evidence *e, uint64_t start);

#endif
