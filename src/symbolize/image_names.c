#include "symbolize/image_names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"
#include "clr/library_path.h"
#include "read/bundle.h"
#include "read/il_map.h"
#include "read/procfs.h"
#include "symbolize/images_ahead.h"

/* An assembly inside a single-file executable, opened when the first location falls into it. */
struct bundled {
    struct managed_image *image;
    uint64_t file_off, size_bytes;
    bool il_maps_tried;
};

struct image_names {
    struct image_file image; /* fd -1 when it could not be opened */
    struct bundle *bundle;
    struct bundled *bundled;
    size_t bundled_count, bundled_capacity;
    struct assembly_set *assemblies; /* for what is managed, or NULL */
    const struct naming *naming;
    uint32_t process;
    bool is_vdso, il_maps_tried;
    bool is_deleted, ahead;
    pthread_t thread; /* reads `image`, which is its until it is joined */
    bool has_thread;
};

static int open_debug_file(void *user, const char *path)
{
    const struct image_names *names = user;
    return naming_open(names->naming, names->process, path);
}

static void *read_managed(void *user)
{
    struct image_names *names = user;
    image_file_read(&names->image, NULL, NULL, names->naming->kept);
    return NULL;
}

static void image_names_read(struct image_names *names, struct naming *naming, const char *path)
{
    struct debug_finder debug = { open_debug_file, names, naming->cache };
    if (names->ahead && !names->image.managed && image_file_is_managed(&names->image))
        names->has_thread = thread_start(&names->thread, read_managed, names);
    if (names->has_thread)
        return;
    image_file_read(&names->image, path, &debug, naming->kept);
    if (names->image.native && native_image_is_runtime(names->image.native) && !library_path(path) &&
        bundle_open(&names->image.bytes, &names->bundle, NULL))
        names->assemblies = naming_assemblies(naming, names->process);
}

/* Whether the file holds what the process executes around a location. */
static bool image_names_has_code_of(const struct image_names *names, uint32_t location)
{
    enum { PAGE_BYTES = 4096 };
    const struct trace *t = names->naming->t;
    const struct file_finder *files = names->naming->files;
    const struct trace_location *row = &t->locations.rows[location];
    const struct trace_mapping *m = &t->mappings.rows[row->mapping];
    uint64_t page = row->addr - row->addr % PAGE_BYTES, file_off = page - m->start + m->file_off;
    uint8_t there[PAGE_BYTES], held[PAGE_BYTES];
    uint32_t size = 0;
    if (!files->read_memory || page < m->start || file_off >= names->image.bytes.size)
        return false;
    files->read_memory(files->user, row->process, &page, 1, PAGE_BYTES, there, &size);
    if (size > names->image.bytes.size - file_off)
        size = (uint32_t)(names->image.bytes.size - file_off);
    return size && source_read(&names->image.bytes, file_off, held, size, NULL) &&
           memcmp(there, held, size) == 0;
}

/* The first and the last code that was seen: what was put in between moves the latter. */
static bool image_names_has_code(const struct image_names *names, const uint32_t *locations, size_t count)
{
    const struct trace_location *rows = names->naming->t->locations.rows;
    size_t first = 0, last = count;
    while (rows[locations[first]].process != names->process)
        first++;
    do
        last--;
    while (rows[locations[last]].process != names->process);
    return image_names_has_code_of(names, locations[first]) &&
           image_names_has_code_of(names, locations[last]);
}

/* perf keeps 20 bytes of a build id, and fills up shorter ones. */
static bool is_same_build(const char *build_id, const char *recorded)
{
    size_t size = strlen(build_id), known = strlen(recorded);
    return size && strncmp(build_id, recorded, size < known ? size : known) == 0;
}

static bool image_names_is_it(const struct image_names *names, uint32_t image, bool deleted,
                              const uint32_t *locations, size_t count)
{
    const struct trace *t = names->naming->t;
    const char *recorded = trace_string(t, t->images.rows[image].build_id);
    if (names->image.native && recorded[0])
        return is_same_build(native_image_build_id(names->image.native), recorded);
    return !deleted || image_names_has_code(names, locations, count);
}

/* As the first process sees it that is still known. */
static void image_names_open_any(struct image_names *names, const char *path, const uint32_t *locations,
                                 size_t count)
{
    const struct trace_location *rows = names->naming->t->locations.rows;
    for (size_t i = 0; i < count && names->image.fd < 0; i++)
        if (i == 0 || rows[locations[i]].process != names->process) {
            names->process = rows[locations[i]].process;
            names->image.fd = naming_open(names->naming, names->process, path);
        }
}

