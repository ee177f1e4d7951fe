#include "cli/symbol_images.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/memory_thread.h"
#include "base/own.h"
#include "base/target_root.h"
#include "cli/capture.h"
#include "cli/symbol_store.h"
#include "cli/target_finder.h"
#include "collect/core_target.h"
#include "collect/proc_file.h"
#include "collect/process_mappings.h"
#include "collect/target_files.h"
#include "read/bundle.h"

enum { PATH_BYTES_MAX = 4096, IMAGES_MAX = 1 << 14, ELF_TYPE_OFF = 16, ELF_CORE = 4 };

/* Images are found one after the other. */
struct image_search {
    const struct symbol_subject *subject;
    struct debug_finder find; /* opens the subject's files */
    struct symbol_images *out;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_in(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool is_wanted(const struct symbol_subject *subject, const char *path)
{
    for (size_t i = 0; i < subject->name_count; i++)
        if (fnmatch(subject->names[i], path, 0) == 0 || fnmatch(subject->names[i], last_part(path), 0) == 0)
            return true;
    return subject->name_count == 0;
}

static bool is_wanted_kind(const struct symbol_subject *subject, bool managed)
{
    return subject->native == subject->managed || subject->managed == managed;
}

static struct symbol_image *add_row(struct symbol_images *images, const char *path)
{
    images->rows = mem_grow(images->rows, &images->capacity, images->count + 1, sizeof *images->rows);
    struct symbol_image *row = &images->rows[images->count++];
    *row = (struct symbol_image){ .path = mem_copy_string(path) };
    return row;
}

static bool is_known(const struct symbol_images *images, const char *path)
{
    for (size_t i = 0; i < images->count; i++)
        if (strcmp(images->rows[i].path, path) == 0)
            return true;
    return images->count >= IMAGES_MAX;
}

/* An image whose file is at hand. What is neither ELF nor an assembly is passed over. */
static void add_file(struct image_search *s, const char *path, const struct source *file)
{
    struct image_symbols symbols;
    if (is_wanted(s->subject, path) && !is_known(s->out, path) &&
        image_symbols_find(file, path, &s->find, &symbols, NULL) &&
        is_wanted_kind(s->subject, symbols.managed))
        add_row(s->out, path)->symbols = symbols;
}

static void add_bundled_file(struct image_search *s, const char *path, const struct source *file,
                             const struct bundle_entry *entry)
{
    AUTO_FREE char *inside = mem_format("%.*s%s", (int)(last_part(path) - path), path, entry->path);
    struct source part;
    if (!is_wanted(s->subject, inside) || !bundle_entry_open(file, entry, &part, NULL))
        return;
    add_file(s, inside, &part);
    close(part.fd);
}

/* The assemblies inside a single-file program, as if they lay beside it. */
static void add_bundled(struct image_search *s, const char *path, const struct source *file)
{
    struct bundle *bundle;
    if (!bundle_open(file, &bundle, NULL))
        return;
    for (size_t i = 0; i < bundle_count(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (entry->kind == BUNDLE_ASSEMBLY)
            add_bundled_file(s, path, file, entry);
    }
    bundle_close(bundle);
}

static void add_missing(struct image_search *s, const char *path, const char *problem)
{
    bool managed = ends_in(path, ".dll");
    if (!is_wanted(s->subject, path) || is_known(s->out, path) || !is_wanted_kind(s->subject, managed))
        return;
    struct symbol_image *row = add_row(s->out, path);
    row->problem = mem_copy_string(problem);
    row->symbols.managed = managed;
}

/* Of a file that is mapped. `bundles`: it may be a program with assemblies inside. */
static void add_mapped(struct image_search *s, const char *path, bool bundles)
{
    struct source file;
    AUTO_FD int fd = s->find.open(s->find.user, path);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL)) {
        add_missing(s, path, "the file cannot be read");
        return;
    }
    add_file(s, path, &file);
    if (bundles)
        add_bundled(s, path, &file);
}

/* Code, or an assembly without code of its own. Memory has names that begin with these, too. */
static bool may_be_image(const char *path, bool executable)
{
    return path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/", 5) != 0 &&
           strncmp(path, "/SYSV", 5) != 0 && (executable || ends_in(path, ".dll"));
}

/* A process. */

static int open_of_process(void *user, const char *path)
{
    return target_files_open(user, 1, path);
}

static bool add_mapping(void *user, const struct proc_mapping *m)
{
    struct image_search *s = user;
    char name[PATH_BYTES_MAX];
    if (m->path.size == 0 || m->path.size >= sizeof name)
        return true;
    memcpy(name, m->path.data, m->path.size);
    name[m->path.size] = 0;
    if (!may_be_image(name, m->executable) || is_known(s->out, name))
        return true;
    if (m->deleted)
        add_missing(s, name, "the file was replaced or removed since the process began");
    else
        add_mapped(s, name, m->executable);
    return true;
}

/* Its files can be opened below /proc/PID/root where its view of the file system is another one than ours. */
static void note_root(struct symbol_images *images, const struct target_files *files)
{
    struct stat its, ours;
    int root_fd = target_files_root(files, 1);
    if (root_fd >= 0 && fstat(root_fd, &its) == 0 && stat("/", &ours) == 0 &&
        (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino))
        /* lint: allow root, because it is only shown */
        snprintf(images->root, sizeof images->root, "/proc/%d/root", (int)memory_thread_of(images->pid));
}

static bool find_of_process(struct image_search *s, struct error *err)
{
    struct target_query query = s->subject->target;
    struct target_list list;
    struct target_files files = { 0 };
    query.one = true;
    if (!target_select(&query, &list, err))
        return false;
    const struct target *target = &list.items[0];
    s->find.open = open_of_process;
    s->find.user = &files;
    s->out->pid = target->pid;
    snprintf(s->out->label, sizeof s->out->label, "%s (%d)", target_label(target), (int)target->pid);
    target_files_add(&files, 1, (uint32_t)target->pid);
    bool ok = process_mappings_each(target->pid, MAPPINGS_ALL, add_mapping, s, err);
    note_root(s->out, &files);
    if (ok && !target_is_alive(target))
        ok = error_set(err, ERROR_TARGET, "process %d ended meanwhile", (int)target->pid);
    target_files_done(&files);
    target_list_done(&list);
    return ok;
}

/* A file. */

static int open_here(void *user, const char *path)
{
    (void)user;
    return target_finder_open_here(path);
}

static int open_of_core(void *user, const char *path)
{
    return core_target_open_file(user, path);
}

static bool find_of_core(struct image_search *s, struct error *err)
{
    struct core_target core;
    if (!core_target_open(s->subject->file, &core, err))
        return false;
    s->find.open = open_of_core;
    s->find.user = &core;
    for (size_t i = 0; i < core.memory.mapping_count; i++) {
        const struct memory_mapping *m = &core.memory.mappings[i];
        if (may_be_image(m->path, m->executable) && !is_known(s->out, m->path))
            add_mapped(s, m->path, m->executable);
    }
    core_target_close(&core);
    return true;
}

/* The file that lies here now may be another build: then only the build id counts. */
static void add_recorded(struct image_search *s, const char *path, const struct symbol_id *id)
{
    struct image_symbols symbols;
    size_t before = s->out->count;
    add_mapped(s, path, false);
    if (s->out->count == before || id->size == 0 || symbol_id_equals(&s->out->rows[before].symbols.id, id))
        return;
    image_symbols_find_by_id(id, &s->find, &symbols);
    s->out->rows[before].symbols = symbols;
}

static bool find_of_capture(struct image_search *s, struct error *err)
{
    struct capture capture;
    if (!capture_open(s->subject->file, &capture, err)) {
        if (err && err->kind == ERROR_INPUT) /* it looks like nothing that anyone reads */
            error_hint(err, "name a core dump, a capture, an ELF file or an assembly");
        return false;
    }
    const struct trace *t = &capture.b.trace;
    s->find.open = open_here;
    for (size_t i = 1; i < t->images.count; i++) {
        const struct trace_image *image = &t->images.rows[i];
        const char *path = trace_string(t, image->path);
        struct symbol_id id = symbol_id_from_hex(trace_string(t, image->build_id));
        if (may_be_image(path, image->kind == IMAGE_ELF) && !is_known(s->out, path))
            add_recorded(s, path, &id);
    }
    capture_done(&capture);
    return true;
}

static bool find_of_image(struct image_search *s, const struct source *file, struct error *err)
{
    struct image_symbols symbols;
    char path[PATH_MAX], link[32];
    snprintf(link, sizeof link, "fd/%d", file->fd);
    if (!proc_file_link(getpid(), link, path, sizeof path, err))
        return false;
    s->find.open = open_here;
    if (!image_symbols_find(file, path, &s->find, &symbols, err))
        return error_context(err, "'%s'", s->subject->file);
    add_row(s->out, path)->symbols = symbols;
    add_bundled(s, path, file);
    return true;
}

static bool find_of_file(struct image_search *s, struct error *err)
{
    const char *path = s->subject->file;
    uint8_t head[ELF_TYPE_OFF + 2] = { 0 };
    struct source file;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_system(err, errno, "cannot open '%s'", path);
    snprintf(s->out->label, sizeof s->out->label, "%s", last_part(path));
    bool is_file =
        source_over_fd(fd, 0, UINT64_MAX, &file, NULL) && source_read(&file, 0, head, sizeof head, NULL);
    if (is_file && memcmp(head, "\177ELF", 4) == 0)
        return load_u16le(head + ELF_TYPE_OFF) == ELF_CORE ? find_of_core(s, err)
                                                           : find_of_image(s, &file, err);
    return is_file && memcmp(head, "MZ", 2) == 0 ? find_of_image(s, &file, err) : find_of_capture(s, err);
}

static int compare_rows(const void *a, const void *b)
{
    const struct symbol_image *x = a, *y = b;
    int order = x->symbols.managed - y->symbols.managed;
    order = order ? order : strcmp(last_part(x->path), last_part(y->path));
    return order ? order : strcmp(x->path, y->path);
}

bool symbol_images_find(const struct symbol_subject *subject, const struct symbol_cache *cache,
                        struct symbol_images *out, struct error *err)
{
    struct image_search s = { .subject = subject, .find = { .cache = cache }, .out = out };
    *out = (struct symbol_images){ 0 };
    bool ok = subject->file ? find_of_file(&s, err) : find_of_process(&s, err);
    if (ok && out->count)
        qsort(out->rows, out->count, sizeof *out->rows, compare_rows);
    if (!ok)
        symbol_images_done(out);
    return ok;
}

void symbol_images_done(struct symbol_images *images)
{
    for (size_t i = 0; i < images->count; i++) {
        free(images->rows[i].path);
        free(images->rows[i].problem);
    }
    free(images->rows);
    *images = (struct symbol_images){ 0 };
}

char *symbol_images_found(const struct symbol_images *images, const struct symbol_image *image)
{
    const struct symbol_place *place = &image->symbols.place;
    AUTO_FREE char *store = symbol_store_path();
    switch (place->where) {
    case SYMBOLS_INSIDE:
    case SYMBOLS_MINIMAL:
        return mem_format("%s%s", images->root, image->path);
    case SYMBOLS_IN_FILE:
        return mem_format("%s%s", images->root, place->path);
    case SYMBOLS_IN_CACHE:
        return mem_format("%s/%s", store, place->path);
    case SYMBOLS_NOWHERE:
        break;
    }
    return mem_copy_string("");
}
