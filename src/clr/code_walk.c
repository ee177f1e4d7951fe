#include "clr/code_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/code_survey.h"
#include "clr/jit_il_map.h"
#include "clr/method_text.h"
#include "clr/nibble_map.h"
#include "clr/precode.h"
#include "clr/runtime_version.h"

enum {
    PAGE_BYTES_MAX = 512 << 20,
    NAME_BYTES_MAX = 64 << 10,
    CHECK_MIN = 50,        /* methods to compare before a layout is believed */
    CHECK_MIN_PARTIAL = 8, /* in a dump that holds what stacks need, and little else */
    CHECK_MAX = 1000,
    CHECK_TRIES_MAX = 200000, /* places of precodes to look at */
    CHECK_PER_CENT = 99,
    METHOD_TOKEN = 0x06000000,
};

struct code_walk {
    struct memory_pages pages;
    const struct module_files *files;
    struct runtime_root root;
    struct runtime_layout layout;
    struct code_survey survey;
    bool surveyed; /* the survey is of now */
    struct loaded_types types;
    struct code_walk_report report;
    struct buffer name, target, import; /* of the last answer */
};

static void forget_survey(struct code_walk *w)
{
    code_survey_done(&w->survey);
    w->surveyed = false;
}

static void survey(struct code_walk *w)
{
    if (w->surveyed)
        return;
    if (w->root.head)
        w->root.addr = memory_pages_u64(&w->pages, w->root.head);
    code_survey_read(&w->survey, &w->pages, &w->layout, w->root.addr);
    w->report.ranges = w->survey.ranges.count;
    w->surveyed = true;
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

static void find_tier(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    uint32_t told;
    if (method_desc_tier(&w->pages, &w->layout, method, found->begin, &told))
        found->tier = tier_of(told);
    else if (w->layout.version.first != LAYOUT_NONE && method->tiered)
        found->tier = FOUND_TIER_0;
}

static void name_defined(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    found->kind = FOUND_METHOD;
    found->generic = method->kind == METHOD_GENERIC;
    found->token = METHOD_TOKEN | method->row;
    found->name = finished(&w->name, method_text_append(&w->types, method, &w->name));
    find_tier(w, method, found);
    const struct loaded_type *type = loaded_types_find(&w->types, method->table);
    if (type) {
        const struct loaded_module *module = loaded_types_module(&w->types, type);
        found->module_id = module->addr;
        found->module = module->name;
        found->path = module->path;
    }
}

/* The method that a stub leads to, by the address of its record. */
static void name_target(struct code_walk *w, uint64_t target, struct found_method *found)
{
    struct method_desc method;
    if (!target || !method_desc_read(&w->pages, &w->layout, target, &method))
        return;
    found->target = finished(&w->target, method_text_append(&w->types, &method, &w->target));
    if (found->target[0] && method.kind == METHOD_PINVOKE)
        found->import = finished(&w->import, method_text_append_import(&w->types, &method, &w->import));
}

static void name_dynamic(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    struct dynamic_method dynamic;
    found->kind = FOUND_DYNAMIC;
    found->collectible = true;
    found->name = finished(&w->name, method_text_append(&w->types, method, &w->name));
    dynamic_method_read(&w->pages, &w->layout, method, &dynamic);
    name_target(w, dynamic.target, found);
}

static void clear_answer(struct code_walk *w, struct found_method *found)
{
    buffer_clear(&w->name);
    buffer_clear(&w->target);
    buffer_clear(&w->import);
    *found = (struct found_method){ .name = "", .module = "", .path = "", .target = "", .import = "" };
}

static void name_code(struct code_walk *w, const struct surveyed_code *code, struct found_method *found)
{
    clear_answer(w, found);
    found->begin = code->body.begin;
    found->end = code->body.end;
    found->method_id = code->body.method;
    found->collectible = code->collectible;
    if (code->body.stub) {
        found->kind = FOUND_STUB;
        found->name = code_stub_name(code->body.stub);
    } else if (!code->described) { /* only what is collectible can have become senseless meanwhile */
        found->kind = code->collectible ? FOUND_DYNAMIC : FOUND_METHOD;
    } else if (code->method.kind == METHOD_DYNAMIC) {
        name_dynamic(w, &code->method, found);
    } else {
        name_defined(w, &code->method, found);
    }
}

static void count_agreement(struct code_walk *w, const struct method_desc *method)
{
    enum method_agreement agreement = method_text_check(&w->types, method);
    w->report.checked += agreement != AGREEMENT_UNKNOWN;
    w->report.agreed += agreement == AGREEMENT_RIGHT;
}

static uint32_t checks_wanted(const struct code_walk *w)
{
    return w->pages.memory->partial ? CHECK_MIN_PARTIAL : CHECK_MIN;
}

/* A small program has little jitted code; methods also have records behind their precodes. */
static void check_precodes(struct code_walk *w)
{
    unsigned tries = 0;
    for (size_t i = 0; i < w->survey.ranges.count && w->report.checked < CHECK_MIN * 4; i++) {
        const struct code_range *range = &w->survey.ranges.ranges[i];
        if (range->kind != CODE_RANGE_STUBS)
            continue;
        for (uint64_t at = range->begin; at < range->end && tries < CHECK_TRIES_MAX;
             at += PRECODE_BYTES, tries++) {
            struct precode precode;
            struct method_desc method;
            if (precode_read(&w->pages, at, &precode) &&
                method_desc_read(&w->pages, &w->layout, precode.method, &method))
                count_agreement(w, &method);
            if (w->report.checked >= CHECK_MIN * 4)
                break;
        }
    }
}

/* Does the metadata agree with what this layout makes of the methods that have code? */
static bool layout_fits(struct code_walk *w)
{
    size_t count, broken;
    survey(w);
    struct surveyed_code *codes = code_survey_list(&w->survey, &(struct code_choice){ 0 }, &count, &broken);
    size_t step = count / CHECK_MAX + 1;
    w->report.checked = w->report.agreed = 0;
    for (size_t i = 0; i < count; i += step)
        if (codes[i].described)
            count_agreement(w, &codes[i].method);
    free(codes);
    if (w->report.checked < CHECK_MIN)
        check_precodes(w);
    return w->report.checked >= checks_wanted(w) &&
           (uint64_t)w->report.agreed * 100 >= (uint64_t)w->report.checked * CHECK_PER_CENT;
}

static bool try_layout(struct code_walk *w, const struct runtime_layout *layout, bool described)
{
    w->layout = *layout;
    if (described && !runtime_layout_describe(&w->layout, w->root.descriptor))
        return false;
    forget_survey(w);
    loaded_types_init(&w->types, &w->pages, &w->layout, w->files);
    if (layout_fits(w)) {
        w->report.root = w->root.way;
        w->report.layout = layout->name;
        w->report.described = described;
        return true;
    }
    loaded_types_done(&w->types);
    return false;
}

/* The layout that the shape of what is there speaks for; which one it is the metadata says. */
static const struct runtime_layout *guess_layout(struct code_walk *w)
{
    bool constant = false;
    w->layout = runtime_layouts[w->root.list ? runtime_layout_count - 1 : 0];
    survey(w);
    for (size_t i = 0; i < w->survey.heap_count && !constant; i++)
        constant = nibble_map_is_constant(buffer_span(&w->survey.heaps[i].map));
    unsigned major = w->root.list ? 3 : constant ? 10 : w->root.descriptor ? 9 : 8;
    for (size_t i = 0; i < runtime_layout_count; i++)
        if (runtime_layouts[i].major == major)
            return &runtime_layouts[i];
    return runtime_layouts;
}

/* The runtime's own description first, then the likely layout, then the others. */
static bool find_layout(struct code_walk *w, struct error *err)
{
    struct runtime_version version = { "" };
    uint32_t checked = 0, agreed = 0;
    runtime_version_from_path(span_of(w->root.module->path, strlen(w->root.module->path)), &version);
    const struct runtime_layout *likely = guess_layout(w);
    for (unsigned pass = w->root.descriptor ? 0 : 1; pass < 3; pass++)
        for (size_t i = 0; i < runtime_layout_count; i++) {
            const struct runtime_layout *layout = &runtime_layouts[i];
            if (layout->list != w->root.list || (pass == 0 && i > 0) ||
                (pass && (layout == likely) != (pass == 1)))
                continue;
            if (try_layout(w, layout, pass == 0))
                return true;
            if (w->report.agreed >= agreed) {
                checked = w->report.checked;
                agreed = w->report.agreed;
            }
        }
    if (checked < checks_wanted(w))
        return error_set(err, ERROR_UNSUPPORTED,
                         "cannot tell the layout of the runtime's memory yet: %u methods are too few",
                         checked);
    return error_set(
        err, ERROR_UNSUPPORTED,
        "no known layout fits this runtime%s%s: at best %u of %u methods agree with their metadata",
        version.text[0] ? " " : "", version.text, agreed, checked);
}

bool code_walk_open(const struct memory *memory, const struct module_files *files, struct code_walk **out,
                    struct error *err)
{
    struct code_walk *w = mem_alloc(1, sizeof *w);
    w->files = files;
    memory_pages_init(&w->pages, memory, PAGE_BYTES_MAX);
    buffer_init(&w->name, NAME_BYTES_MAX);
    buffer_init(&w->target, NAME_BYTES_MAX);
    buffer_init(&w->import, NAME_BYTES_MAX);
    if (!runtime_root_find(&w->pages, &w->root, err) || !find_layout(w, err)) {
        code_walk_close(w);
        return false;
    }
    *out = w;
    return true;
}

void code_walk_close(struct code_walk *walk)
{
    if (!walk)
        return;
    forget_survey(walk);
    loaded_types_done(&walk->types);
    runtime_root_done(&walk->root);
    memory_pages_done(&walk->pages);
    buffer_done(&walk->name);
    buffer_done(&walk->target);
    buffer_done(&walk->import);
    free(walk);
}

const struct code_walk_report *code_walk_report(const struct code_walk *walk)
{
    return &walk->report;
}

void code_walk_renew(struct code_walk *walk)
{
    memory_pages_drop(&walk->pages);
    loaded_types_renew(&walk->types);
    forget_survey(walk);
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
    size_t count, broken;
    bool going = true;
    struct code_walk_report *report = &w->report;
    survey(w);
    struct surveyed_code *codes = code_survey_list(&w->survey, choice, &count, &broken);
    code_survey_prove(&w->survey, codes, count);
    report->methods = report->dynamic = report->stubs = report->unnamed = 0;
    report->broken = broken;
    for (size_t i = 0; going && i < count; i++) {
        struct found_method found;
        name_code(w, &codes[i], &found);
        count_found(report, &found);
        going = emit(user, &found);
    }
    free(codes);
    report->pages = w->pages.reads;
    report->modules = w->types.module_count;
    report->cut = w->survey.cut;
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
    survey(walk);
    const struct code_range *range = code_ranges_find(&walk->survey.ranges, addr);
    if (!range || range->kind == CODE_RANGE_IMAGE)
        return false;
    if (range->kind == CODE_RANGE_STUBS)
        return find_stub(walk, range, addr, out);
    if (!code_survey_find(&walk->survey, range, addr, &code))
        return false;
    code_survey_prove(&walk->survey, &code, 1);
    name_code(walk, &code, out);
    return true;
}

const struct runtime_root *code_walk_root(const struct code_walk *walk)
{
    return &walk->root;
}

const char *code_walk_type_name(struct code_walk *walk, uint64_t table)
{
    const struct loaded_type *type = loaded_types_find(&walk->types, table);
    return type ? type->name : NULL;
}

bool code_walk_il_map(struct code_walk *walk, unsigned major, uint64_t begin, uint64_t size_bytes,
                      struct il_map *out, struct error *err)
{
    return jit_il_map_read(&walk->pages, &walk->layout, major ? major : walk->layout.major, begin, size_bytes,
                           out, err);
}