static void image_names_drop(struct image_names *names)
{
    image_file_drop(&names->image);
    bundle_close(names->bundle);
    names->bundle = NULL;
}

/* By its build id an image can be told later, too: see late_names. */
static void image_names_note_build(const struct image_names *names, struct trace *t, uint32_t image)
{
    if (names->image.native && !trace_string(t, t->images.rows[image].build_id)[0]) {
        uint32_t build_id = trace_add_string(t, native_image_build_id(names->image.native));
        t->images.rows[image].build_id = build_id;
    }
}

/* The name of a mapped file, and the one that /proc/PID/maps has for it when that is gone. Whether it is. */
static bool split_deleted(const char *mapped, char **path, char **deleted_path)
{
    size_t size = strlen(mapped), suffix = strlen(PROCFS_DELETED);
    bool is_deleted = size > suffix && strcmp(mapped + size - suffix, PROCFS_DELETED) == 0;
    *path = mem_format("%.*s", (int)(is_deleted ? size - suffix : size), mapped);
    *deleted_path = mem_format("%s" PROCFS_DELETED, *path);
    return is_deleted;
}

static struct image_names *begin(struct naming *naming, uint32_t image, bool ahead, const uint32_t *locations,
                                 size_t count)
{
    const struct trace *t = naming->t;
    struct image_names *names = mem_alloc(1, sizeof *names);
    names->naming = naming;
    names->ahead = ahead;
    names->image.fd = -1;
    if (t->images.rows[image].kind == IMAGE_VDSO) {
        names->is_vdso = true;
        if (naming->own_kernel) /* another one's is not to be had */
            native_image_open_vdso(&names->image.native, NULL);
        return names;
    }
    AUTO_FREE char *path = NULL, *deleted_path = NULL;
    bool is_deleted = split_deleted(trace_string(t, t->images.rows[image].path), &path, &deleted_path);
    uint32_t process = t->locations.rows[locations[0]].process;
    if (!is_deleted && images_ahead_take(naming->ahead, process, path, &names->image))
        names->process = process;
    image_names_open_any(names, is_deleted ? deleted_path : path, locations, count);
    if (names->image.fd <
        0) /* deleted while we recorded; or another file has its name, which may be the same */
        image_names_open_any(names, is_deleted ? path : deleted_path, locations, count);
    names->is_deleted = is_deleted;
    if (names->image.fd >= 0)
        image_names_read(names, naming, path);
    return names;
}

void image_names_await(struct image_names *names, struct naming *naming, uint32_t image,
                       const uint32_t *locations, size_t count)
{
    if (names->has_thread)
        pthread_join(names->thread, NULL);
    names->has_thread = false;
    if (names->image.fd < 0)
        return;
    if (names->image.managed) { /* of another process they may have been asked meanwhile */
        names->assemblies = naming_assemblies(naming, names->process);
        managed_image_set_siblings(names->image.managed, names->assemblies);
    }
    if (!image_names_is_it(names, image, names->is_deleted, locations, count))
        image_names_drop(names);
    image_names_note_build(names, naming->t, image);
}

struct image_names *image_names_open_ahead(struct naming *naming, uint32_t image, const uint32_t *locations,
                                           size_t count)
{
    return begin(naming, image, true, locations, count);
}

struct image_names *image_names_open(struct naming *naming, uint32_t image, const uint32_t *locations,
                                     size_t count)
{
    struct image_names *names = begin(naming, image, false, locations, count);
    image_names_await(names, naming, image, locations, count);
    return names;
}

void image_names_close(struct image_names *names)
{
    for (size_t i = 0; i < names->bundled_count; i++)
        managed_image_close(names->bundled[i].image);
    image_names_drop(names);
    image_file_close(&names->image);
    free(names->bundled);
    free(names);
}

/* The assembly inside the executable that a byte of the file belongs to, or NULL. */
static struct bundled *image_names_bundled(struct image_names *names, uint64_t file_off)
{
    for (size_t i = 0; i < names->bundled_count; i++)
        if (file_off - names->bundled[i].file_off < names->bundled[i].size_bytes)
            return &names->bundled[i];
    const struct bundle_entry *entry = names->bundle ? bundle_find(names->bundle, file_off) : NULL;
    if (!entry || entry->compressed_bytes) /* what is compressed is never mapped from the file */
        return NULL;
    names->bundled =
        mem_grow(names->bundled, &names->bundled_capacity, names->bundled_count + 1, sizeof *names->bundled);
    struct bundled *part = &names->bundled[names->bundled_count++];
    *part = (struct bundled){ .file_off = entry->file_off, .size_bytes = entry->size_bytes };
    struct source file = source_part(&names->image.bytes, part->file_off, part->size_bytes);
    managed_image_open(&file, names->assemblies, names->naming->kept, &part->image, NULL);
    return part;
}

