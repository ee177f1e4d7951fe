#include "analyse/name_tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void name_tally_init(struct name_tally *tally)
{
    *tally = (struct name_tally){ 0 };
    intern_init(&tally->names, NAME_TALLY_BYTES_MAX);
    tally->rows = mem_grow(NULL, &tally->capacity, 1, sizeof *tally->rows);
    memset(tally->rows, 0, tally->capacity * sizeof *tally->rows);
}

void name_tally_done(struct name_tally *tally)
{
    intern_done(&tally->names);
    free(tally->rows);
    *tally = (struct name_tally){ 0 };
}

void name_tally_clear(struct name_tally *tally)
{
    name_tally_done(tally);
    name_tally_init(tally);
}

void name_tally_add(struct name_tally *tally, struct span name, uint64_t bytes)
{
    /* past the ceiling a name that is known still counts for itself */
    uint32_t id = intern_add(&tally->names, name);
    if (id >= NAME_TALLY_NAMES_MAX)
        id = 0;
    size_t had = tally->capacity;
    tally->rows = mem_grow(tally->rows, &tally->capacity, (size_t)id + 1, sizeof *tally->rows);
    if (tally->capacity > had)
        memset(tally->rows + had, 0, (tally->capacity - had) * sizeof *tally->rows);
    tally->rows[id].name = id;
    tally->rows[id].count++;
    tally->rows[id].bytes += bytes;
    tally->count++;
    tally->bytes += bytes;
}

static bool is_more(const struct name_tally_row *a, const struct name_tally_row *b)
{
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes;
    return a->count != b->count ? a->count > b->count : a->name < b->name;
}

size_t name_tally_top(const struct name_tally *tally, struct name_tally_row *out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < tally->capacity && i < tally->names.count; i++) {
        const struct name_tally_row *row = &tally->rows[i];
        size_t at = count;
        if (!row->count)
            continue;
        while (at > 0 && is_more(row, &out[at - 1]))
            at--;
        if (at == most)
            continue;
        if (count < most)
            count++;
        memmove(out + at + 1, out + at, (count - at - 1) * sizeof *out);
        out[at] = *row;
    }
    return count;
}

const char *name_tally_name(const struct name_tally *tally, const struct name_tally_row *row)
{
    return intern_text(&tally->names, row->name);
}
