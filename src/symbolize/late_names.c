#include "symbolize/late_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/native_image.h"

enum { IMAGES_OPEN_MAX = 64 };

/* A fetched file, asked as if it were the image. */
struct late_image {
    struct native_image *names; /* NULL: there is none */
    int fd;
};

static void open_image(const struct trace *t, uint32_t image, const struct symbol_cache *cache,
                       struct late_image *out)
{
    const struct trace_image *row = &t->images.rows[image];
    struct symbol_id id = symbol_id_from_hex(trace_string(t, row->build_id));
    struct source file;
    AUTO_FD int fd = symbol_cache_find(cache, &id);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !symbol_id_check(&id, &file, NULL) ||
        !native_image_open(&file, trace_string(t, row->path), NULL, &out->names, NULL))
        return;
    out->fd = take_fd(&fd);
}

static void name_location(struct trace *t, struct function_index *functions, uint32_t location,
                          struct native_image *names)
{
    struct trace_function function = t->functions.rows[t->locations.rows[location].function];
    uint64_t addr, start;
    struct code_name name;
    if (!trace_name_is_place(trace_string(t, function.name), &addr) ||
        !native_image_find_addr(names, addr, &name, &start) || name.resolver != RESOLVER_ELF_SYMTAB)
        return;
    function.name = trace_add_string(t, name.name);
    uint32_t named = function_index_add(functions, t, &function);
    t->locations.rows[location].function = named;
    t->locations.rows[location].resolver = RESOLVER_ELF_DEBUG;
}

void late_names_add(struct trace *t, struct function_index *functions, const struct symbol_cache *cache)
{
    AUTO_FREE struct late_image *images = mem_alloc(t->images.count, sizeof *images);
    size_t opened = 0;
    for (uint32_t i = 1; i < t->images.count && opened < IMAGES_OPEN_MAX; i++) {
        open_image(t, i, cache, &images[i]);
        opened += images[i].names != NULL;
    }
    for (uint32_t i = 1; opened && i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        struct native_image *names = images[t->mappings.rows[row->mapping].image].names;
        if (row->resolver == RESOLVER_EH_FRAME && row->function && names)
            name_location(t, functions, i, names);
    }
    for (uint32_t i = 1; i < t->images.count; i++)
        if (images[i].names) {
            native_image_close(images[i].names);
            close(images[i].fd);
        }
}
