#include "clr/code_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "clr/jit_il_map.h"
#include "clr/jit_opt_out.h"
#include "clr/method_path.h"
#include "clr/method_text.h"
#include "clr/precode.h"

enum {
    PAGE_BYTES_MAX = 512 << 20,
    NAME_BYTES_MAX = 64 << 10,
    SHARED_BYTES_MAX = 64 << 20,
};

/* What metadata says of a method. */
struct named_method {
    uint64_t module_id;
    const char *name, *module, *path; /* `name` is NULL: nobody asked yet */
    uint32_t token;
    bool generic;
};

struct code_walk {
    struct memory_pages pages;
    struct runtime_root root;
    struct fitted_layout fit;
    struct code_walk_report report;
    struct buffer name, target, import, type_params; /* of the last answer */
    struct named_method *shared; /* those of several pieces of code, while these are listed */
    struct arena shared_names;
};

static struct code_survey *survey(struct code_walk *w)
{
    fitted_layout_survey(&w->fit);
    w->report.ranges = w->fit.survey.ranges.count;
    return &w->fit.survey;
}

static enum found_tier tier_of(uint32_t told)
{
    static const uint8_t tiers[] = { FOUND_TIER_0,
                                     FOUND_TIER_1,
                                     FOUND_TIER_OSR,
                                     FOUND_TIER_OPTIMIZED,
                                     FOUND_TIER_0_INSTRUMENTED,
                                     FOUND_TIER_0_INSTRUMENTED };
    return told < sizeof tiers ? tiers[told] : FOUND_TIER_UNKNOWN;
}

static const char *finished(struct buffer *text, bool ok)
{
    buffer_u8(text, 0);
    return ok && !text->failed ? (const char *)text->data : "";
}

static enum found_tier tier_of_code(struct code_walk *w, const struct surveyed_code *code)
{
    const struct runtime_layout *layout = &w->fit.layout;
    if (code->has_tier)
        return tier_of(code->tier);
    if (code->method.tiered)
        return layout->version.first != LAYOUT_NONE ? FOUND_TIER_0 : FOUND_TIER_UNKNOWN;
    enum jit_opt_out out =
        layout->tiered_bit ? jit_opt_out_find(&w->fit.types, &code->method) : JIT_OPT_OUT_UNKNOWN;
    static const uint8_t tiers[] = { FOUND_TIER_UNKNOWN, FOUND_TIER_OPTIMIZED, FOUND_TIER_0 };
    return tiers[out];
}

static struct named_method name_method(struct code_walk *w, const struct method_desc *method)
{
    struct named_method named = {
        .token = ecma_token(ECMA_METHOD_DEF, method->row),
        .generic = method->kind == METHOD_GENERIC,
        .name = finished(&w->name, method_text_append(&w->fit.types, method, &w->name)),
        .module = "",
        .path = "",
    };
    const struct loaded_type *type = loaded_types_find_nameless(&w->fit.types, method->table);
    if (type) {
        const struct loaded_module *module = loaded_types_module(&w->fit.types, type);
        named.module_id = module->addr;
        named.module = module->name;
        named.path = module->file_path;
    }
    return named;
}

static void forget_shared(struct code_walk *w)
{
    arena_done(&w->shared_names);
    free(w->shared);
    w->shared = NULL;
}

/* The same, kept for the next piece of its code. */
static struct named_method name_shared(struct code_walk *w, const struct surveyed_code *code)
{
    struct named_method *kept = &w->shared[code->shared - 1];
    if (kept->name)
        return *kept;
    struct named_method named = name_method(w, &code->method);
    *kept = named;
    kept->name = arena_string(&w->shared_names, span_of(named.name, strlen(named.name)));
    return named;
}

static void name_defined(struct code_walk *w, const struct surveyed_code *code, struct found_method *found)
{
    struct named_method named =
        w->shared && code->shared ? name_shared(w, code) : name_method(w, &code->method);
    found->generic = named.generic;
    found->token = named.token;
    found->name = named.name;
    found->module_id = named.module_id;
    found->module = named.module;
    found->path = named.path;
    found->tier = (uint8_t)tier_of_code(w, code);
}

/* The method that a stub leads to, by the address of its record. */
static void name_target(struct code_walk *w, uint64_t target, struct found_method *found)
{
    struct method_desc method;
    if (!target || !method_desc_read(&w->pages, &w->fit.layout, target, &method))
        return;
    found->target = finished(&w->target, method_text_append(&w->fit.types, &method, &w->target));
    if (found->target[0] && method.kind == METHOD_PINVOKE)
        found->import = finished(&w->import, method_text_append_import(&w->fit.types, &method, &w->import));
}

static void name_dynamic(struct code_walk *w, const struct surveyed_code *code, struct found_method *found)
{
    const struct method_desc *method = &code->method;
    struct dynamic_method dynamic;
    found->collectible = true;
    found->tier = (uint8_t)tier_of_code(w, code);
    found->name = finished(&w->name, method_text_append(&w->fit.types, method, &w->name));
    dynamic_method_read(&w->pages, &w->fit.layout, method, &dynamic);
    name_target(w, dynamic.target, found);
    if (found->target[0]) {
        buffer_string(&w->type_params, ";;");
        buffer_string(&w->type_params, found->import[0] ? found->import : found->target);
        found->type_params = finished(&w->type_params, true);
    }
}

