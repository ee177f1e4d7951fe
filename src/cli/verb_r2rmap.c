#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "clr/method_name.h"
#include "symbolize/managed_image.h"

struct r2rmap_values {
    bool file_offsets, raw_names;
};

static bool r2rmap_open(const char *path, int *out_fd, struct source *out, struct error *err)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would never answer */
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        error_system(err, errno, "cannot open '%s'", path);
        return error_hint(err, "name an assembly, for example System.Console.dll in the runtime's folder");
    }
    if (!S_ISREG(st.st_mode)) {
        error_set(err, ERROR_INPUT, "'%s' is not a regular file", path);
        return error_hint(err, "name an assembly, for example System.Console.dll in the runtime's folder");
    }
    if (!source_over_fd(fd, 0, UINT64_MAX, out, err))
        return false;
    *out_fd = take_fd(&fd);
    return true;
}

/* Other assemblies are looked for beside the one asked for. */
static bool r2rmap_open_sibling(void *user, const char *simple_name, struct source *out)
{
    AUTO_FREE char *path = mem_format("%s/%s.dll", (const char *)user, simple_name);
    AUTO_FD int fd = -1;
    if (strchr(simple_name, '/') || !r2rmap_open(path, &fd, out, NULL))
        return false;
    take_fd(&fd);
    return true;
}

static void r2rmap_close_sibling(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

static void r2rmap_list(struct managed_image *image, const struct r2rmap_values *v, struct buffer *out)
{
    uint32_t last_rva = 0;
    for (uint32_t f = 0; f < managed_image_function_count(image); f++) {
        struct code_name name;
        struct method_range range;
        if (!managed_image_function(image, f, &name, &range) || range.begin_rva == last_rva)
            continue; /* a funclet of the method before */
        last_rva = range.begin_rva;
        buffer_format(out, "%08" PRIx64 " %" PRIx32 " ", v->file_offsets ? range.begin_off : range.begin_rva,
                      range.end_rva - range.begin_rva);
        if (v->raw_names)
            utf8_escape(out, span_of(name.name, strlen(name.name)));
        else
            method_name_show(span_of(name.name, strlen(name.name)), name.type_params, out);
        buffer_string(out, " [");
        utf8_escape(out, span_of(name.module, strlen(name.module)));
        buffer_string(out, "]\n");
    }
}

static bool r2rmap_no_code(struct error *err)
{
    error_set(err, ERROR_UNSUPPORTED, "no precompiled code in it");
    return error_hint(err, "its methods are jitted when they run: clrperf record names them");
}

static bool r2rmap_print(const char *path, const struct source *file, const struct r2rmap_values *v,
                         struct error *err)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *folder = slash ? mem_format("%.*s", (int)(slash - path), path) : mem_copy_string(".");
    struct assembly_set *siblings =
        assembly_set_new(&(struct sibling_finder){ r2rmap_open_sibling, r2rmap_close_sibling, folder });
    struct managed_image *image;
    bool ok = managed_image_open(file, siblings, NULL, &image, err);
    if (ok) {
        struct buffer out;
        buffer_init(&out, OUTPUT_BYTES_MAX);
        r2rmap_list(image, v, &out);
        ok = managed_image_has_code(image) ? stdout_text(&out, err) : r2rmap_no_code(err);
        buffer_done(&out);
        managed_image_close(image);
    }
    assembly_set_free(siblings);
    if (!ok && err && err->kind == ERROR_INPUT)
        error_hint(err, "name an assembly: a .dll that the .NET compiler made");
    return ok || error_context(err, "'%s'", path);
}

static bool r2rmap_run(struct verb_call *call, struct error *err)
{
    if (call->arg_count < 1) {
        error_set(err, ERROR_USAGE, "which assembly?");
        return error_hint(err, "clrperf r2rmap System.Console.dll");
    }
    const char *path = call->args[0];
    AUTO_FD int fd = -1;
    struct source file;
    return r2rmap_open(path, &fd, &file, err) && r2rmap_print(path, &file, call->values, err);
}

static const struct option_spec r2rmap_options[] = {
    { "file-offsets", 0, OPTION_FLAG, offsetof(struct r2rmap_values, file_offsets),
      "positions in the file, as uprobes take them, instead of addresses in the image", NULL, NULL },
    { "raw-names", 0, OPTION_FLAG, offsetof(struct r2rmap_values, raw_names),
      "the runtime's own spelling of names", NULL, NULL },
    { 0 },
};

const struct verb verb_r2rmap = {
    .name = "r2rmap",
    .args = "ASSEMBLY",
    .summary = "list the precompiled methods of an assembly",
    .details = "One line per method: address relative to the image's base and size, both in hex, the name,\n"
               "and in brackets the assembly that defines it. Reads the file alone; no SDK, no crossgen.",
    .options = r2rmap_options,
    .values_size = sizeof(struct r2rmap_values),
    .args_max = 1,
    .run = r2rmap_run,
};
