#include "cli/csv_text.h"

#include <inttypes.h>
#include <string.h>

void csv_init(struct csv_text *csv, struct buffer *out)
{
    *csv = (struct csv_text){ .out = out };
}

void csv_titles(struct csv_text *csv, const char *titles)
{
    buffer_string(csv->out, titles);
    buffer_u8(csv->out, '\n');
}

static void next_value(struct csv_text *csv)
{
    if (csv->in_row)
        buffer_u8(csv->out, ',');
    csv->in_row = true;
}

void csv_string(struct csv_text *csv, const char *text)
{
    next_value(csv);
    if (!text)
        return;
    if (!strpbrk(text, ",\"\r\n")) {
        buffer_string(csv->out, text);
        return;
    }
    buffer_u8(csv->out, '"');
    for (; *text; text++) {
        if (*text == '"')
            buffer_u8(csv->out, '"');
        buffer_u8(csv->out, (uint8_t)*text);
    }
    buffer_u8(csv->out, '"');
}

void csv_u64(struct csv_text *csv, uint64_t value)
{
    next_value(csv);
    buffer_format(csv->out, "%" PRIu64, value);
}

void csv_double(struct csv_text *csv, double value)
{
    next_value(csv);
    buffer_format(csv->out, "%.10g", value);
}

void csv_known_u64(struct csv_text *csv, bool known, uint64_t value)
{
    if (known)
        csv_u64(csv, value);
    else
        csv_string(csv, NULL);
}

void csv_known_double(struct csv_text *csv, bool known, double value)
{
    if (known)
        csv_double(csv, value);
    else
        csv_string(csv, NULL);
}

void csv_end_row(struct csv_text *csv)
{
    buffer_u8(csv->out, '\n');
    csv->in_row = false;
}
