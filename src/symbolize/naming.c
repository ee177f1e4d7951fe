#include "symbolize/naming.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/library_path.h"
#include "read/bundle.h"

void naming_init(struct naming *naming, struct trace *t, struct function_index *functions,
                 const struct symbolizer_options *options)
{
    *naming = (struct naming){ .t = t,
                               .functions = functions,
                               .files = &options->files,
                               .cache = options->cache,
                               .kept = options->kept,
                               .ahead = options->ahead,
                               .own_kernel = options->kernel,
                               .origins = options->origins,
                               .bundle_fd = -1 };
}

static void naming_close_bundle(struct naming *naming)
{
    bundle_close(naming->bundle);
    if (naming->bundle_fd >= 0)
        close(naming->bundle_fd);
    naming->bundle = NULL;
    naming->bundle_fd = -1;
}

void naming_done(struct naming *naming)
{
    naming_finish_sources(naming);
    assembly_set_free(naming->assemblies);
    source_lines_free(naming->lines);
    naming_close_bundle(naming);
    free(naming->folders);
    free(naming->paths);
}

void naming_set(struct naming *naming, uint32_t location, const struct code_name *name)
{
    struct trace *t = naming->t;
    struct trace_function wanted = {
        .name = trace_add_string(t, name->name),
        .module = trace_add_string(t, name->module ? name->module : ""),
        .type_params = trace_add_string(t, name->type_params ? name->type_params : ""),
        .kind = (uint8_t)name->kind,
    };
    struct trace_location *row = &t->locations.rows[location];
    row->function = function_index_add(naming->functions, t, &wanted);
    row->tier = (uint8_t)name->tier;
    row->resolver = (uint8_t)name->resolver;
    row->unnamed = UNNAMED_NOT;
}

/* Functions that were inlined are of the location's kind and module. */
static void add_inlined(struct naming *naming, uint32_t location, const struct source_frame *inlined,
                        size_t count)
{
    struct trace *t = naming->t;
    struct trace_location *row = &t->locations.rows[location];
    struct trace_function function = t->functions.rows[row->function];
    row->inlined = (uint32_t)t->inlined.count;
    row->inlined_count = (uint8_t)count;
    for (size_t i = 0; i < count; i++) {
        function.name = trace_add_string(t, inlined[i].function);
        uint32_t id = trace_push(&t->inlined);
        t->inlined.rows[id] = (struct trace_inlined){
            .function = function_index_add(naming->functions, t, &function),
            .file = inlined[i].file ? trace_add_string(t, inlined[i].file) : 0,
            .line = inlined[i].line,
        };
    }
}

struct sources_asked {
    struct naming *naming;
    const uint32_t *locations;
};

_Static_assert(SOURCE_FRAMES_MAX - 1 <= TRACE_INLINED_MAX, "all fit into a trace");

static void take_source(void *user, size_t index, const struct source_frame *frames, size_t count)
{
    const struct sources_asked *asked = user;
    struct trace *t = asked->naming->t;
    uint32_t location = asked->locations[index];
    struct trace_location *row = &t->locations.rows[location];
    if (!row->function || row->line) /* an assembly inside has answered */
        return;
    row->file = frames[count - 1].file ? trace_add_string(t, frames[count - 1].file) : 0;
    row->line = frames[count - 1].line;
    if (count > 1)
        add_inlined(asked->naming, location, frames, count - 1);
}

static void finish_lookup(struct naming *naming, struct naming_lookup *pending)
{
    struct sources_asked asked = { naming, pending->locations };
    source_lookup_finish(pending->lookup, take_source, &asked);
    free(pending->locations);
}

void naming_add_sources(struct naming *naming, struct source_lookup *lookup, const uint32_t *locations,
                        size_t count)
{
    if (!lookup)
        return;
    if (naming->lookup_count == NAMING_LOOKUPS_MAX) {
        finish_lookup(naming, &naming->lookups[0]);
        memmove(&naming->lookups[0], &naming->lookups[1], --naming->lookup_count * sizeof naming->lookups[0]);
    }
    uint32_t *copy = memcpy(mem_alloc(count, sizeof *copy), locations, count * sizeof *copy);
    naming->lookups[naming->lookup_count++] = (struct naming_lookup){ lookup, copy };
}

