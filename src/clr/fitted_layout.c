#include "clr/fitted_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/derived_layout.h"
#include "clr/method_text.h"
#include "clr/nibble_map.h"
#include "clr/precode.h"

enum {
    CHECK_MIN = 50,        /* methods to compare before a layout is believed */
    CHECK_MIN_TOLD = 15,   /* of the layout that the runtime describes itself */
    CHECK_MIN_PARTIAL = 8, /* in a dump that holds what stacks need, and little else */
    CHECK_MIN_PARTIAL_TOLD = 2,
    CHECK_FIRST = 80, /* enough where all of them agree: each costs reads */
    CHECK_FIRST_TOLD = 25,
    CHECK_MAX = 200,
    CHECK_TRIES_MAX = 200000, /* places of precodes to look at */
    CHECK_PER_CENT = 99,
};

const char *layout_way_name(enum layout_way way)
{
    static const char *const names[] = { "descriptor", "table", "derived" };
    return names[way];
}

void fitted_layout_survey(struct fitted_layout *fit)
{
    if (fit->surveyed)
        return;
    if (fit->root->head)
        fit->root->addr = memory_pages_u64(fit->pages, fit->root->head);
    code_survey_read(&fit->survey, fit->pages, &fit->layout, fit->root->addr);
    fit->surveyed = true;
}

void fitted_layout_forget_survey(struct fitted_layout *fit)
{
    code_survey_done(&fit->survey);
    fit->surveyed = false;
}

void fitted_layout_done(struct fitted_layout *fit)
{
    fitted_layout_forget_survey(fit);
    loaded_types_done(&fit->types);
}

/* The check. */

/* Enough; a dump that holds little may have fewer. */
static uint32_t checks_hoped_for(const struct fitted_layout *fit)
{
    return fit->way == LAYOUT_DESCRIBED ? CHECK_MIN_TOLD : CHECK_MIN;
}

static uint32_t checks_wanted(const struct fitted_layout *fit)
{
    if (!fit->pages->memory->partial)
        return checks_hoped_for(fit);
    return fit->way == LAYOUT_DESCRIBED ? CHECK_MIN_PARTIAL_TOLD : CHECK_MIN_PARTIAL;
}

/* Once enough methods were compared, those of one module more say little for the reading of its metadata. */
static bool is_worth_comparing(struct fitted_layout *fit, const struct method_desc *method)
{
    struct method_table table;
    return fit->checked < checks_hoped_for(fit) ||
           (method_table_read(fit->pages, &fit->layout, method->table, &table) &&
            loaded_types_has_module(&fit->types, table.module));
}

static void count_agreement(struct fitted_layout *fit, const struct method_desc *method)
{
    if (!is_worth_comparing(fit, method))
        return;
    enum method_agreement agreement = method_text_check(&fit->types, method);
    fit->checked += agreement != AGREEMENT_UNKNOWN;
    fit->agreed += agreement == AGREEMENT_RIGHT;
}

/* A small program has little jitted code; methods also have records behind their precodes. */
static void check_precodes(struct fitted_layout *fit)
{
    unsigned tries = 0;
    for (size_t i = 0; i < fit->survey.ranges.count && fit->checked < CHECK_MIN * 4; i++) {
        const struct code_range *range = &fit->survey.ranges.ranges[i];
        if (range->kind != CODE_RANGE_STUBS)
            continue;
        for (uint64_t at = range->begin; at < range->end && tries < CHECK_TRIES_MAX;
             at += PRECODE_BYTES, tries++) {
            struct precode precode;
            struct method_desc method;
            if (precode_read(fit->pages, at, &precode) &&
                method_desc_read(fit->pages, &fit->layout, precode.method, &method))
                count_agreement(fit, &method);
            if (fit->checked >= CHECK_MIN * 4)
                break;
        }
    }
}

/* A method to compare; of how many its module is the owner. */
struct compared {
    const struct method_desc *method;
    uint64_t module;
    size_t of_module;
};

static int compare_modules(const void *a, const void *b)
{
    const struct compared *x = a, *y = b;
    return (x->module > y->module) - (x->module < y->module);
}

