/*
 * type_name: the runtime's spelling of a type as people would write it.
 *
 * The runtime writes "System.Collections.Generic.Dictionary`2+Entry[System.Int32,System.__Canon][]"
 * (dotnet/runtime src/coreclr/vm/typestring.cpp, names escaped with '\').
 */
#ifndef CLRPERF_CLR_TYPE_NAME_H
#define CLRPERF_CLR_TYPE_NAME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/cursor.h"

enum { TYPE_NAME_SEGMENTS_MAX = 16, TYPE_NAME_ARGUMENTS_MAX = 64 };

/* A type's text taken apart; spans point into it. */
struct type_name {
    struct span segments[TYPE_NAME_SEGMENTS_MAX]; /* outermost first, without namespace and arity */
    uint8_t arities[TYPE_NAME_SEGMENTS_MAX];
    unsigned segment_count;
    struct span full_path; /* with namespace and arities */
    struct span arguments[TYPE_NAME_ARGUMENTS_MAX];
    unsigned argument_count;
    struct span suffix; /* "[]", "*", "&" */
};

/* False when the text is not of the runtime's form. */
bool type_name_split(struct span text, struct type_name *out);
/* A type that the compiler made to hold what lambdas capture: it has no name in the source. */
bool type_name_is_closure(struct span segment);

/*
 * Appends one segment with its share of the arguments, "Dictionary<int,TValue>". `used` counts the
 * arguments taken by earlier segments. `names`, comma-separated, stand for System.__Canon.
 */
void type_name_show_segment(const struct type_name *type, unsigned segment, struct span names, unsigned *used,
                            struct buffer *out);
/* Appends "<int,T>" of "[System.Int32,System.__Canon]"; false, with nothing appended, for another form. */
bool type_name_show_arguments(struct span list, struct span names, struct buffer *out);
/* Appends a whole type, with C# keywords: "Dictionary<int,_>.Entry[]". */
void type_name_show(struct span text, struct buffer *out);
/*
 * The same with its namespace, for a type that stands alone: "System.Func<int>", "byte[]". Events tell
 * a nested type without the one around it, whose arguments it takes: "Entry<int,string>[]"; and what the
 * compiler named keeps that name, as nothing else tells two closures apart.
 */
void type_name_show_full(struct span text, struct buffer *out);

#endif
