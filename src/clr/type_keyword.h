/*
 * type_keyword: the C# keyword of a built-in type.
 */
#ifndef CLRPERF_CLR_TYPE_KEYWORD_H
#define CLRPERF_CLR_TYPE_KEYWORD_H

#include "base/cursor.h"

/* "int" for "System.Int32"; NULL when the type has no keyword. */
const char *type_keyword(struct span full_name);

#endif