static void clear_answer(struct code_walk *w, struct found_method *found)
{
    buffer_clear(&w->name);
    buffer_clear(&w->target);
    buffer_clear(&w->import);
    buffer_clear(&w->type_params);
    *found = (struct found_method){
        .name = "", .module = "", .path = "", .target = "", .import = "", .type_params = ""
    };
}

static enum found_kind kind_of(const struct surveyed_code *code)
{
    if (code->body.stub)
        return FOUND_STUB;
    if (!code->described) /* only what is collectible can have become senseless meanwhile */
        return code->range->collectible ? FOUND_DYNAMIC : FOUND_METHOD;
    return code->method.kind == METHOD_DYNAMIC ? FOUND_DYNAMIC : FOUND_METHOD;
}

static void outline_code(struct code_walk *w, const struct surveyed_code *code, struct found_method *found)
{
    clear_answer(w, found);
    found->begin = code->body.begin;
    found->end = code->body.end;
    found->kind = (uint8_t)kind_of(code);
    found->method_id = code->body.method;
    found->collectible = code->range->collectible;
}

static void name_code(struct code_walk *w, const struct surveyed_code *code, struct found_method *found)
{
    outline_code(w, code, found);
    if (code->body.stub)
        found->name = code_stub_name(code->body.stub);
    else if (code->described && code->method.kind == METHOD_DYNAMIC)
        name_dynamic(w, code, found);
    else if (code->described)
        name_defined(w, code, found);
}

bool code_walk_open_by(const struct memory *memory, const struct module_files *files, unsigned ways,
                       struct code_walk **out, struct error *err)
{
    struct code_walk *w = mem_alloc(1, sizeof *w);
    w->fit = (struct fitted_layout){ .pages = &w->pages, .files = files, .root = &w->root };
    memory_pages_init(&w->pages, memory, PAGE_BYTES_MAX);
    buffer_init(&w->name, NAME_BYTES_MAX);
    buffer_init(&w->target, NAME_BYTES_MAX);
    buffer_init(&w->import, NAME_BYTES_MAX);
    buffer_init(&w->type_params, NAME_BYTES_MAX);
    arena_init(&w->shared_names, SHARED_BYTES_MAX);
    if (!runtime_root_find(&w->pages, &w->root, err) || !fitted_layout_find(&w->fit, ways, err)) {
        code_walk_close(w);
        return false;
    }
    w->report.root = w->root.way;
    w->report.way = w->fit.way;
    w->report.layout = w->fit.layout.name;
    w->report.checked = w->fit.checked;
    w->report.agreed = w->fit.agreed;
    *out = w;
    return true;
}

bool code_walk_open(const struct memory *memory, const struct module_files *files, struct code_walk **out,
                    struct error *err)
{
    return code_walk_open_by(memory, files, LAYOUT_ANY_WAY, out, err);
}

void code_walk_close(struct code_walk *walk)
{
    if (!walk)
        return;
    fitted_layout_done(&walk->fit);
    runtime_root_done(&walk->root);
    memory_pages_done(&walk->pages);
    buffer_done(&walk->name);
    buffer_done(&walk->target);
    buffer_done(&walk->import);
    buffer_done(&walk->type_params);
    free(walk);
}

const struct code_walk_report *code_walk_report(const struct code_walk *walk)
{
    return &walk->report;
}

void code_walk_trim(struct code_walk *walk)
{
    struct fitted_layout *fit = &walk->fit;
    loaded_types_done(&fit->types);
    loaded_types_init(&fit->types, fit->pages, &fit->layout, fit->files);
    memory_pages_trim(&walk->pages);
}

static void forget_all(struct code_walk *w)
{
    loaded_types_renew(&w->fit.types);
    fitted_layout_forget_survey(&w->fit);
}

void code_walk_renew(struct code_walk *walk)
{
    memory_pages_drop(&walk->pages);
    forget_all(walk);
}

void code_walk_forget(struct code_walk *walk)
{
    memory_pages_forget(&walk->pages);
    forget_all(walk);
}

/* Names are read before the proof that what they were read by has not changed. */
static void prove(struct code_walk *w, struct surveyed_code *codes, size_t count)
{
    struct found_method unused;
    code_survey_read_dynamic(survey(w), codes, count);
    for (size_t i = 0; i < count; i++)
        if (codes[i].range->collectible && codes[i].described)
            name_code(w, &codes[i], &unused);
    code_survey_prove(survey(w), codes, count);
}

static void count_found(struct code_walk_report *report, const struct found_method *found)
{
    report->stubs += found->kind == FOUND_STUB;
    report->dynamic += found->kind == FOUND_DYNAMIC;
    report->methods += found->kind == FOUND_METHOD;
    report->unnamed += found->name[0] == 0;
}

