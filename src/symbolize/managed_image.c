#include "symbolize/managed_image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/method_name.h"
#include "read/ecma_signature.h"
#include "read/r2r_signature.h"
#include "read/ready_to_run.h"
#include "symbolize/async_method.h"
#include "symbolize/kept_index.h"
#include "symbolize/type_params.h"

enum {
    NAME_BYTES_MAX = 64 << 10,
    MVID_BYTES = 16,
    MVIDS_BYTES_MAX = 1 << 20,
    MANIFEST_IS_A_MODULE = 6 << 16 | 3, /* since this version of the format */
};

struct managed_image {
    struct pe pe;
    bool is_assembly;         /* else a composite image */
    struct assembly self;     /* of a composite: no rows and the name "" */
    struct assembly manifest; /* references that the compiler added; empty when there are none */
    struct buffer manifest_mvids;
    struct assembly_set *siblings; /* borrowed, may be NULL */
    struct ready_to_run *r2r;      /* NULL without code */
    char mvid[2 * MVID_BYTES + 1];
    /* the answer of the last question */
    struct buffer name, signature, params;
    /* the type of the method before: neighbours mostly have the same */
    const struct assembly *owner_assembly;
    uint32_t owner_type;
    struct buffer owner;
    char *module;
    uint32_t token;       /* of the method that was found, in `module`; 0: not known */
    struct r2r_body body; /* that it was found in */
    uint32_t rva;
};

static bool is_zero(const uint8_t *bytes, size_t size)
{
    while (size && bytes[size - 1] == 0)
        size--;
    return size == 0;
}

/* The assembly that row `row` of the manifest references, when the file at hand is of the right build. */
static struct assembly *manifest_assembly(struct managed_image *image, uint32_t row, struct span *out_name)
{
    *out_name = ecma_cell_string(&image->manifest.md, ECMA_ASSEMBLY_REF, row, ECMA_ASSEMBLY_REF_NAME);
    struct assembly *assembly = assembly_set_find(image->siblings, *out_name);
    struct span mvid =
        row ? span_part(buffer_span(&image->manifest_mvids), (uint64_t)MVID_BYTES * (row - 1), MVID_BYTES)
            : (struct span){ 0 };
    bool other_build = assembly && mvid.size && !is_zero(mvid.data, mvid.size) &&
                       memcmp(mvid.data, assembly->mvid, MVID_BYTES) != 0;
    return other_build ? NULL : assembly;
}

/* Module indices: 0 is the image, then its own references, then the manifest and its references. */
static struct assembly *module_at(struct managed_image *image, uint32_t index, struct span *out_name)
{
    uint32_t own_references = image->is_assembly ? ecma_rows(&image->self.md, ECMA_ASSEMBLY_REF) : 0;
    *out_name = (struct span){ 0 };
    if (index == 0) {
        *out_name = span_of(image->self.name, strlen(image->self.name));
        return &image->self;
    }
    if (index <= own_references) {
        *out_name = ecma_cell_string(&image->self.md, ECMA_ASSEMBLY_REF, index, ECMA_ASSEMBLY_REF_NAME);
        return assembly_set_find(image->siblings, *out_name);
    }
    if (index == own_references + 1)
        return ready_to_run_version(image->r2r) >= MANIFEST_IS_A_MODULE ? &image->manifest : NULL;
    return manifest_assembly(image, index - own_references - 1, out_name);
}

static const struct ecma_metadata *module_metadata(void *user, uint32_t index)
{
    struct span name;
    struct assembly *assembly = module_at(user, index, &name);
    return assembly ? &assembly->md : NULL;
}

/* A composite's components are the first references of its manifest. */
static struct assembly *component_at(struct managed_image *image, uint32_t component, struct span *out_name)
{
    if (!ready_to_run_is_composite(image->r2r))
        return module_at(image, 0, out_name);
    return manifest_assembly(image, component + 1, out_name);
}

/* The method that a body belongs to, as far as it could be traced to its definition. */
struct definition {
    struct assembly *assembly; /* NULL: not at hand */
    struct span assembly_name;
    uint32_t type, method; /* rows; 0 unknown */
    bool is_awaited;
};

