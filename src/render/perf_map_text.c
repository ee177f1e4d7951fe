#include "render/perf_map_text.h"

#include "render/shown_text.h"

enum { NAME_BYTES_MAX = 1 << 20 };

void perf_map_text_write(const struct trace *t, const struct code_symbols *symbols, struct output *out)
{
    struct buffer name;
    buffer_init(&name, NAME_BYTES_MAX);
    output_text(out, CODE_SYMBOLS_MARK);
    for (size_t i = 0; i < symbols->count; i++) {
        const struct code_symbol *row = &symbols->rows[i];
        buffer_clear(&name);
        shown_text_plain(&name, trace_string(t, row->name));
        if (!name.size)
            continue;
        output_hex(out, row->addr);
        output_char(out, ' ');
        output_hex(out, row->size_bytes);
        output_char(out, ' ');
        output_span(out, buffer_span(&name));
        output_char(out, '\n');
    }
    buffer_done(&name);
}
