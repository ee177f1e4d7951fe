#include "clr/loaded_module.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf16.h"
#include "read/pe.h"
#include "read/procfs.h"

enum {
    METADATA_BYTES_MAX = 128 << 20,
    EMITTED_BYTES_MAX = 64 << 20,
    PATH_UNITS_MAX = 4096,
    PATH_BYTES_MAX = 3 * PATH_UNITS_MAX,
    NAME_BYTES_MAX = 512,
    HEADER_BYTES = 4096,
    CLI_HEADER_BYTES = 72,
    ROOT_BYTES = 128, /* of the metadata, to compare */
    FILE_IMAGE = 0x08,
    IMAGE_PATH = 0x10,
    LAYOUT_SIZE = 0x08, /* from its base on */
    LAYOUT_FLAGS = 0x0c,
    LAYOUT_LAID_OUT = 1,
    BUFFER_DATA = 0x10,
};
#define METADATA_MAGIC UINT32_C(0x424a5342) /* "BSJB" */

struct loaded_image {
    uint64_t base;
    uint32_t size;
    bool laid_out; /* sections at their addresses; else as in the file */
};

static char *copy_text(struct span text, size_t max)
{
    size_t size = text.size < max ? text.size : max;
    char *copy = mem_alloc(size + 1, 1);
    if (size)
        memcpy(copy, text.data, size);
    return copy;
}

static char *read_path(struct memory_pages *pages, uint64_t addr)
{
    struct buffer units, text;
    buffer_init(&units, 2 * PATH_UNITS_MAX);
    buffer_init(&text, PATH_BYTES_MAX);
    for (uint16_t unit; addr && !units.failed && (unit = memory_pages_u16(pages, addr)); addr += 2)
        buffer_u16le(&units, unit);
    utf16_append_utf8(&text, buffer_span(&units));
    char *path = copy_text(buffer_span(&text), PATH_BYTES_MAX);
    buffer_done(&units);
    buffer_done(&text);
    return path;
}

/* `base`: where the image layout has it. */
static bool read_image(struct memory_pages *pages, uint64_t layout_addr, uint16_t base,
                       struct loaded_image *out)
{
    uint64_t at = layout_addr + base;
    *out = (struct loaded_image){
        .base = memory_pages_u64(pages, at),
        .size = memory_pages_u32(pages, at + LAYOUT_SIZE),
        .laid_out = memory_pages_u32(pages, at + LAYOUT_FLAGS) & LAYOUT_LAID_OUT,
    };
    return layout_addr && out->base && out->size;
}

/* Where a part of the image is in memory. */
static bool image_addr(const struct loaded_image *image, const struct pe *pe, uint32_t rva, uint32_t size,
                       uint64_t *out_addr)
{
    uint64_t offset = rva;
    if (!image->laid_out && !pe_file_offset(pe, rva, size, &offset))
        return false;
    if (offset > image->size || size > image->size - offset)
        return false;
    *out_addr = image->base + offset;
    return true;
}

/* Where the image's metadata is in memory, by its headers. */
static bool find_metadata(struct memory_pages *pages, const struct loaded_image *image, uint64_t *out_addr,
                          uint32_t *out_size)
{
    uint8_t header[HEADER_BYTES];
    uint64_t cli;
    struct pe pe;
    size_t size = image->size < sizeof header ? image->size : sizeof header;
    memory_pages_read(pages, image->base, header, size);
    struct source source = source_over_span(span_of(header, size));
    if (!pe_read(&source, &pe, NULL) ||
        !image_addr(image, &pe, pe.directories[PE_DIRECTORY_CLI].rva, CLI_HEADER_BYTES, &cli))
        return false;
    *out_size = memory_pages_u32(pages, cli + 12);
    return image_addr(image, &pe, memory_pages_u32(pages, cli + 8), *out_size, out_addr) &&
           memory_pages_u32(pages, *out_addr) == METADATA_MAGIC;
}

char *loaded_image_path(struct memory_pages *pages, uint64_t image)
{
    return read_path(pages, memory_pages_u64(pages, image + IMAGE_PATH));
}