static int compare_frequency(const void *a, const void *b)
{
    const struct compared *x = a, *y = b;
    return x->of_module != y->of_module ? (x->of_module < y->of_module) - (x->of_module > y->of_module)
                                        : compare_modules(a, b);
}

/* First those of the module that has most of them, and so on: to read the metadata of each takes its time. */
static void sort_by_module(struct compared *all, size_t count)
{
    qsort(all, count, sizeof *all, compare_modules);
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && all[end].module == all[begin].module)
            end++;
        for (size_t i = begin; i < end; i++)
            all[i].of_module = end - begin;
    }
    qsort(all, count, sizeof *all, compare_frequency);
}

static void check_methods(struct fitted_layout *fit, size_t at_most)
{
    struct code_choice some = { .at_most = at_most, .no_tiers = true };
    struct code_list list = code_survey_list(&fit->survey, &some);
    AUTO_FREE struct compared *all = mem_alloc(list.count, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct method_desc *method = &list.codes[i].method;
        struct method_table table;
        if (list.codes[i].described && method_table_read(fit->pages, &fit->layout, method->table, &table))
            all[count++] = (struct compared){ method, table.module, 0 };
    }
    sort_by_module(all, count);
    fit->checked = fit->agreed = 0;
    for (size_t i = 0; i < count; i++)
        count_agreement(fit, all[i].method);
    free(list.codes);
}

/* Does the metadata agree with what this layout makes of the methods that have code? */
static bool agrees(struct fitted_layout *fit)
{
    fitted_layout_survey(fit);
    check_methods(fit, fit->way == LAYOUT_DESCRIBED ? CHECK_FIRST_TOLD : CHECK_FIRST);
    if (fit->checked < checks_hoped_for(fit) || fit->agreed < fit->checked)
        check_methods(fit, CHECK_MAX);
    if (fit->checked < checks_hoped_for(fit))
        check_precodes(fit);
    return fit->checked >= checks_wanted(fit) &&
           (uint64_t)fit->agreed * 100 >= (uint64_t)fit->checked * CHECK_PER_CENT;
}

/* The ways. */

/* How well the best of those that were refused did. */
struct refusal {
    uint32_t checked, agreed;
    struct error derivation; /* why there is no derived one, or kind is 0 */
};

static bool try_layout(struct fitted_layout *fit, const struct runtime_layout *layout, enum layout_way way,
                       struct refusal *refusal)
{
    fit->layout = *layout;
    fit->way = way;
    fitted_layout_forget_survey(fit);
    loaded_types_init(&fit->types, fit->pages, &fit->layout, fit->files);
    if (agrees(fit))
        return true;
    if (fit->agreed >= refusal->agreed) {
        refusal->checked = fit->checked;
        refusal->agreed = fit->agreed;
    }
    loaded_types_done(&fit->types);
    return false;
}

/* Puts the version in the place of the one that the layout was measured on. */
static void set_version(const struct fitted_layout *fit, struct runtime_layout *layout)
{
    layout->name = fit->version.text;
    layout->major = (unsigned)strtoul(fit->version.text, NULL, 10);
}

static bool try_description(struct fitted_layout *fit, struct refusal *refusal)
{
    struct runtime_layout layout = runtime_layouts[0];
    if (!fit->root->descriptor || !runtime_layout_describe(&layout, fit->root->descriptor))
        return false;
    /* an application that brings its runtime has it beside itself: no version is in the path */
    const char *told = contract_descriptor_text(fit->root->descriptor, "RuntimeProductVersionString");
    if (!fit->version.text[0] && told)
        runtime_version_from_name(span_of(told, strlen(told)), &fit->version);
    if (fit->version.text[0])
        set_version(fit, &layout);
    return try_layout(fit, &layout, LAYOUT_DESCRIBED, refusal);
}