void naming_finish_sources(struct naming *naming)
{
    for (size_t i = 0; i < naming->lookup_count; i++)
        finish_lookup(naming, &naming->lookups[i]);
    naming->lookup_count = 0;
}

int naming_open(const struct naming *naming, uint32_t process, const char *path)
{
    return naming->files->open ? naming->files->open(naming->files->user, process, path) : -1;
}

static void naming_add_folder(struct naming *naming, uint32_t path, bool *seen)
{
    if (seen[path])
        return;
    seen[path] = true;
    const char *text = trace_string(naming->t, path);
    const char *slash = strrchr(text, '/');
    if (!slash)
        return;
    uint32_t folder = intern_add(&naming->t->strings, span_of(text, (size_t)(slash - text) + 1));
    for (size_t i = 0; i < naming->folder_count; i++)
        if (naming->folders[i] == folder)
            return;
    naming->folders = mem_grow(naming->folders, &naming->folder_capacity, naming->folder_count + 1,
                               sizeof *naming->folders);
    naming->folders[naming->folder_count++] = folder;
}

void naming_set_origin(struct naming *naming, uint32_t location, uint64_t start, const char *build_id,
                       const char *mvid)
{
    if (!naming->origins)
        return;
    struct name_origin *origin = &naming->origins[location];
    if (start)
        origin->start = start;
    if (build_id[0])
        origin->build_id = trace_add_string(naming->t, build_id);
    if (mvid[0])
        origin->mvid = trace_add_string(naming->t, mvid);
}

/* Where the process has assemblies from: precompiled ones are mapped, others the runtime told of. */
static void naming_list_folders(struct naming *naming, uint32_t process)
{
    const struct trace *t = naming->t;
    AUTO_FREE bool *seen =
        mem_alloc(t->strings.count, sizeof *seen); /* paths: thousands of methods share one */
    naming->folder_count = 0;
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_mapping *m = &t->mappings.rows[i];
        if (m->process == process && t->images.rows[m->image].kind == IMAGE_PE)
            naming_add_folder(naming, t->images.rows[m->image].path, seen);
    }
    for (size_t i = 1; i < t->codes.count; i++)
        if (t->codes.rows[i].process == process && t->codes.rows[i].module_path)
            naming_add_folder(naming, t->codes.rows[i].module_path, seen);
}

/* A single-file program: the first mapped file that is no library may be one. */
static void naming_find_bundle(struct naming *naming, uint32_t process)
{
    const struct trace *t = naming->t;
    naming_close_bundle(naming);
    naming->bundle_folder = 0;
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_mapping *m = &t->mappings.rows[i];
        const char *path = trace_string(t, t->images.rows[m->image].path);
        if (m->process != process || t->images.rows[m->image].kind != IMAGE_ELF || library_path(path))
            continue;
        struct source file;
        naming->bundle_fd = naming_open(naming, process, path);
        if (naming->bundle_fd < 0 || !source_over_fd(naming->bundle_fd, 0, UINT64_MAX, &file, NULL) ||
            !bundle_open(&file, &naming->bundle, NULL))
            naming_close_bundle(naming);
        const char *slash = strrchr(path, '/');
        if (slash)
            naming->bundle_folder =
                intern_add(&naming->t->strings, span_of(path, (size_t)(slash - path) + 1));
        return;
    }
}

static bool naming_open_bundled(const struct naming *naming, const char *name, struct source *out)
{
    const struct bundle_entry *entry = naming->bundle ? bundle_find_path(naming->bundle, name) : NULL;
    struct source program;
    return entry && source_over_fd(naming->bundle_fd, 0, UINT64_MAX, &program, NULL) &&
           bundle_entry_open(&program, entry, out, NULL);
}

static bool naming_open_file(const struct naming *naming, uint32_t process, const char *path,
                             struct source *out)
{
    AUTO_FD int fd = naming_open(naming, process, path);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, out, NULL))
        return false;
    take_fd(&fd);
    return true;
}