bool loaded_image_has_metadata(struct memory_pages *pages, uint64_t addr, uint16_t base)
{
    struct loaded_image image;
    uint64_t metadata;
    uint32_t size;
    return read_image(pages, addr, base, &image) && find_metadata(pages, &image, &metadata, &size);
}

static bool find_image_metadata(struct memory_pages *pages, const struct runtime_layout *layout,
                                uint64_t pe_image, uint64_t *out_addr, uint32_t *out_size)
{
    uint16_t places[] = { layout->image.loaded, layout->image.flat };
    for (size_t i = 0; i < 2; i++) {
        struct loaded_image image;
        if (read_image(pages, memory_pages_u64(pages, pe_image + places[i]), layout->image.base, &image) &&
            find_metadata(pages, &image, out_addr, out_size))
            return true;
    }
    return false;
}

struct span loaded_module_bytes(const struct loaded_module *module)
{
    return module->in_file ? lazy_bytes_span(module->in_file) : buffer_span(&module->in_memory);
}

/* What was read turned out not to be the metadata. */
static void forget_metadata(struct loaded_module *m)
{
    lazy_bytes_close(m->in_file);
    m->in_file = NULL;
    buffer_clear(&m->in_memory);
    m->md = (struct ecma_metadata){ 0 };
    m->origin = METADATA_NONE;
}

static bool load_from_memory(struct memory_pages *pages, struct loaded_module *m, uint64_t addr,
                             uint32_t size, enum metadata_origin origin)
{
    uint8_t *into = size ? buffer_reserve(&m->in_memory, size) : NULL;
    if (!into || !memory_read(pages->memory, addr, into, size))
        return false;
    m->in_memory.size = size;
    m->metadata = addr;
    m->origin = (uint8_t)origin;
    if (ecma_metadata_open(buffer_span(&m->in_memory), &m->md, NULL))
        return true;
    forget_metadata(m);
    return false;
}

static bool same_bytes(struct memory_pages *pages, uint64_t addr, struct span bytes)
{
    uint8_t there[ROOT_BYTES];
    return bytes.size <= sizeof there && memory_pages_read(pages, addr, there, bytes.size) &&
           memcmp(there, bytes.data, bytes.size) == 0;
}

/* Whether a file's metadata is the one that is loaded. What was wanted before is read with it. */
static bool is_loaded_one(struct memory_pages *pages, const struct loaded_module *m)
{
    struct span all = loaded_module_bytes(m), mvid = ecma_mvid(&m->md);
    struct span root = span_part(all, 0, all.size < ROOT_BYTES ? all.size : ROOT_BYTES);
    memory_pages_want(pages, m->metadata, root.size);
    if (mvid.size)
        memory_pages_want(pages, m->metadata + (uint64_t)(mvid.data - all.data), mvid.size);
    memory_pages_fetch(pages);
    return mvid.size && same_bytes(pages, m->metadata, root) &&
           same_bytes(pages, m->metadata + (uint64_t)(mvid.data - all.data), mvid);
}

/* *out_other: there is an assembly, but not the one that is loaded, for all that memory tells. */
static bool load_from_file(struct memory_pages *pages, const struct module_files *files,
                           struct loaded_module *m, bool *out_other)
{
    struct source file;
    struct pe pe;
    struct pe_cli cli;
    if (!files || !files->open || m->path[0] != '/' || !files->open(files->user, m->path, &file))
        return false;
    if (pe_read(&file, &pe, NULL) && pe_read_cli(&file, &pe, &cli, NULL))
        m->in_file = pe_load_lazily(&file, &pe, cli.metadata, METADATA_BYTES_MAX, NULL);
    if (files->close)
        files->close(files->user, &file);
    m->origin = METADATA_FILE;
    bool is_assembly = m->in_file && ecma_metadata_open_lazy(m->in_file, &m->md, NULL);
    /* of a dump the image's own pages may be missing: then there is nothing to compare with */
    if (is_assembly && (!m->metadata || is_loaded_one(pages, m)))
        return true;
    *out_other = is_assembly;
    forget_metadata(m);
    return false;
}

