#include "analyse/stack_filter.h"

static bool add_patterns(struct stack_filter *f, const char *const *patterns, uint64_t *bits,
                         struct error *err)
{
    for (; patterns && *patterns; patterns++) {
        if (f->count == STACK_FILTER_PATTERNS_MAX)
            return error_set(err, ERROR_LIMIT, "more than %d patterns", STACK_FILTER_PATTERNS_MAX);
        regex_t *pattern = &f->patterns[f->count];
        int e = regcomp(pattern, *patterns, REG_EXTENDED | REG_NOSUB);
        if (e) {
            char why[200];
            regerror(e, pattern, why, sizeof why);
            return error_set(err, ERROR_USAGE, "'%s' is not a regular expression: %s", *patterns, why);
        }
        *bits |= UINT64_C(1) << f->count++;
    }
    return true;
}

bool stack_filter_init(struct stack_filter *filter, const char *const *include, const char *const *exclude,
                       struct error *err)
{
    filter->count = 0;
    filter->include = filter->exclude = 0;
    if (add_patterns(filter, include, &filter->include, err) &&
        add_patterns(filter, exclude, &filter->exclude, err))
        return true;
    stack_filter_done(filter);
    return false;
}

void stack_filter_done(struct stack_filter *filter)
{
    while (filter->count)
        regfree(&filter->patterns[--filter->count]);
}

uint64_t stack_filter_match(const struct stack_filter *filter, const char *name)
{
    uint64_t matched = 0;
    for (size_t i = 0; i < filter->count; i++)
        if (regexec(&filter->patterns[i], name, 0, NULL, 0) == 0)
            matched |= UINT64_C(1) << i;
    return matched;
}

bool stack_filter_wants(const struct stack_filter *filter, uint64_t matched)
{
    return (matched & filter->include) == filter->include && !(matched & filter->exclude);
}