static void append_owner(struct managed_image *image, const struct assembly *assembly, uint32_t type)
{
    if (image->owner_assembly != assembly || image->owner_type != type) {
        buffer_clear(&image->owner);
        ecma_spell_type_token(&assembly->md, type << ECMA_TYPE_TAG_BITS | ECMA_TYPE_IS_DEF, &image->owner);
        image->owner_assembly = assembly;
        image->owner_type = type;
    }
    image->name.failed |= image->owner.failed;
    if (image->owner.size)
        buffer_append(&image->name, image->owner.data, image->owner.size);
}

static void append_signature(struct managed_image *image, const struct ecma_metadata *md, uint32_t blob)
{
    buffer_clear(&image->signature);
    ecma_spell_method_signature(md, ecma_blob(md, blob), &image->signature);
    const uint8_t *parenthesis =
        image->signature.size ? memchr(image->signature.data, '(', image->signature.size) : NULL;
    if (parenthesis)
        buffer_append(&image->name, parenthesis,
                      image->signature.size - (size_t)(parenthesis - image->signature.data));
}

/* "[System.Int32]": what a generic method is of; `sig` NULL for one that is not, or not known. */
static void append_arguments(struct managed_image *image, const struct assembly *scope,
                             const struct r2r_method_signature *sig)
{
    if (!sig)
        return;
    struct ecma_scope tokens = { &scope->md, module_metadata, image };
    struct cursor c = cursor_over(sig->arguments);
    for (uint32_t i = 0; i < sig->argument_count && cursor_ok(&c); i++) {
        buffer_u8(&image->name, i ? ',' : '[');
        ecma_spell_type(&c, &tokens, &image->name);
    }
    if (sig->argument_count)
        buffer_u8(&image->name, ']');
}

static void append_method(struct managed_image *image, const struct ecma_metadata *md,
                          const struct assembly *scope, const struct r2r_method_signature *sig, uint32_t row)
{
    bool is_member_ref = sig && sig->is_member_ref;
    struct span name = is_member_ref ? ecma_cell_string(md, ECMA_MEMBER_REF, row, ECMA_MEMBER_REF_NAME)
                                     : ecma_cell_string(md, ECMA_METHOD_DEF, row, ECMA_METHOD_DEF_NAME);
    buffer_string(&image->name, "::");
    buffer_append(&image->name, name.data, name.size);
    append_arguments(image, scope, sig);
    append_signature(image, md,
                     is_member_ref ? ecma_cell(md, ECMA_MEMBER_REF, row, ECMA_MEMBER_REF_SIGNATURE)
                                   : ecma_cell(md, ECMA_METHOD_DEF, row, ECMA_METHOD_DEF_SIGNATURE));
}

static void spell_unknown(struct managed_image *image, struct span assembly_name, uint32_t row)
{
    buffer_u8(&image->name, '[');
    buffer_append(&image->name, assembly_name.data, assembly_name.size);
    buffer_format(&image->name, "]0x%08" PRIx32, ecma_token(ECMA_METHOD_DEF, row));
}

static void spell_method_def(struct managed_image *image, const struct r2r_body *body, struct definition *def)
{
    def->assembly = component_at(image, body->component, &def->assembly_name);
    def->method = body->method_row;
    if (!def->assembly) {
        spell_unknown(image, def->assembly_name, body->method_row);
        return;
    }
    def->type = ecma_method_owner(&def->assembly->md, body->method_row);
    append_owner(image, def->assembly, def->type);
    append_method(image, &def->assembly->md, NULL, NULL, body->method_row);
}

/* string, nint and their like have one-byte signatures and are all at home in the core library. */
static void resolve_primitive(struct managed_image *image, const char *full_name, struct definition *def)
{
    static const char core[] = "System.Private.CoreLib", name_space[] = "System";
    const char *name = full_name + sizeof name_space; /* behind the point */
    def->assembly_name = span_of(core, sizeof core - 1);
    def->assembly = strcmp(image->self.name, core) == 0
                        ? &image->self
                        : assembly_set_find(image->siblings, def->assembly_name);
    if (def->assembly)
        def->type = assembly_find_type(def->assembly, span_of(name_space, sizeof name_space - 1),
                                       span_of(name, strlen(name)));
}