static bool load_emitted(struct memory_pages *pages, const struct runtime_layout *layout,
                         struct loaded_module *m)
{
    if (layout->module.emitted == LAYOUT_NONE)
        return false;
    uint64_t at = memory_pages_u64(pages, m->addr + layout->module.emitted);
    uint32_t size = at ? memory_pages_u32(pages, at) : 0;
    uint64_t bytes = layout->module.emitted_in_buffer ? memory_pages_u64(pages, at + BUFFER_DATA) : at + 4;
    return at && size <= EMITTED_BYTES_MAX && memory_pages_u32(pages, bytes) == METADATA_MAGIC &&
           load_from_memory(pages, m, bytes, size, METADATA_EMITTED);
}

static char *module_name(const struct loaded_module *m)
{
    struct span name = ecma_cell_string(&m->md, ECMA_ASSEMBLY, 1, ECMA_ASSEMBLY_NAME);
    if (name.size == 0)
        name = ecma_cell_string(&m->md, ECMA_MODULE, 1, ECMA_MODULE_NAME);
    return copy_text(name, NAME_BYTES_MAX);
}

static uint64_t module_file(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr)
{
    return memory_pages_u64(pages, addr + layout->module.file);
}

static uint64_t file_image(struct memory_pages *pages, uint64_t file)
{
    return file ? memory_pages_u64(pages, file + FILE_IMAGE) : 0;
}

/* Reads ahead what leads to the module's image, its path and its headers. */
static void follow_module(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr)
{
    struct memory_path path = { .start = addr };
    uint8_t image =
        memory_path_add_pointer(&path, memory_path_add_pointer(&path, 0, layout->module.file), FILE_IMAGE);
    memory_path_add_pointer(&path, image, IMAGE_PATH);
    memory_path_add_pointer(&path, memory_path_add_pointer(&path, image, layout->image.loaded),
                            layout->image.base);
    memory_path_add_pointer(&path, memory_path_add_pointer(&path, image, layout->image.flat),
                            layout->image.base);
    memory_pages_follow(pages, 0, &path);
}

void loaded_module_read(struct memory_pages *pages, const struct runtime_layout *layout,
                        const struct module_files *files, uint64_t addr, struct loaded_module *out)
{
    follow_module(pages, layout, addr);
    struct loaded_module m = { .addr = addr, .file = module_file(pages, layout, addr) };
    uint64_t image = file_image(pages, m.file);
    uint32_t size = 0;
    buffer_init(&m.in_memory, METADATA_BYTES_MAX);
    m.image = image;
    m.path = image ? loaded_image_path(pages, image) : mem_copy_string("");
    if (image && !find_image_metadata(pages, layout, image, &m.metadata, &size))
        m.metadata = 0;
    bool other = false;
    if (!image)
        load_emitted(pages, layout, &m);
    else if (!load_from_file(pages, files, &m, &other) && m.metadata)
        load_from_memory(pages, &m, m.metadata, size, METADATA_MEMORY);
    bool replaced = other && m.origin == METADATA_MEMORY;
    m.file_path = mem_format("%s%s", m.path, replaced ? PROCFS_DELETED : "");
    m.name = module_name(&m);
    *out = m;
}

void loaded_module_done(struct loaded_module *module)
{
    lazy_bytes_close(module->in_file);
    buffer_done(&module->in_memory);
    free(module->path);
    free(module->file_path);
    free(module->name);
    *module = (struct loaded_module){ 0 };
}

bool loaded_module_can_be_same(const struct loaded_module *module)
{
    return module->origin != METADATA_NONE && module->origin != METADATA_EMITTED && module->metadata;
}

bool loaded_module_is_same(struct memory_pages *pages, const struct runtime_layout *layout,
                           const struct loaded_module *module)
{
    if (!loaded_module_can_be_same(module))
        return false;
    memory_pages_want(pages, module->addr + layout->module.file, 8);
    memory_pages_want(pages, module->file + FILE_IMAGE, 8);
    return is_loaded_one(pages, module) && module_file(pages, layout, module->addr) == module->file &&
           file_image(pages, module->file) == module->image;
}
