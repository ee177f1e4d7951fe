#include "cli/verb.h"

#include <string.h>

#include "base/own.h"

extern const struct verb verb_export;
extern const struct verb verb_ps;
extern const struct verb verb_record;
extern const struct verb verb_report;
extern const struct verb verb_stack;
extern const struct verb verb_doctor;
extern const struct verb verb_addr;
extern const struct verb verb_map;
extern const struct verb verb_symbols;
extern const struct verb verb_trace;
extern const struct verb verb_profiles;
extern const struct verb verb_r2rmap;
extern const struct verb verb_completion;
extern const struct verb verb_complete;

/* clang-format off */
const struct verb *const verbs[] = {
    &verb_record,
    &verb_report,
    &verb_export,
    &verb_stack,
    &verb_trace,
    &verb_ps,
    &verb_profiles,
    &verb_doctor,
    &verb_map,
    &verb_addr,
    &verb_symbols,
    &verb_r2rmap,
    &verb_completion,
    &verb_complete,
    NULL,
};
/* clang-format on */

/* Spellings of the same thing in perf and the dotnet tools. */
static const struct {
    const char *spelling;
    const char *name;
} aliases[] = {
    { "check", "doctor" },      { "collect", "record" },         { "convert", "export" },
    { "list-processes", "ps" }, { "list-profiles", "profiles" },
};

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(aliases[i].spelling, name) == 0)
            name = aliases[i].name;
    }
    for (const struct verb *const *v = verbs; *v; v++) {
        if (strcmp((*v)->name, name) == 0)
            return *v;
    }
    return NULL;
}
