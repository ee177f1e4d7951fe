/*
 * code_listing: everything in a running .NET process that managed frames can lie in, with names.
 */
#ifndef CLRPERF_CLI_CODE_LISTING_H
#define CLRPERF_CLI_CODE_LISTING_H

#include <stdbool.h>

#include "collect/code_census.h"
#include "symbolize/precompiled_code.h"
#include "trace/code_symbols.h"

/* What a census can give the symbolizer. */
struct file_finder code_listing_files(const struct code_census *census);

/* An image with precompiled code. */
struct listed_image {
    uint32_t image, methods;
    char *build_id; /* in hex, or ""; owned */
};

struct code_listing {
    struct code_symbols symbols; /* settled; names are strings of the census's trace */
    struct listed_image *images; /* owned */
    size_t image_count, image_capacity;
    size_t jitted, precompiled, stubs; /* symbols by kind */
    struct precompiled_result result;
    /* while it is made */
    struct code_census *census;
    bool raw_names;
    struct buffer name;
    uint32_t *mappings; /* of the image at hand */
    size_t mapping_count, mapping_capacity;
    uint32_t mappings_image;
};

/* Adds names to the census's trace. The caller ends it with code_listing_done(). */
void code_listing_make(struct code_census *census, bool raw_names, struct code_listing *out);
void code_listing_done(struct code_listing *listing);

#endif
