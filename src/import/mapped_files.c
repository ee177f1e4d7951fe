#include "import/mapped_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { BEGINS = 1, DOES_NOT };

enum image_kind mapped_file_kind(struct span path)
{
    if (span_begins(path, "[vdso]") || span_begins(path, "[vsyscall]"))
        return IMAGE_VDSO;
    if (span_begins(path, "/memfd:doublemapper"))
        return IMAGE_JIT;
    if (span_begins(path, "//anon") || span_begins(path, "[") || span_begins(path, "/dev/zero") ||
        span_begins(path, "/anon_hugepage") || span_begins(path, "/memfd:"))
        return IMAGE_ANON;
    if (span_ends(path, ".dll") || span_ends(path, ".exe"))
        return IMAGE_PE;
    return span_begins(path, "/") ? IMAGE_ELF : IMAGE_UNKNOWN;
}

/* Threads begin in the C library or the dynamic loader, the first thread also in the program itself. */
static bool threads_begin_in(const char *path, const char *program)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-", 5) == 0 ||
           strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-", 3) == 0 ||
           (program[0] && strncmp(name, program, 15) == 0);
}

bool root_images_have(struct root_images *roots, const struct trace_builder *b, uint32_t process,
                      uint64_t addr)
{
    const struct trace *t = &b->trace;
    uint32_t mapping = process ? trace_builder_mapping_at(b, process, addr) : 0;
    if (!mapping)
        return false;
    uint32_t image = t->mappings.rows[mapping].image;
    roots->known = mem_grow_zeroed(roots->known, &roots->capacity, t->images.count, 1);
    if (!roots->known[image])
        roots->known[image] = threads_begin_in(trace_string(t, t->images.rows[image].path),
                                               trace_string(t, t->processes.rows[process].name))
                                  ? BEGINS
                                  : DOES_NOT;
    return roots->known[image] == BEGINS;
}

void root_images_done(struct root_images *roots)
{
    free(roots->known);
}
