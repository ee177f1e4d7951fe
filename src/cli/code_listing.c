#include "cli/code_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/target_finder.h"
#include "clr/method_name.h"
#include "collect/stub_census.h"

enum { LISTED_NAME_BYTES = 1 << 20 };

/* Who is right about an address, first. */
enum { RANK_METHOD, RANK_STUB };

struct file_finder code_listing_files(const struct code_census *census)
{
    if (census->core)
        return target_finder_core(census->core);
    struct file_finder files = target_finder_live(&census->files);
    /* what a process or we wrote down earlier may be over: it counts where nothing newer is known */
    if (census->told_by == RESOLVER_MEMORY)
        files.open_jit_file = NULL;
    return files;
}

static void add_symbol(struct code_listing *l, uint64_t addr, uint64_t size_bytes, const char *name,
                       const char *type_params, uint32_t rank)
{
    buffer_clear(&l->name);
    if (rank != RANK_METHOD || l->raw_names)
        buffer_string(&l->name, name);
    else
        method_name_show(span_of(name, strlen(name)), type_params, &l->name);
    code_symbols_add(&l->symbols, (struct code_symbol){
                                      addr, size_bytes,
                                      intern_add(&l->census->b.trace.strings, buffer_span(&l->name)), rank });
}

/* The names of jitted methods are completed from their assemblies where somebody asks for a location in them.
 */
static void name_jitted(struct code_listing *l)
{
    struct code_census *census = l->census;
    struct trace *t = &census->b.trace;
    for (uint32_t id = 1; id < t->codes.count; id++) {
        uint32_t location = trace_push(&t->locations);
        t->locations.rows[location] = (struct trace_location){
            .process = census->process,
            .mapping = trace_builder_mapping_at(&census->b, census->process, t->codes.rows[id].addr),
            .code = id,
            .addr = t->codes.rows[id].addr,
            .first_ns = 1,
        };
    }
    struct symbolizer_options options = { .files = code_listing_files(census), .kernel = false };
    struct symbolizer_result result = { 0 };
    symbolizer_run(t, &census->b.functions, &options, &result);
}

static void add_jitted(struct code_listing *l)
{
    const struct trace *t = &l->census->b.trace;
    name_jitted(l);
    for (size_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        const struct trace_function *function = &t->functions.rows[row->function];
        if (!row->function || !row->code)
            continue;
        l->jitted++;
        add_symbol(l, row->addr, t->codes.rows[row->code].size_bytes, trace_string(t, function->name),
                   trace_string(t, function->type_params), RANK_METHOD);
    }
}

static void find_mappings(struct code_listing *l, uint32_t image)
{
    const struct trace *t = &l->census->b.trace;
    if (l->mappings_image == image)
        return;
    l->mappings_image = image;
    l->mapping_count = 0;
    for (uint32_t i = 1; i < t->mappings.count; i++) {
        if (t->mappings.rows[i].process != l->census->process || t->mappings.rows[i].image != image)
            continue;
        l->mappings = mem_grow(l->mappings, &l->mapping_capacity, l->mapping_count + 1, sizeof *l->mappings);
        l->mappings[l->mapping_count++] = i;
    }
}

static void add_precompiled(void *user, const struct precompiled_method *method)
{
    struct code_listing *l = user;
    find_mappings(l, method->image);
    for (size_t i = 0; i < l->mapping_count; i++) {
        const struct trace_mapping *m = &l->census->b.trace.mappings.rows[l->mappings[i]];
        if (method->file_off < m->file_off || method->file_off - m->file_off >= m->end - m->start)
            continue;
        l->precompiled += !method->is_stub;
        add_symbol(l, m->start + (method->file_off - m->file_off), method->size_bytes, method->name,
                   method->type_params, method->is_stub ? RANK_STUB : RANK_METHOD);
    }
}

static void add_image(void *user, const struct precompiled_image *image)
{
    struct code_listing *l = user;
    l->images = mem_grow(l->images, &l->image_capacity, l->image_count + 1, sizeof *l->images);
    l->images[l->image_count++] =
        (struct listed_image){ image->image, image->methods, mem_copy_string(image->build_id) };
}

static void add_stub(void *user, uint64_t begin, uint64_t end, const char *kind)
{
    struct code_listing *l = user;
    l->stubs++;
    add_symbol(l, begin, end - begin, kind, "", RANK_STUB);
}

void code_listing_make(struct code_census *census, bool raw_names, struct code_listing *out)
{
    *out = (struct code_listing){ .census = census, .raw_names = raw_names };
    buffer_init(&out->name, LISTED_NAME_BYTES);
    struct file_finder files = code_listing_files(census);
    add_jitted(out);
    precompiled_code_list(&census->b.trace, &census->b.functions, census->process, &files, add_precompiled,
                          add_image, out, &out->result);
    stub_census_list(census, add_stub, out);
    code_symbols_settle(&out->symbols);
}

void code_listing_done(struct code_listing *listing)
{
    for (size_t i = 0; i < listing->image_count; i++)
        free(listing->images[i].build_id);
    free(listing->images);
    free(listing->mappings);
    buffer_done(&listing->name);
    code_symbols_done(&listing->symbols);
}
