/*
 * symbol_key: the path under which a server has the symbols of an id.
 *
 * Two protocols: symbol servers as Microsoft's (dotnet/diagnostics
 * documentation/symbols/SSQP_Key_Conventions.md) and debuginfod (debuginfod(8), "WEBAPI").
 */
#ifndef CLRPERF_FETCH_SYMBOL_KEY_H
#define CLRPERF_FETCH_SYMBOL_KEY_H

#include <stdbool.h>

#include "base/buffer.h"
#include "read/symbol_id.h"

enum symbol_protocol { PROTOCOL_SSQP = 1, PROTOCOL_DEBUGINFOD = 2 };

/* In the order of asking: an image itself is the last resort, for servers that keep those that are not
 * stripped. */
enum symbol_key { KEY_SSQP_SYMBOLS, KEY_DEBUGINFOD, KEY_SSQP_PDB, KEY_SSQP_IMAGE, SYMBOL_KEYS };

enum symbol_protocol symbol_key_protocol(enum symbol_key key);
/*
 * Appends the path, without a slash in front. `file_name`: of the PDB, or of the image. False, and nothing is
 * appended, when an id of this kind, or of this size, has no such key.
 */
bool symbol_key_put(enum symbol_key key, const struct symbol_id *id, const char *file_name,
                    struct buffer *out);

#endif