/* An application that brings its runtime has it beside itself: no version is in the path. */
static void find_version_in_file(struct fitted_layout *fit)
{
    const char *path = fit->root->module->path;
    enum runtime_kind kind;
    struct source file;
    if (fit->version.text[0] || !fit->files || !fit->files->open ||
        !fit->files->open(fit->files->user, path, &file))
        return;
    if (!runtime_version_scan(&file, &kind, &fit->version, NULL))
        fit->version.text[0] = 0;
    if (fit->files->close)
        fit->files->close(fit->files->user, &file);
}

/* The layout that the shape of what is there speaks for; which one it is the metadata says. */
static const struct runtime_layout *likely_layout(struct fitted_layout *fit)
{
    bool constant = false;
    fit->layout = runtime_layouts[fit->root->list ? runtime_layout_count - 1 : 0];
    fitted_layout_survey(fit);
    for (size_t i = 0; i < fit->survey.heap_count && !constant; i++)
        constant = nibble_map_is_constant(buffer_span(&fit->survey.heaps[i].map));
    unsigned major = fit->root->list ? 3 : constant ? 10 : fit->root->descriptor ? 9 : 8;
    for (size_t i = 0; i < runtime_layout_count; i++)
        if (runtime_layouts[i].major == major)
            return &runtime_layouts[i];
    return runtime_layouts;
}

/* "9.0.20" is of "9.0". */
static bool is_of(const struct runtime_version *version, const struct runtime_layout *layout)
{
    size_t size = strlen(layout->name);
    return strncmp(version->text, layout->name, size) == 0 &&
           (version->text[size] == '.' || version->text[size] == 0);
}

/* The layout measured on that version; where the version is not known the likely one, then the others. */
static bool try_measured(struct fitted_layout *fit, struct refusal *refusal)
{
    bool known = fit->version.text[0];
    const struct runtime_layout *likely = known ? NULL : likely_layout(fit);
    if (likely && try_layout(fit, likely, LAYOUT_MEASURED, refusal))
        return true;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        const struct runtime_layout *layout = &runtime_layouts[i];
        if (layout->list == fit->root->list && layout != likely && (!known || is_of(&fit->version, layout)) &&
            try_layout(fit, layout, LAYOUT_MEASURED, refusal))
            return true;
    }
    return false;
}

/* All agrees, and is only too little: no other layout would help. */
static bool is_too_early(const struct fitted_layout *fit, const struct refusal *refusal)
{
    return refusal->checked > 0 && refusal->checked < checks_wanted(fit) &&
           refusal->agreed == refusal->checked;
}

static bool try_derived(struct fitted_layout *fit, struct refusal *refusal)
{
    struct runtime_layout layout;
    if (is_too_early(fit, refusal) ||
        !derived_layout_find(fit->pages, fit->root, fit->files, &layout, &refusal->derivation))
        return false;
    set_version(fit, &layout);
    return try_layout(fit, &layout, LAYOUT_DERIVED, refusal);
}

static bool refuse(const struct fitted_layout *fit, const struct refusal *refusal, struct error *err)
{
    const char *derivation = refusal->derivation.what;
    if (refusal->checked < checks_wanted(fit))
        return error_set(err, ERROR_UNSUPPORTED,
                         "cannot tell the layout of the runtime's memory yet: %u methods are too few%s%s",
                         refusal->checked, derivation[0] ? "; " : "", derivation);
    return error_set(
        err, ERROR_UNSUPPORTED,
        "no known layout fits this runtime%s%s: at best %u of %u methods agree with their metadata%s%s",
        fit->version.text[0] ? " " : "", fit->version.text, refusal->agreed, refusal->checked,
        derivation[0] ? "; " : "", derivation);
}

bool fitted_layout_find(struct fitted_layout *fit, unsigned ways, struct error *err)
{
    const char *path = fit->root->module->path;
    struct refusal refusal = { 0 };
    runtime_version_from_path(span_of(path, strlen(path)), &fit->version);
    if (ways & 1 << LAYOUT_DESCRIBED && try_description(fit, &refusal))
        return true;
    find_version_in_file(fit);
    if (ways & 1 << LAYOUT_MEASURED && try_measured(fit, &refusal))
        return true;
    if (ways & 1 << LAYOUT_DERIVED && try_derived(fit, &refusal))
        return true;
    return refuse(fit, &refusal, err);
}