/* The definition behind a type's signature: what precedes its first token selects the module. */
static void resolve_type(struct managed_image *image, struct assembly *scope, struct span type,
                         struct definition *def)
{
    struct cursor c = cursor_over(type);
    uint8_t element;
    while ((element = cursor_u8(&c)) == ELEMENT_MODULE_ZAPSIG || element == ELEMENT_GENERICINST)
        if (element == ELEMENT_MODULE_ZAPSIG)
            scope = module_at(image, cursor_ecma_uint(&c), &def->assembly_name);
    if (ecma_primitive_name(element)) {
        resolve_primitive(image, ecma_primitive_name(element), def);
        return;
    }
    if (!scope || !cursor_ok(&c) || (element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE))
        return;
    uint32_t token = cursor_ecma_uint(&c), row = token >> ECMA_TYPE_TAG_BITS;
    unsigned tag = token & ((1 << ECMA_TYPE_TAG_BITS) - 1);
    if (tag == ECMA_TYPE_IS_DEF) {
        def->assembly = scope;
        def->type = row;
        def->assembly_name = span_of(scope->name, strlen(scope->name));
    } else if (tag == ECMA_TYPE_IS_REF) {
        assembly_set_resolve(image->siblings, &scope->md, row, &def->assembly, &def->type,
                             &def->assembly_name);
    }
}

/* Number of parameters, and of generic ones. */
static void signature_counts(struct span signature, uint32_t counts[2])
{
    struct cursor c = cursor_over(signature);
    counts[0] = cursor_u8(&c) & METHOD_SIGNATURE_GENERIC ? cursor_ecma_uint(&c) : 0;
    counts[1] = cursor_ecma_uint(&c);
}

/* The MethodDef row of a type by name and number of parameters, for the names of its own parameters. */
static uint32_t find_method(const struct ecma_metadata *md, uint32_t type, struct span name,
                            struct span signature)
{
    uint32_t first, end, wanted[2], counts[2];
    signature_counts(signature, wanted);
    ecma_type_methods(md, type, &first, &end);
    for (uint32_t row = first; row < end; row++) {
        if (!span_equals(ecma_cell_string(md, ECMA_METHOD_DEF, row, ECMA_METHOD_DEF_NAME), name))
            continue;
        signature_counts(ecma_blob(md, ecma_cell(md, ECMA_METHOD_DEF, row, ECMA_METHOD_DEF_SIGNATURE)),
                         counts);
        if (counts[0] == wanted[0] && counts[1] == wanted[1])
            return row;
    }
    return 0;
}

/* The owner of a MemberRef, when the signature does not give it: a type token or a type's signature. */
static void spell_member_parent(struct managed_image *image, struct assembly *scope, uint32_t member_ref,
                                struct definition *def)
{
    const struct ecma_metadata *md = &scope->md;
    uint32_t parent = ecma_cell(md, ECMA_MEMBER_REF, member_ref, ECMA_MEMBER_REF_PARENT);
    uint32_t row = parent >> ECMA_PARENT_TAG_BITS;
    switch (parent & ((1 << ECMA_PARENT_TAG_BITS) - 1)) {
    case ECMA_PARENT_IS_TYPE_DEF:
        ecma_spell_type_token(md, row << ECMA_TYPE_TAG_BITS | ECMA_TYPE_IS_DEF, &image->name);
        def->assembly = scope;
        def->type = row;
        break;
    case ECMA_PARENT_IS_TYPE_REF:
        ecma_spell_type_token(md, row << ECMA_TYPE_TAG_BITS | ECMA_TYPE_IS_REF, &image->name);
        assembly_set_resolve(image->siblings, md, row, &def->assembly, &def->type, &def->assembly_name);
        break;
    case ECMA_PARENT_IS_TYPE_SPEC: {
        struct span type = ecma_blob(md, ecma_cell(md, ECMA_TYPE_SPEC, row, ECMA_TYPE_SPEC_SIGNATURE));
        struct ecma_scope tokens = { .md = md };
        struct cursor c = cursor_over(type);
        ecma_spell_type(&c, &tokens, &image->name);
        resolve_type(image, scope, type, def);
        break;
    }
    }
}