static bool list(struct code_walk *w, const struct code_choice *choice, code_walk_fn *emit, void *user)
{
    bool going = true;
    struct code_walk_report *report = &w->report;
    struct code_list list = code_survey_list(survey(w), choice);
    w->shared = mem_alloc(list.shared_count, sizeof *w->shared);
    prove(w, list.codes, list.count);
    report->methods = report->dynamic = report->stubs = report->unnamed = 0;
    report->broken = list.broken;
    for (size_t i = 0; going && i < list.count; i++) {
        struct found_method found;
        name_code(w, &list.codes[i], &found);
        count_found(report, &found);
        going = emit(user, &found);
    }
    forget_shared(w);
    free(list.codes);
    report->pages = w->pages.reads;
    report->modules = w->fit.types.module_count;
    report->cut = w->fit.survey.cut;
    return going;
}

bool code_walk_list(struct code_walk *walk, enum code_walk_which which, code_walk_fn *emit, void *user)
{
    struct code_choice choice = { .collectible = which == WALK_COLLECTIBLE };
    return list(walk, &choice, emit, user);
}

bool code_walk_list_at(struct code_walk *walk, const uint64_t *addrs, size_t count, code_walk_fn *emit,
                       void *user)
{
    struct code_choice choice = { .addrs = addrs, .addr_count = count };
    return count == 0 || list(walk, &choice, emit, user);
}

bool code_walk_outline_at(struct code_walk *walk, const uint64_t *addrs, size_t count, code_walk_fn *emit,
                          void *user)
{
    struct code_choice choice = { .addrs = addrs, .addr_count = count, .no_tiers = true };
    bool going = true;
    struct code_list list = { 0 };
    if (count)
        list = code_survey_list(survey(walk), &choice);
    for (size_t i = 0; going && i < list.count; i++) {
        struct found_method found;
        outline_code(walk, &list.codes[i], &found);
        going = emit(user, &found);
    }
    free(list.codes);
    return going;
}

static bool find_stub(struct code_walk *w, const struct code_range *range, uint64_t addr,
                      struct found_method *out)
{
    struct precode precode;
    clear_answer(w, out);
    out->kind = FOUND_STUB;
    out->collectible = range->collectible;
    out->name = code_stub_name(range->stub);
    if (precode_find(&w->pages, addr, &precode)) {
        out->begin = precode.begin;
        out->end = precode.begin + PRECODE_BYTES;
        out->method_id = precode.method;
        name_target(w, precode.method, out);
    } else {
        out->begin = addr;
    }
    return true;
}

bool code_walk_find(struct code_walk *walk, uint64_t addr, struct found_method *out)
{
    struct surveyed_code code;
    const struct code_range *range = code_ranges_find(&survey(walk)->ranges, addr);
    if (!range || range->kind == CODE_RANGE_IMAGE)
        return false;
    if (range->kind == CODE_RANGE_STUBS)
        return find_stub(walk, range, addr, out);
    if (!code_survey_find(survey(walk), range, addr, &code))
        return false;
    prove(walk, &code, 1);
    name_code(walk, &code, out);
    return true;
}

bool code_walk_find_new(struct code_walk *walk, uint64_t addr, struct found_method *out, bool *out_known)
{
    struct surveyed_code code;
    struct code_survey *codes = survey(walk);
    const struct code_range *range = code_ranges_find(&codes->ranges, addr);
    *out_known = range && range->kind == CODE_RANGE_HEAP && !range->collectible;
    if (!*out_known)
        return false;
    memory_pages_forget(&walk->pages);
    *out_known = code_survey_renew_heap(codes, range);
    if (!*out_known || !code_survey_find(codes, range, addr, &code))
        return false;
    name_code(walk, &code, out);
    return true;
}

const struct runtime_layout *code_walk_layout(const struct code_walk *walk)
{
    return &walk->fit.layout;
}

const struct runtime_root *code_walk_root(const struct code_walk *walk)
{
    return &walk->root;
}

struct loaded_types *code_walk_types(struct code_walk *walk)
{
    return &walk->fit.types;
}

const char *code_walk_type_name(struct code_walk *walk, uint64_t table)
{
    const struct loaded_type *type = loaded_types_find(&walk->fit.types, table);
    return type ? type->name : NULL;
}

void code_walk_follow(struct code_walk *walk, uint64_t since, uint64_t begin)
{
    const struct fitted_layout *fit = &walk->fit;
    const struct code_range *range = fit->surveyed ? code_ranges_find(&fit->survey.ranges, begin) : NULL;
    struct memory_path path;
    method_path_of_unwinding(&fit->layout, range ? range->begin : 0, begin, &path);
    memory_pages_follow(&walk->pages, since, &path);
}

bool code_walk_il_map(struct code_walk *walk, unsigned major, uint64_t begin, uint64_t size_bytes,
                      struct il_map *out, struct error *err)
{
    return jit_il_map_read(&walk->pages, &walk->fit.layout, major ? major : walk->fit.layout.major, begin,
                           size_bytes, out, err);
}
