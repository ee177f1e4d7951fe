/*
 * type_params: what metadata says of a method beyond its name, as one short text for the display.
 *
 * The text is "TYPE PARAMETERS;METHOD PARAMETERS;KIND"; code_name.h and managed_image.h say more.
 */
#ifndef CLRPERF_SYMBOLIZE_TYPE_PARAMS_H
#define CLRPERF_SYMBOLIZE_TYPE_PARAMS_H

#include <stdint.h>

#include "base/buffer.h"
#include "read/ecma_metadata.h"

/* `type` and `method` are TypeDef and MethodDef rows; 0 when not known. Appends nothing for nothing. */
void type_params_append(const struct ecma_metadata *md, uint32_t type, uint32_t method, struct buffer *out);

#endif