/* A MemberRef row is the scope's; a MethodDef row is of the assembly that defines the owner. */
static void spell_instance_method(struct managed_image *image, struct assembly *scope,
                                  const struct r2r_method_signature *sig, struct definition *def)
{
    if (sig->is_member_ref) {
        const struct ecma_metadata *md = &scope->md;
        append_method(image, md, scope, sig, sig->row);
        if (def->assembly)
            def->method = find_method(
                &def->assembly->md, def->type,
                ecma_cell_string(md, ECMA_MEMBER_REF, sig->row, ECMA_MEMBER_REF_NAME),
                ecma_blob(md, ecma_cell(md, ECMA_MEMBER_REF, sig->row, ECMA_MEMBER_REF_SIGNATURE)));
    } else if (def->assembly) {
        append_method(image, &def->assembly->md, scope, sig, sig->row);
        def->method = sig->row;
    } else {
        buffer_string(&image->name, "::");
        spell_unknown(image, def->assembly_name, sig->row);
    }
}

static void spell_instance(struct managed_image *image, struct span bytes, struct definition *def)
{
    struct r2r_method_signature sig;
    struct cursor c = cursor_over(bytes);
    if (!cursor_r2r_method_signature(&c, &sig))
        return;
    struct assembly *scope = module_at(image, sig.module, &def->assembly_name);
    if (!scope) {
        spell_unknown(image, def->assembly_name, sig.row);
        return;
    }
    if (sig.owner.size) {
        struct ecma_scope tokens = { &scope->md, module_metadata, image };
        struct cursor owner = cursor_over(sig.owner);
        ecma_spell_type(&owner, &tokens, &image->name);
        resolve_type(image, scope, sig.owner, def);
    } else if (sig.is_member_ref) {
        spell_member_parent(image, scope, sig.row, def);
    } else {
        def->assembly = scope;
        def->type = ecma_method_owner(&scope->md, sig.row);
        ecma_spell_type_token(&scope->md, def->type << ECMA_TYPE_TAG_BITS | ECMA_TYPE_IS_DEF, &image->name);
    }
    spell_instance_method(image, scope, &sig, def);
    def->is_awaited = sig.is_awaited;
}

static const char *finished(struct buffer *text)
{
    buffer_u8(text, 0);
    return text->failed || text->size == 0 ? "" : (const char *)text->data;
}

static void spell_params(struct managed_image *image, const struct definition *def)
{
    buffer_clear(&image->params);
    if (def->assembly)
        type_params_append(&def->assembly->md, def->type, def->method, &image->params);
}

static void keep_module(struct managed_image *image, struct span name)
{
    if (image->module && span_equals(name, span_of(image->module, strlen(image->module))))
        return;
    free(image->module);
    image->module = mem_alloc(name.size + 1, 1);
    if (name.size)
        memcpy(image->module, name.data, name.size);
}

static void name_body(struct managed_image *image, const struct r2r_body *body, struct code_name *out)
{
    struct definition def = { 0 };
    buffer_clear(&image->name);
    image->token = 0;
    if (body->kind == R2R_BODY_METHOD)
        spell_method_def(image, body, &def);
    else
        spell_instance(image, body->signature, &def);
    spell_params(image, &def);
    if (def.assembly && def.method && !def.is_awaited && async_method_is_thunk(&def.assembly->md, def.method))
        buffer_string(&image->name, METHOD_ASYNC_THUNK);
    if (def.assembly && def.assembly->name)
        def.assembly_name = span_of(def.assembly->name, strlen(def.assembly->name));
    keep_module(image, def.assembly_name);
    if (def.assembly && def.method)
        image->token = ecma_token(ECMA_METHOD_DEF, def.method);
    *out = (struct code_name){
        .name = finished(&image->name),
        .module = image->module,
        .type_params = finished(&image->params),
        .kind = CODE_R2R,
        .tier = TIER_R2R,
        .resolver = RESOLVER_R2R,
    };
}

