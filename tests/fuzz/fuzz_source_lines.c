/* A file that is an assembly with a PDB inside, and the PDB of an assembly, whichever it is opened as. */
#include <stdint.h>
#include <stdlib.h>

#include "read/portable_pdb.h"
#include "symbolize/source_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 16, OFFSETS = 8 };

static bool open_same(void *user, const char *path, struct source *out)
{
    (void)path;
    *out = *(const struct source *)user;
    return true;
}

static void close_same(void *user, struct source *file)
{
    (void)user;
    (void)file;
}

static void ask_pdb(struct span bytes)
{
    struct portable_pdb pdb;
    struct pdb_line line;
    struct buffer path;
    if (!portable_pdb_open(bytes, &pdb, NULL))
        return;
    buffer_init(&path, 1 << 16);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < OFFSETS; i++)
            if (portable_pdb_find(&pdb, row, i * 5, &line)) {
                if (line.line == 0)
                    abort();
                portable_pdb_document(&pdb, line.document, &path);
            }
    for (uint32_t row = 0, il_offset; row < ROWS; row++)
        for (uint32_t await = 0; portable_pdb_await(&pdb, row, await, &il_offset); await++)
            ;
    buffer_done(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span(span_of(data, size));
    struct pdb_finder find = { .files = { open_same, close_same, &file } };
    struct source_lines *lines = source_lines_new(&find);
    struct source_place place;
    for (uint32_t row = 0; row < ROWS; row++)
        if (source_lines_find(lines, "/a.dll", 0x06000000 | row, row, &place) && place.line == 0)
            abort();
    source_lines_free(lines);
    ask_pdb(span_of(data, size));
    return 0;
}