bool naming_open_assembly(struct naming *naming, uint32_t process, const char *path, struct source *out)
{
    naming_assemblies(naming, process);
    const char *slash = strrchr(path, '/');
    return naming_open_file(naming, process, path, out) ||
           naming_open_bundled(naming, slash ? slash + 1 : path, out);
}

/* Puts into `path` where it lies; for one inside the program, where it would lie if it were not: there its
 * PDB may be. */
static bool naming_find_sibling(struct naming *naming, const char *simple_name, char path[PATH_MAX],
                                struct source *out)
{
    if (strchr(simple_name, '/'))
        return false;
    const char *folder = trace_string(naming->t, naming->bundle_folder);
    int size = snprintf(path, PATH_MAX, "%s%s.dll", folder, simple_name);
    if (size > 0 && size < PATH_MAX && naming_open_bundled(naming, path + strlen(folder), out))
        return true;
    for (size_t i = 0; i < naming->folder_count; i++) {
        folder = trace_string(naming->t, naming->folders[i]);
        size = snprintf(path, PATH_MAX, "%s%s.dll", folder, simple_name);
        if (size > 0 && size < PATH_MAX && naming_open_file(naming, naming->assemblies_process, path, out))
            return true;
    }
    return false;
}

static bool naming_open_sibling(void *user, const char *simple_name, struct source *out)
{
    char path[PATH_MAX];
    return naming_find_sibling(user, simple_name, path, out);
}

static void naming_close_sibling(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

struct assembly_set *naming_assemblies(struct naming *naming, uint32_t process)
{
    if (naming->assemblies && naming->assemblies_process == process)
        return naming->assemblies;
    assembly_set_free(naming->assemblies);
    naming->assemblies_process = process;
    naming->path_count = 0;
    naming_list_folders(naming, process);
    naming_find_bundle(naming, process);
    naming->assemblies = assembly_set_new(&(struct sibling_finder){
        .open = naming_open_sibling, .close = naming_close_sibling, .user = naming });
    return naming->assemblies;
}

const char *naming_assembly_path(struct naming *naming, uint32_t process, const char *simple_name)
{
    struct trace *t = naming->t;
    naming_assemblies(naming, process);
    uint32_t name = trace_add_string(t, simple_name);
    size_t i = 0;
    while (i < naming->path_count && naming->paths[i].name != name)
        i++;
    if (i == naming->path_count) {
        char path[PATH_MAX];
        struct source file;
        bool found = naming_find_sibling(naming, simple_name, path, &file);
        if (found)
            close(file.fd);
        naming->paths =
            mem_grow(naming->paths, &naming->path_capacity, naming->path_count + 1, sizeof *naming->paths);
        naming->paths[naming->path_count++] =
            (struct assembly_path){ name, found ? trace_add_string(t, path) : 0 };
    }
    return naming->paths[i].path ? trace_string(t, naming->paths[i].path) : NULL;
}

static bool naming_open_for_lines(void *user, const char *path, struct source *out)
{
    struct naming *naming = user;
    return naming_open_assembly(naming, naming->lines_process, path, out);
}

static struct source_lines *naming_lines(struct naming *naming, uint32_t process)
{
    if (!naming->lines || naming->lines_process != process) {
        struct pdb_finder find = { { naming_open_for_lines, naming_close_sibling, naming }, naming->cache };
        source_lines_free(naming->lines);
        naming->lines = source_lines_new(&find);
        naming->lines_process = process;
    }
    return naming->lines;
}

bool naming_has_lines(struct naming *naming, uint32_t process, const char *path)
{
    return source_lines_has(naming_lines(naming, process), path);
}

bool naming_find_line(struct naming *naming, uint32_t process, const char *path, uint32_t token,
                      uint32_t il_offset, struct source_place *out)
{
    return source_lines_find(naming_lines(naming, process), path, token, il_offset, out);
}

void naming_set_line(struct naming *naming, uint32_t location, uint32_t process, const char *path,
                     uint32_t token, uint32_t il_offset)
{
    struct trace *t = naming->t;
    struct source_place place;
    if (!naming_find_line(naming, process, path, token, il_offset, &place))
        return;
    struct trace_location *row = &t->locations.rows[location];
    row->file = trace_add_string(t, place.file);
    row->line = place.line;
    row->line_of_method = place.of_method;
}
