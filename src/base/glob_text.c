#include "base/glob_text.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool glob_matches(const char *glob, const char *name)
{
    return fnmatch(glob, name, FNM_CASEFOLD) == 0;
}

bool glob_matches_number(const char *glob, uint64_t number, const char *name)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return strcmp(glob, digits) == 0 || glob_matches(glob, name);
}
