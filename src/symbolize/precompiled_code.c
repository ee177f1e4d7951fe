#include "symbolize/precompiled_code.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/bundle.h"
#include "symbolize/managed_image.h"
#include "symbolize/naming.h"
#include "symbolize/native_image.h"

struct listing {
    struct naming naming;
    uint32_t process, image;
    precompiled_method_fn *emit;
    void *user;
    struct precompiled_result *result;
    uint32_t methods; /* of the image at hand */
};

struct stretch {
    uint64_t begin, end;
};

static int stretch_compare(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* A part split off as cold belongs to a method, and is left out here. */
static void tell_stub(struct listing *l, struct managed_image *assembly, uint64_t begin, struct stretch part)
{
    struct code_name name;
    if (part.begin < part.end && managed_image_find(assembly, part.begin - begin, &name) &&
        name.kind == CODE_STUB)
        l->emit(l->user, &(struct precompiled_method){ .image = l->image,
                                                       .file_off = part.begin,
                                                       .size_bytes = part.end - part.begin,
                                                       .is_stub = true,
                                                       .name = name.name,
                                                       .type_params = "",
                                                       .module = name.module });
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What lies between methods is padding when it is short. */
static void tell_gap(struct listing *l, struct managed_image *assembly, uint64_t begin, struct stretch gap,
                     struct stretch thunks)
{
    enum { PADDING_MAX = 15 };
    if (gap.end <= gap.begin || gap.end - gap.begin <= PADDING_MAX)
        return;
    tell_stub(l, assembly, begin, (struct stretch){ gap.begin, least(gap.end, thunks.begin) });
    tell_stub(l, assembly, begin,
              (struct stretch){ most(gap.begin, thunks.begin), least(gap.end, thunks.end) });
    tell_stub(l, assembly, begin, (struct stretch){ most(gap.begin, thunks.end), gap.end });
}

/* Code of the assembly that is in none of its methods, which are sorted here. */
static void list_stubs(struct listing *l, struct managed_image *assembly, uint64_t begin,
                       struct stretch *methods, size_t count)
{
    struct stretch thunks = { UINT64_MAX, UINT64_MAX }, code;
    if (managed_image_thunks(assembly, &thunks.begin, &thunks.end))
        thunks = (struct stretch){ thunks.begin + begin, thunks.end + begin };
    if (count)
        qsort(methods, count, sizeof *methods, stretch_compare);
    for (uint32_t i = 0; managed_image_code(assembly, i, &code.begin, &code.end); i++) {
        uint64_t at = code.begin + begin, end = code.end + begin;
        for (size_t m = 0; m < count; m++) {
            if (methods[m].end <= at || methods[m].begin >= end)
                continue;
            tell_gap(l, assembly, begin, (struct stretch){ at, methods[m].begin }, thunks);
            at = methods[m].end;
        }
        tell_gap(l, assembly, begin, (struct stretch){ at, end }, thunks);
    }
}

/* Methods of an assembly that begins at `begin` of its file. */
static void list_methods(struct listing *l, struct managed_image *assembly, uint64_t begin)
{
    uint64_t last_off = UINT64_MAX;
    struct stretch *methods = mem_alloc(managed_image_function_count(assembly), sizeof *methods);
    size_t count = 0;
    for (uint32_t f = 0; f < managed_image_function_count(assembly); f++) {
        struct code_name name;
        struct method_range range;
        if (!managed_image_function(assembly, f, &name, &range) || !range.begin_off ||
            range.begin_off == last_off)
            continue; /* a funclet of the method before */
        last_off = range.begin_off;
        l->methods++;
        methods[count++] = (struct stretch){ begin + range.begin_off,
                                             begin + range.begin_off + range.end_rva - range.begin_rva };
        l->emit(l->user, &(struct precompiled_method){ .image = l->image,
                                                       .file_off = begin + range.begin_off,
                                                       .size_bytes = range.end_rva - range.begin_rva,
                                                       .name = name.name,
                                                       .type_params = name.type_params,
                                                       .module = name.module });
    }
    list_stubs(l, assembly, begin, methods, count);
    free(methods);
}

static void list_assembly(struct listing *l, const struct source *file, uint64_t begin)
{
    struct managed_image *assembly;
    if (!managed_image_open(file, naming_assemblies(&l->naming, l->process), NULL, &assembly, NULL)) {
        l->result->unreadable++;
        return;
    }
    if (managed_image_has_code(assembly))
        list_methods(l, assembly, begin);
    managed_image_close(assembly);
}

/* A single-file program: what is stored uncompressed is mapped from it. */
static void list_bundle(struct listing *l, const struct source *file)
{
    struct bundle *bundle;
    if (!bundle_open(file, &bundle, NULL))
        return;
    for (size_t i = 0; i < bundle_count(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (entry->kind != BUNDLE_ASSEMBLY || entry->compressed_bytes)
            continue;
        struct source part = source_part(file, entry->file_off, entry->size_bytes);
        list_assembly(l, &part, entry->file_off);
    }
    bundle_close(bundle);
}

static void list_file(struct listing *l, const struct source *file, const char *path,
                      precompiled_image_fn *emit_image)
{
    struct native_image *native = NULL;
    uint8_t magic[2] = { 0 };
    source_read(file, 0, magic, sizeof magic, NULL);
    if (magic[0] == 'M' && magic[1] == 'Z')
        list_assembly(l, file, 0);
    else if (native_image_open(file, path, NULL, &native, NULL) && native_image_is_runtime(native))
        list_bundle(l, file);
    if (l->methods) {
        struct precompiled_image image = { l->image, native ? native_image_build_id(native) : "",
                                           l->methods };
        l->result->images++;
        emit_image(l->user, &image);
    }
    native_image_close(native);
}

static bool may_hold_assemblies(const struct trace_image *image, const char *path)
{
    return image->kind == IMAGE_PE || (image->kind == IMAGE_ELF && !strstr(path, ".so"));
}

void precompiled_code_list(struct trace *t, struct function_index *functions, uint32_t process,
                           const struct file_finder *files, precompiled_method_fn *emit,
                           precompiled_image_fn *emit_image, void *user, struct precompiled_result *out)
{
    struct listing l = { .process = process, .emit = emit, .user = user, .result = out };
    *out = (struct precompiled_result){ 0 };
    struct symbolizer_options options = { .files = *files };
    naming_init(&l.naming, t, functions, &options);
    bool *seen = mem_alloc(t->images.count, sizeof *seen);
    for (size_t i = 1; i < t->mappings.count; i++) {
        l.image = t->mappings.rows[i].image;
        const struct trace_image *image = &t->images.rows[l.image];
        const char *path = trace_string(t, image->path);
        if (t->mappings.rows[i].process != process || seen[l.image] || !may_hold_assemblies(image, path))
            continue;
        seen[l.image] = true;
        l.methods = 0;
        struct source file;
        AUTO_FD int fd = naming_open(&l.naming, process, path);
        if (fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, &file, NULL))
            list_file(&l, &file, path, emit_image);
        else
            out->unreadable += image->kind == IMAGE_PE;
    }
    free(seen);
    naming_done(&l.naming);
}