bool managed_image_find(struct managed_image *image, uint64_t file_off, struct code_name *out)
{
    struct r2r_body body;
    uint32_t rva;
    if (!image->r2r || !pe_code_rva(&image->pe, file_off, &rva))
        return false;
    if (ready_to_run_find(image->r2r, rva, &body)) {
        name_body(image, &body, out);
        image->body = body;
        image->rva = rva;
        return true;
    }
    image->token = 0;
    *out = (struct code_name){
        .name = ready_to_run_is_delay_load(image->r2r, rva) ? "[R2R delay-load thunk]" : "[R2R stub]",
        .module = managed_image_name(image),
        .type_params = "",
        .kind = CODE_STUB,
        .resolver = RESOLVER_STUB,
    };
    return true;
}

bool managed_image_load_il_maps(struct managed_image *image, const struct source *file, struct error *err)
{
    return !image->r2r || ready_to_run_load_il_maps(image->r2r, file, &image->pe, err);
}

bool managed_image_il(const struct managed_image *image, struct method_il *out)
{
    struct il_map map;
    const struct r2r_body *body = &image->body;
    if (!image->token)
        return false;
    *out = (struct method_il){ .assembly = image->module, .token = image->token };
    /* a cold part, away from its body, has no offset in it */
    if (image->rva < body->begin_rva || image->rva >= body->end_rva ||
        !ready_to_run_il_map(image->r2r, body, &map, NULL))
        return true;
    out->offset = il_map_find(map.points, map.count, image->rva - body->begin_rva);
    out->offset_known = true;
    il_map_done(&map);
    return true;
}

bool managed_image_function(struct managed_image *image, uint32_t function, struct code_name *out,
                            struct method_range *out_range)
{
    struct r2r_body body;
    if (!image->r2r || !ready_to_run_body(image->r2r, function, &body))
        return false;
    struct method_range range = { .begin_rva = body.begin_rva, .end_rva = body.end_rva };
    pe_file_offset(&image->pe, range.begin_rva, 1, &range.begin_off);
    name_body(image, &body, out);
    image->token = 0;
    *out_range = range;
    return true;
}

bool managed_image_code(const struct managed_image *image, uint32_t stretch, uint64_t *begin_off,
                        uint64_t *end_off)
{
    for (uint32_t i = 0; i < image->pe.section_count; i++) {
        const struct pe_section *section = &image->pe.sections[i];
        if (!section->executable || stretch--)
            continue;
        uint32_t size =
            section->file_size < section->virtual_size ? section->file_size : section->virtual_size;
        *begin_off = section->file_off;
        *end_off = *begin_off + size;
        return true;
    }
    return false;
}

bool managed_image_thunks(const struct managed_image *image, uint64_t *begin_off, uint64_t *end_off)
{
    struct pe_range thunks = { 0 };
    if (image->r2r)
        thunks = ready_to_run_section(image->r2r, R2R_SECTION_DELAY_LOAD_THUNKS);
    if (!thunks.size || !pe_file_offset(&image->pe, thunks.rva, thunks.size, begin_off))
        return false;
    *end_off = *begin_off + thunks.size;
    return true;
}

bool managed_image_method_range(const struct managed_image *image, uint64_t file_off, uint64_t *begin_off,
                                uint64_t *end_off)
{
    struct r2r_body body;
    uint32_t rva;
    if (!image->r2r || !pe_code_rva(&image->pe, file_off, &rva) || !ready_to_run_find(image->r2r, rva, &body))
        return false;
    if (rva < body.begin_rva || rva >= body.end_rva) /* a cold part, away from its body */
        return false;
    if (rva - body.begin_rva > file_off) /* damaged: it would start before the file */
        return false;
    *begin_off = file_off - (rva - body.begin_rva);
    *end_off = file_off + (body.end_rva - rva);
    return true;
}

const char *managed_image_type_params(struct managed_image *image, uint32_t method_token)
{
    uint32_t row = method_token & 0xffffff;
    if (!image->is_assembly || method_token >> 24 != ECMA_METHOD_DEF)
        return "";
    struct definition def = { .assembly = &image->self,
                              .type = ecma_method_owner(&image->self.md, row),
                              .method = row };
    spell_params(image, &def);
    return finished(&image->params);
}

void managed_image_set_siblings(struct managed_image *image, struct assembly_set *siblings)
{
    image->siblings = siblings;
}

