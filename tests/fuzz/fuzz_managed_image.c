/* An assembly that is its own sibling under every name: headers, tables, signatures, names. */
#include <stdint.h>
#include <stdlib.h>

#include "symbolize/managed_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUNCTIONS_MAX = 64, OFFSETS = 64, TOKENS = 64 };

static bool open_same(void *user, const char *simple_name, struct source *out)
{
    (void)simple_name;
    *out = *(const struct source *)user;
    return true;
}

static void ask(struct managed_image *image, size_t size)
{
    struct code_name name;
    struct method_range range;
    uint64_t begin, end;
    for (uint32_t f = 0; f < managed_image_function_count(image) && f < FUNCTIONS_MAX; f++)
        managed_image_function(image, f, &name, &range);
    for (uint64_t i = 0; i < OFFSETS; i++) {
        uint64_t file_off = size * i / OFFSETS;
        managed_image_find(image, file_off, &name);
        if (managed_image_method_range(image, file_off, &begin, &end) && begin > end)
            abort();
    }
    for (uint32_t row = 0; row < TOKENS; row++)
        managed_image_type_params(image, 0x06000000 | row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span((struct span){ data, size });
    struct sibling_finder finder = { .open = open_same, .user = &file };
    struct assembly_set *siblings = assembly_set_new(&finder);
    struct managed_image *image;
    if (managed_image_open(&file, siblings, NULL, &image, NULL)) {
        ask(image, size);
        managed_image_close(image);
    }
    assembly_set_free(siblings);
    return 0;
}