/* The assembly that a byte of the file belongs to, and where in the file it begins; NULL when native. */
static struct managed_image *image_names_assembly(struct image_names *names, uint64_t file_off,
                                                  uint64_t *out_begin)
{
    const struct bundled *part = image_names_bundled(names, file_off);
    *out_begin = part ? part->file_off : 0;
    return part ? part->image : names->image.managed;
}

static bool image_names_find(struct image_names *names, uint64_t file_off, struct code_name *out,
                             uint64_t *out_start)
{
    uint64_t begin, end;
    struct managed_image *assembly = image_names_assembly(names, file_off, &begin);
    if (assembly && managed_image_find(assembly, file_off - begin, out)) {
        *out_start = file_off;
        if (managed_image_method_range(assembly, file_off - begin, out_start, &end))
            *out_start += begin;
        else
            *out_start = UINT64_MAX;
        return true;
    }
    if (!names->image.native || begin || !native_image_find(names->image.native, file_off, out, out_start))
        return false;
    if (names->is_vdso)
        out->resolver = RESOLVER_VDSO;
    return true;
}

/* `start`: an offset in the file, or UINT64_MAX. */
static void image_names_tell_origin(struct image_names *names, struct naming *naming, uint32_t location,
                                    uint64_t file_off, uint64_t start)
{
    uint64_t begin, addr = naming->t->locations.rows[location].addr;
    const struct managed_image *assembly = image_names_assembly(names, file_off, &begin);
    naming_set_origin(naming, location, start <= file_off ? addr - (file_off - start) : 0,
                      names->image.native ? native_image_build_id(names->image.native) : "",
                      assembly ? managed_image_mvid(assembly) : "");
}

/* The maps are large, and most assemblies have no PDB to use them with: read when there is one, or when the
 * offset itself is asked for. */
static void image_names_load_il_maps(struct image_names *names, struct bundled *part)
{
    bool *tried = part ? &part->il_maps_tried : &names->il_maps_tried;
    struct source file =
        part ? source_part(&names->image.bytes, part->file_off, part->size_bytes) : names->image.bytes;
    if (!*tried)
        managed_image_load_il_maps(part ? part->image : names->image.managed, &file, NULL);
    *tried = true;
}

/*
 * As the process has it that the image was opened of, whichever the location is of: the image borrows that
 * one's assemblies, which go when another process is asked about, and asking in turns takes seconds.
 */
static void image_names_line(struct image_names *names, struct naming *naming, uint32_t location,
                             uint64_t file_off)
{
    struct method_il il;
    struct bundled *part = image_names_bundled(names, file_off);
    const struct managed_image *managed = part ? part->image : names->image.managed;
    if (!managed || !managed_image_il(managed, &il))
        return;
    const char *path = naming_assembly_path(naming, names->process, il.assembly);
    bool has_lines = path && naming_has_lines(naming, names->process, path);
    if (!has_lines && !naming->origins)
        return;
    image_names_load_il_maps(names, part);
    if (!managed_image_il(managed, &il))
        return;
    if (il.offset_known) {
        struct trace_location *row = &naming->t->locations.rows[location];
        row->il_off = il.offset;
        row->il_known = true;
    }
    if (has_lines)
        naming_set_line(naming, location, names->process, path, il.token,
                        il.offset_known ? il.offset : IL_NO_MAPPING);
}

void image_names_answer(struct image_names *names, struct naming *naming, uint32_t location,
                        uint64_t file_off)
{
    struct code_name name;
    uint64_t start = UINT64_MAX;
    bool found = image_names_find(names, file_off, &name, &start);
    if (naming->origins)
        image_names_tell_origin(names, naming, location, file_off, start);
    if (found) {
        naming_set(naming, location, &name);
        image_names_line(names, naming, location, file_off);
        return;
    }
    bool readable = names->image.native || names->image.managed;
    naming->t->locations.rows[location].unnamed = readable ? UNNAMED_NO_SYMBOL : UNNAMED_NO_IMAGE;
}

bool image_names_has_assemblies(const struct image_names *names)
{
    return names->image.managed || names->bundle;
}

void image_names_ask_sources(const struct image_names *names, struct naming *naming,
                             const uint32_t *locations, const uint64_t *file_offs, size_t count)
{
    if (names->image.native)
        naming_add_sources(naming, native_image_ask_sources(names->image.native, file_offs, count), locations,
                           count);
}
