#include "collect/unpacked_images.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/library_path.h"
#include "read/bundle.h"
#include "read/pe.h"

enum {
    HEADER_BYTES = 4096,     /* all of an assembly's headers */
    COMPARED_BYTES = 512,    /* of them; a deterministic build's time stamp is a hash of its content */
    GRAIN_BYTES = 64 * 1024, /* the runtime begins what it reserves at multiples of this */
    GRAINS_MAX = 16,         /* between the headers and the code */
};

/* The beginning of an assembly of the bundle. */
struct head {
    const struct bundle_entry *entry;
    uint8_t bytes[COMPARED_BYTES];
};

struct unpacked_images {
    const struct memory *memory;
    struct module_files files;
    size_t seen; /* rows of trace.mappings */
    bool searched;
    char *program; /* its path, or NULL */
    struct bundle *bundle;
    struct head *heads; /* of what is compressed */
    size_t head_count, head_capacity;
};

struct unpacked_images *unpacked_images_new(const struct memory *memory, const struct module_files *files)
{
    struct unpacked_images *images = mem_alloc(1, sizeof *images);
    *images = (struct unpacked_images){ .memory = memory, .files = *files, .seen = 1 };
    return images;
}

void unpacked_images_free(struct unpacked_images *images)
{
    if (!images)
        return;
    bundle_close(images->bundle);
    free(images->program);
    free(images->heads);
    free(images);
}

/* The program. */

static void add_head(struct unpacked_images *images, const struct source *file,
                     const struct bundle_entry *entry)
{
    struct buffer bytes;
    buffer_init(&bytes, COMPARED_BYTES);
    if (bundle_entry_head(file, entry, &bytes, NULL) && bytes.size == COMPARED_BYTES) {
        images->heads =
            mem_grow(images->heads, &images->head_capacity, images->head_count + 1, sizeof *images->heads);
        struct head *head = &images->heads[images->head_count++];
        head->entry = entry;
        memcpy(head->bytes, bytes.data, COMPARED_BYTES);
    }
    buffer_done(&bytes);
}

static void read_program(struct unpacked_images *images, const struct source *file)
{
    if (!bundle_open(file, &images->bundle, NULL))
        return;
    for (size_t i = 0; i < bundle_count(images->bundle); i++) {
        const struct bundle_entry *entry = bundle_at(images->bundle, i);
        if (entry->kind == BUNDLE_ASSEMBLY && entry->compressed_bytes && !strchr(entry->path, '/'))
            add_head(images, file, entry);
    }
}

/* The first mapped file that is no library. */
static const char *program_path(const struct trace *t, uint32_t process)
{
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_image *image = &t->images.rows[t->mappings.rows[i].image];
        const char *path = trace_string(t, image->path);
        if (t->mappings.rows[i].process == process && image->kind == IMAGE_ELF && !library_path(path))
            return path;
    }
    return NULL;
}

static void find_program(struct unpacked_images *images, const char *path)
{
    struct source file;
    images->searched = true;
    if (!path || !images->files.open || !images->files.open(images->files.user, path, &file))
        return;
    images->program = mem_copy_string(path);
    read_program(images, &file);
    images->files.close(images->files.user, &file);
}

/* Its images. */

struct unpacked {
    const struct bundle_entry *entry;
    uint64_t file_off; /* of the code in the unpacked file */
};

static const struct bundle_entry *entry_with(const struct unpacked_images *images, const uint8_t *header)
{
    for (size_t i = 0; i < images->head_count; i++)
        if (memcmp(images->heads[i].bytes, header, COMPARED_BYTES) == 0)
            return images->heads[i].entry;
    return NULL;
}

/* Which byte of the file is at the RVA where code begins, or the page that it begins in. */
static bool code_file_off(const struct pe *pe, uint64_t rva, uint64_t *out)
{
    for (uint32_t i = 0; i < pe->section_count; i++) {
        const struct pe_section *s = &pe->sections[i];
        bool behind = rva >= s->rva && rva - s->rva < s->file_size;
        bool before = rva < s->rva && s->rva - rva < GRAIN_BYTES && s->rva - rva <= s->file_off;
        if (!s->executable || !(behind || before))
            continue;
        *out = s->file_off + rva - s->rva;
        return true;
    }
    return false;
}

static bool unpacked_from(const struct unpacked_images *images, uint64_t base, uint64_t code,
                          struct unpacked *out)
{
    uint8_t header[HEADER_BYTES];
    struct pe pe;
    if (!memory_read(images->memory, base, header, sizeof header) || header[0] != 'M' || header[1] != 'Z')
        return false;
    struct source source = source_over_span(span_of(header, sizeof header));
    return pe_read(&source, &pe, NULL) && code_file_off(&pe, code - base, &out->file_off) &&
           (out->entry = entry_with(images, header));
}

/* The assembly whose code begins at an address; its headers lie before it. */
static bool find_unpacked(const struct unpacked_images *images, uint64_t code, struct unpacked *out)
{
    uint64_t base = code - code % GRAIN_BYTES;
    for (unsigned i = 0; i <= GRAINS_MAX && base; i++, base -= GRAIN_BYTES)
        if (unpacked_from(images, base, code, out))
            return true;
    return false;
}

static void tell(struct unpacked_images *images, struct trace_builder *b, uint32_t mapping)
{
    struct unpacked found;
    const struct trace_mapping *row = &b->trace.mappings.rows[mapping];
    if (!images->searched)
        find_program(images, program_path(&b->trace, row->process));
    if (!images->head_count || !find_unpacked(images, row->start, &found))
        return;
    AUTO_FREE char *path = mem_format("%s/%s", images->program, found.entry->path);
    uint32_t image = trace_builder_image(b, span_of(path, strlen(path)), IMAGE_PE, 0, 0, 0);
    trace_builder_mapping_is(b, mapping, image, found.file_off);
}

static bool is_anonymous(const struct trace *t, uint32_t mapping, uint32_t process)
{
    const struct trace_mapping *row = &t->mappings.rows[mapping];
    return row->process == process && t->images.rows[row->image].kind == IMAGE_ANON;
}

void unpacked_images_tell(struct unpacked_images *images, struct trace_builder *b, uint32_t process)
{
    for (; images->seen < b->trace.mappings.count; images->seen++)
        if (is_anonymous(&b->trace, (uint32_t)images->seen, process))
            tell(images, b, (uint32_t)images->seen);
}

void unpacked_images_tell_once(const struct memory *memory, const struct module_files *files,
                               struct trace_builder *b, uint32_t process)
{
    struct unpacked_images *images = unpacked_images_new(memory, files);
    unpacked_images_tell(images, b, process);
    unpacked_images_free(images);
}
