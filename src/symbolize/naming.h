/*
 * naming: what the resolvers share while they name one trace: where names go, and where files come from.
 */
#ifndef CLRPERF_SYMBOLIZE_NAMING_H
#define CLRPERF_SYMBOLIZE_NAMING_H

#include "clr/code_name.h"
#include "symbolize/assembly_set.h"
#include "symbolize/source_lines.h"
#include "symbolize/source_lookup.h"
#include "symbolize/symbolizer.h"

enum { NAMING_LOOKUPS_MAX = 4 /* at a time */ };

struct naming {
    struct trace *t;
    struct function_index *functions;
    const struct file_finder *files;
    const struct symbol_cache *cache; /* or NULL */
    const struct kept_folder *kept;   /* or NULL */
    struct images_ahead *ahead;       /* or NULL */
    bool own_kernel;                  /* the trace's kernel is the one that runs now */
    struct name_origin *origins;      /* by location; NULL when nobody asks */
    /* assemblies of the process asked last: names of types that another assembly defines */
    struct assembly_set *assemblies;
    uint32_t assemblies_process;
    uint32_t *folders; /* strings: where assemblies of that process lie */
    size_t folder_count, folder_capacity;
    /* assemblies by simple name: where they lie; of that process too */
    struct assembly_path {
        uint32_t name, path; /* strings; path 0: nowhere */
    } * paths;
    size_t path_count, path_capacity;
    struct source_lines *lines; /* of lines_process, or NULL */
    uint32_t lines_process;
    struct naming_lookup {
        struct source_lookup *lookup;
        uint32_t *locations; /* owned */
    } lookups[NAMING_LOOKUPS_MAX];
    size_t lookup_count;
    uint32_t bundle_folder; /* string: where the single-file program lies */
    struct bundle *bundle;  /* of a single-file program, which has its assemblies inside; or NULL */
    int bundle_fd;
    uint64_t map_malformed; /* entries of perf maps and jitdumps that were skipped */
    char map_problem[512];  /* of the first that was not read, or not to its end; or "" */
};

void naming_init(struct naming *naming, struct trace *t, struct function_index *functions,
                 const struct symbolizer_options *options);
void naming_done(struct naming *naming);
/* Notes where a location's name came from, when that is asked for. `start`: an address, or 0. Texts may be
 * "". */
void naming_set_origin(struct naming *naming, uint32_t location, uint64_t start, const char *build_id,
                       const char *mvid);
/* Gives a location its name. */
void naming_set(struct naming *naming, uint32_t location, const struct code_name *name);
/* Takes over what was asked for locations of one image, or NULL. They get their names before the next image.
 */
void naming_add_sources(struct naming *naming, struct source_lookup *lookup, const uint32_t *locations,
                        size_t count);
/* Waits for all that was asked, and gives the locations their lines. */
void naming_finish_sources(struct naming *naming);
/* Opens a file as a process sees it; -1 when it cannot. */
int naming_open(const struct naming *naming, uint32_t process, const char *path);
/*
 * Opens an assembly of a process by its path: the file, or what a single-file program has inside under that
 * name. The caller closes out->fd.
 */
bool naming_open_assembly(struct naming *naming, uint32_t process, const char *path, struct source *out);
/*
 * Gives a location its source line: of a method (0x06......) of the assembly that a process has at `path`, at
 * an IL offset or one of read/il_map.h's marks. Leaves it without one where the assembly has no PDB.
 */
void naming_set_line(struct naming *naming, uint32_t location, uint32_t process, const char *path,
                     uint32_t token, uint32_t il_offset);
/* As source_lines_find(). */
bool naming_find_line(struct naming *naming, uint32_t process, const char *path, uint32_t token,
                      uint32_t il_offset, struct source_place *out);
/* Whether the assembly at `path` has a PDB. */
bool naming_has_lines(struct naming *naming, uint32_t process, const char *path);
/* Where a process has the assembly of a simple name; NULL when nowhere. Valid until the trace has more
 * strings. */
const char *naming_assembly_path(struct naming *naming, uint32_t process, const char *simple_name);
/* The assemblies that a process can load. Owned by `naming`, valid until another process is asked for. */
struct assembly_set *naming_assemblies(struct naming *naming, uint32_t process);

#endif
