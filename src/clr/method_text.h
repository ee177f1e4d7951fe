/*
 * method_text: spells a method found in a runtime's memory as the runtime's events do.
 *
 * "Ns.Type`1[Args]::Method[Args](args)", or "dynamicClass::Name(args)" for what has no metadata: byte by byte
 * what runtime_method_append_name() makes of the runtime's own events, but for a generic method's own
 * arguments, which these do not tell.
 */
#ifndef CLRPERF_CLR_METHOD_TEXT_H
#define CLRPERF_CLR_METHOD_TEXT_H

#include "clr/loaded_types.h"

/* How well a method's record agrees with the metadata of its assembly. */
enum method_agreement {
    AGREEMENT_UNKNOWN, /* no metadata at hand */
    AGREEMENT_RIGHT,   /* the row lies in the type's, the number of type parameters is right */
    AGREEMENT_WRONG,
};
enum method_agreement method_text_check(struct loaded_types *types, const struct method_desc *method);

/*
 * Appends the name. False, with part of it appended perhaps, when it cannot be spelled or the method's record
 * does not agree with the metadata. What is said of a dynamic method may be of another one by now: see
 * code_survey_prove().
 */
bool method_text_append(struct loaded_types *types, const struct method_desc *method, struct buffer *out);
/* "LIBRARY!ENTRY" of a method that is imported from a native library; false when it is not. */
bool method_text_append_import(struct loaded_types *types, const struct method_desc *method,
                               struct buffer *out);

#endif
