/*
 * derived_versions: where a runtime that nobody has measured notes the versions of a method's code.
 *
 * They tell tiers, not names: what is not plain stays as it was.
 */
#ifndef CLRPERF_CLR_DERIVED_VERSIONS_H
#define CLRPERF_CLR_DERIVED_VERSIONS_H

#include "clr/layout_evidence.h"

/*
 * Sets layout->version and layout->method.code_data when the records of methods lead to notes on code of
 * theirs. `record_size`: of the common part of a record.
 */
void derive_versions(struct memory_pages *pages, const struct layout_evidence *evidence, uint16_t record_size,
                     struct runtime_layout *layout);

#endif
