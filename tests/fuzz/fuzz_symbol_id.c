#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "read/symbol_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a server may have sent: the first 20 bytes are the id that was asked for, the rest is the answer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_id id = { .size = 20 };
    if (size < id.size)
        return 0;
    memcpy(id.bytes, data, id.size);
    struct source file = source_over_span(span_of(data + id.size, size - id.size));
    for (unsigned kind = SYMBOL_BUILD_ID; kind <= SYMBOL_PDB; kind++) {
        id.kind = (enum symbol_kind)kind;
        if (symbol_id_check(&id, &file, NULL) && file.size < id.size)
            abort();
    }
    return 0;
}
