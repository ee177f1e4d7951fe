#include "cli/symbol_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/replaced_file.h"
#include "cli/file_tree.h"
#include "render/elf_symbols.h"
#include "render/shown_text.h"

#define JIT_FILE          "/memfd:doublemapper (deleted)" /* as the kernel calls it in a mapping */
#define DEBUG_FOLDER      "/usr/lib/debug"
#define STRINGS_BYTES_MAX ((size_t)1 << 31)

/* The symbols of one file. */
struct file_symbols {
    struct elf_symbols_row *rows;
    size_t count, capacity;
    struct buffer strings;
};

static void file_symbols_add(struct file_symbols *f, const struct trace *t, const struct code_symbol *symbol,
                             uint64_t file_off)
{
    size_t name = f->strings.size;
    shown_text_plain(&f->strings, trace_string(t, symbol->name));
    buffer_u8(&f->strings, 0);
    if (f->strings.failed)
        return;
    f->rows = mem_grow(f->rows, &f->capacity, f->count + 1, sizeof *f->rows);
    f->rows[f->count++] = (struct elf_symbols_row){ file_off, symbol->size_bytes, name };
}

static int symbol_compare(const void *a, const void *b)
{
    const struct elf_symbols_row *x = a, *y = b;
    return (x->file_off > y->file_off) - (x->file_off < y->file_off);
}

/* A part of a file may be mapped twice. */
static void file_symbols_settle(struct file_symbols *f)
{
    size_t kept = 0;
    if (f->count)
        qsort(f->rows, f->count, sizeof *f->rows, symbol_compare);
    for (size_t i = 0; i < f->count; i++)
        if (kept == 0 || f->rows[kept - 1].file_off != f->rows[i].file_off)
            f->rows[kept++] = f->rows[i];
    f->count = kept;
}

static void file_symbols_collect(struct file_symbols *f, const struct code_listing *l, uint32_t image)
{
    const struct trace *t = &l->census->b.trace;
    buffer_u8(&f->strings, 0);
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_mapping *m = &t->mappings.rows[i];
        if (m->process != l->census->process || m->image != image)
            continue;
        for (size_t s = code_symbols_from(&l->symbols, m->start);
             s < l->symbols.count && l->symbols.rows[s].addr < m->end; s++)
            file_symbols_add(f, t, &l->symbols.rows[s], l->symbols.rows[s].addr - m->start + m->file_off);
    }
    file_symbols_settle(f);
}

static bool write_file(int root_fd, const char *path, const struct file_symbols *f, const char *build_id,
                       struct error *err)
{
    AUTO_FD int folder_fd = -1;
    const char *name;
    struct replaced_file file;
    if (!file_tree_place(root_fd, path, &folder_fd, &name, err) ||
        !replaced_file_open(folder_fd, name, &file, err))
        return false;
    struct output out;
    output_over_fd(&out, file.fd);
    elf_symbols_write(f->rows, f->count, &f->strings, build_id, &out);
    if (!output_close(&out, err)) {
        replaced_file_abandon(&file);
        return error_context(err, "the symbols of '%s'", path);
    }
    return replaced_file_commit(&file, err);
}

static bool write_image(const struct code_listing *l, int root_fd, uint32_t image, const char *path,
                        const char *build_id, struct symbol_files *result, struct error *err)
{
    struct file_symbols f = { 0 };
    buffer_init(&f.strings, STRINGS_BYTES_MAX);
    file_symbols_collect(&f, l, image);
    bool ok = !f.strings.failed || error_set(err, ERROR_LIMIT, "'%s' has more than 2 GiB of names", path);
    if (ok && f.count) {
        ok = write_file(root_fd, path, &f, build_id, err);
        result->written += ok;
    }
    buffer_done(&f.strings);
    free(f.rows);
    return ok;
}

/* Whether paths of the target lead to the same files for us. */
static bool same_root(const struct code_census *census)
{
    struct stat ours, theirs;
    return census->process < census->files.count && stat("/", &ours) == 0 &&
           fstat(target_files_root(&census->files, census->process), &theirs) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static void link_file(int root_fd, const char *path)
{
    const char *name;
    AUTO_FD int folder_fd = -1;
    if (file_tree_place(root_fd, path, &folder_fd, &name, NULL))
        (void)!symlinkat(path, folder_fd, name);
}

/* What is there already, an ELF file of ours above all, stays. */
static void link_native(const struct code_listing *l, int root_fd)
{
    const struct trace *t = &l->census->b.trace;
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_image *image = &t->images.rows[t->mappings.rows[i].image];
        const char *path = trace_string(t, image->path);
        if (image->kind == IMAGE_ELF && path[0] == '/')
            link_file(root_fd, path);
    }
    link_file(root_fd, DEBUG_FOLDER);
}

static uint32_t jit_image(const struct trace *t)
{
    for (uint32_t i = 1; i < t->images.count; i++)
        if (t->images.rows[i].kind == IMAGE_JIT)
            return i;
    return 0;
}

static bool is_debug_folder(int fd)
{
    struct stat debug, ours;
    return stat(DEBUG_FOLDER, &debug) == 0 && fstat(fd, &ours) == 0 && debug.st_dev == ours.st_dev &&
           debug.st_ino == ours.st_ino;
}

bool symbol_files_write(struct code_listing *listing, const char *folder, struct symbol_files *out,
                        struct error *err)
{
    const struct trace *t = &listing->census->b.trace;
    AUTO_FD int root_fd = -1;
    *out = (struct symbol_files){ 0 };
    if (!file_tree_open(folder, &root_fd, err))
        return false;
    for (size_t i = 0; i < listing->image_count; i++) {
        const struct listed_image *image = &listing->images[i];
        if (!write_image(listing, root_fd, image->image, trace_string(t, t->images.rows[image->image].path),
                         image->build_id, out, err))
            return false;
    }
    uint32_t jit = jit_image(t);
    if (jit && !write_image(listing, root_fd, jit, JIT_FILE, "", out, err))
        return false;
    out->found_anyway = is_debug_folder(root_fd);
    if (same_root(listing->census) && !out->found_anyway)
        link_native(listing, root_fd);
    return true;
}