const char *managed_image_name(const struct managed_image *image)
{
    return image->self.name;
}

const char *managed_image_mvid(const struct managed_image *image)
{
    return image->mvid;
}

bool managed_image_has_code(const struct managed_image *image)
{
    return image->r2r && ready_to_run_function_count(image->r2r) > 0;
}

uint32_t managed_image_function_count(const struct managed_image *image)
{
    return image->r2r ? ready_to_run_function_count(image->r2r) : 0;
}

static bool open_manifest(const struct source *file, struct managed_image *image, struct error *err)
{
    struct pe_range manifest = ready_to_run_section(image->r2r, R2R_SECTION_MANIFEST_METADATA);
    struct pe_range mvids = ready_to_run_section(image->r2r, R2R_SECTION_MANIFEST_MVIDS);
    return (manifest.size == 0 || assembly_load(file, &image->pe, manifest, &image->manifest, err)) &&
           (mvids.size == 0 || pe_load(file, &image->pe, mvids, &image->manifest_mvids, err));
}

static bool open_code(const struct source *file, struct pe_range header, const struct kept_folder *kept,
                      struct managed_image *image, struct error *err)
{
    struct buffer index;
    kept_index_load(kept, file, &index);
    bool known = index.size > 0;
    bool ok = ready_to_run_open(file, &image->pe, header, &index, &image->r2r, err);
    if (ok && !known && kept_index_wants(kept, file))
        kept_index_save(kept, file, ready_to_run_index(image->r2r));
    buffer_done(&index);
    return ok;
}

/* `code`: its tables, too; `kept` as managed_image_open() has it. */
static bool open_tables(const struct source *file, const struct kept_folder *kept,
                        struct managed_image *image, bool code, struct error *err)
{
    struct pe_cli cli = { 0 };
    struct pe_range header = { 0 };
    if (pe_find_export(file, &image->pe, "RTR_HEADER", &header.rva, NULL)) {
        image->self.name = mem_copy_string("");
    } else {
        if (!pe_read_cli(file, &image->pe, &cli, err) ||
            !assembly_load(file, &image->pe, cli.metadata, &image->self, err))
            return false;
        image->is_assembly = true;
        for (size_t i = 0; i < MVID_BYTES; i++)
            snprintf(image->mvid + 2 * i, 3, "%02x", image->self.mvid[i]);
        header = cli.native_header;
        if (!code || header.size == 0 || !(cli.flags & PE_CLI_IL_LIBRARY))
            return true;
    }
    return open_code(file, header, kept, image, err) && open_manifest(file, image, err);
}

static bool open_image(const struct source *file, struct assembly_set *siblings,
                       const struct kept_folder *kept, bool code, struct managed_image **out,
                       struct error *err)
{
    struct managed_image *image = mem_alloc(1, sizeof *image);
    image->siblings = siblings;
    buffer_init(&image->manifest_mvids, MVIDS_BYTES_MAX);
    buffer_init(&image->name, NAME_BYTES_MAX);
    buffer_init(&image->signature, NAME_BYTES_MAX);
    buffer_init(&image->owner, NAME_BYTES_MAX);
    buffer_init(&image->params, NAME_BYTES_MAX);
    if (!pe_read(file, &image->pe, err) || !open_tables(file, kept, image, code, err)) {
        managed_image_close(image);
        return false;
    }
    *out = image;
    return true;
}

bool managed_image_open(const struct source *file, struct assembly_set *siblings,
                        const struct kept_folder *kept, struct managed_image **out, struct error *err)
{
    return open_image(file, siblings, kept, true, out, err);
}

bool managed_image_open_metadata(const struct source *file, struct assembly_set *siblings,
                                 struct managed_image **out, struct error *err)
{
    return open_image(file, siblings, NULL, false, out, err);
}

void managed_image_close(struct managed_image *image)
{
    if (!image)
        return;
    assembly_done(&image->self);
    assembly_done(&image->manifest);
    buffer_done(&image->manifest_mvids);
    ready_to_run_close(image->r2r);
    buffer_done(&image->name);
    buffer_done(&image->signature);
    buffer_done(&image->owner);
    buffer_done(&image->params);
    free(image->module);
    free(image);
}
