/*
 * ready_to_run: which method each precompiled body of an image belongs to.
 *
 * Specified in dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; read for format 3.1
 * (.NET Core 3.1) up to 16 (.NET 10). Holds tables only; names come from metadata elsewhere.
 */
#ifndef CLRPERF_READ_READY_TO_RUN_H
#define CLRPERF_READ_READY_TO_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "read/il_map.h"
#include "read/native_format.h"
#include "read/pe.h"

enum {
    R2R_SECTION_RUNTIME_FUNCTIONS = 102,
    R2R_SECTION_METHOD_ENTRY_POINTS = 103,
    R2R_SECTION_DEBUG_INFO = 105,
    R2R_SECTION_DELAY_LOAD_THUNKS = 106,
    R2R_SECTION_INSTANCE_ENTRY_POINTS = 109,
    R2R_SECTION_MANIFEST_METADATA = 112,
    R2R_SECTION_COMPONENT_ASSEMBLIES = 115,
    R2R_SECTION_OWNER_COMPOSITE = 116,
    R2R_SECTION_MANIFEST_MVIDS = 118,
    R2R_SECTION_HOT_COLD_MAP = 120,
    R2R_SECTIONS = 128 /* sections of higher number are not kept */
};

/* Who owns a runtime function: a MethodDef row, or an instance of a generic method. */
enum r2r_body_kind { R2R_BODY_NONE, R2R_BODY_METHOD, R2R_BODY_INSTANCE };

struct r2r_body {
    enum r2r_body_kind kind;
    uint32_t component;    /* R2R_BODY_METHOD: which assembly of the image, 0 unless composite */
    uint32_t method_row;   /* R2R_BODY_METHOD */
    struct span signature; /* R2R_BODY_INSTANCE: starts with the method's signature, owned by the reader */
    uint32_t function;     /* index of the body among the runtime functions */
    uint32_t begin_rva, end_rva; /* of the body and its funclets */
};

struct ready_to_run;

/*
 * Reads the header at `header` and loads the tables. ERROR_UNSUPPORTED when that is no ReadyToRun
 * header, or the machine is not x64 or arm64. `index`: what ready_to_run_index() was of the same file, or
 * NULL; its bytes may be taken over. Where it is not given, or cannot be that, the tables are gone through.
 */
bool ready_to_run_open(const struct source *file, const struct pe *pe, struct pe_range header,
                       struct buffer *index, struct ready_to_run **out, struct error *err);
void ready_to_run_close(struct ready_to_run *r2r);
/*
 * What the tables say of who owns which function: u32le components, u32le damaged instances, and for each
 * function u32le value, u16le component, u16le kind.
 */
struct span ready_to_run_index(const struct ready_to_run *r2r);

/* 0xMMMMmmmm: major and minor version of the format. */
uint32_t ready_to_run_version(const struct ready_to_run *r2r);
bool ready_to_run_is_composite(const struct ready_to_run *r2r);
uint32_t ready_to_run_function_count(const struct ready_to_run *r2r);
uint32_t ready_to_run_component_count(const struct ready_to_run *r2r);
/* Instances that could not be read; their code has no name. */
uint32_t ready_to_run_damaged_count(const struct ready_to_run *r2r);
/* Where a section of the image lies; zero when it has none. */
struct pe_range ready_to_run_section(const struct ready_to_run *r2r, unsigned section);
/* The owner of the code at `rva`; false when no runtime function covers it (a thunk, padding). */
bool ready_to_run_find(const struct ready_to_run *r2r, uint32_t rva, struct r2r_body *out);
/* The same by the index of the runtime function, below the count. */
bool ready_to_run_body(const struct ready_to_run *r2r, uint32_t function, struct r2r_body *out);
/* Loads the IL maps, which naming does not need. Fails as pe_load(); an image without them is fine. */
bool ready_to_run_load_il_maps(struct ready_to_run *r2r, const struct source *file, const struct pe *pe,
                               struct error *err);
/* The IL map of a body that ready_to_run_find() gave. As il_map_read(). */
bool ready_to_run_il_map(const struct ready_to_run *r2r, const struct r2r_body *body, struct il_map *out,
                         struct error *err);
/* True inside the thunks that load a method's address at its first call. */
bool ready_to_run_is_delay_load(const struct ready_to_run *r2r, uint32_t rva);

#endif
