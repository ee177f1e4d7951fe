#include "cli/jit_dump_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/replaced_file.h"
#include "cli/file_tree.h"
#include "cli/symbol_store.h"
#include "read/il_map.h"
#include "render/jit_dump.h"
#include "symbolize/naming.h"

enum { CODE_BYTES_MAX = 16 << 20, MARKER_BYTES = 4096 };

/* Before all samples: perf is told of code that was there already. */
#define SINCE_NS UINT64_C(1)

/* A file while it is written. */
struct dump_writer {
    struct code_listing *listing;
    struct jit_dump dump;
    struct naming naming;
    struct jit_dump_line *lines;
    size_t line_count, line_capacity;
    struct jit_dump_file *result;
};

static void add_line(struct dump_writer *w, uint64_t addr, const char *file, uint32_t line)
{
    const struct jit_dump_line *last = w->line_count ? &w->lines[w->line_count - 1] : NULL;
    if (last && last->line == line && last->file == file)
        return;
    w->lines = mem_grow(w->lines, &w->line_capacity, w->line_count + 1, sizeof *w->lines);
    w->lines[w->line_count++] = (struct jit_dump_line){ addr, file, line };
}

/* Code of no statement belongs to the line before it. */
static void find_lines(struct dump_writer *w, const struct trace_code *code)
{
    struct trace *t = w->naming.t;
    const char *path = trace_string(t, code->module_path);
    struct il_map map;
    unsigned major =
        (unsigned)strtoul(trace_string(t, t->processes.rows[code->process].runtime_version), NULL, 10);
    w->line_count = 0;
    if (!code->token || !path[0] || !naming_has_lines(&w->naming, code->process, path) ||
        !memory_session_il_map(w->listing->census->memory, major, code->addr, code->size_bytes, &map, NULL))
        return;
    for (size_t i = 0; i < map.count; i++) {
        struct source_place place;
        uint32_t il_off = map.points[i].il_off;
        if (il_off != IL_NO_MAPPING && il_off != IL_EPILOG &&
            naming_find_line(&w->naming, code->process, path, code->token, il_off, &place))
            add_line(w, code->addr + map.points[i].code_off, trace_string(t, trace_add_string(t, place.file)),
                     place.line);
    }
    il_map_done(&map);
}

static void write_method(struct dump_writer *w, const struct trace_code *code)
{
    const struct code_symbols *symbols = &w->listing->symbols;
    size_t s = code_symbols_from(symbols, code->addr);
    if (s == symbols->count || symbols->rows[s].addr != code->addr)
        return;
    uint64_t size = symbols->rows[s].size_bytes;
    AUTO_FREE uint8_t *bytes = size <= CODE_BYTES_MAX ? mem_alloc((size_t)size, 1) : NULL;
    if (!bytes ||
        !memory_read(memory_session_memory(w->listing->census->memory), code->addr, bytes, (size_t)size)) {
        w->result->unreadable++;
        return;
    }
    find_lines(w, code);
    struct jit_dump_method method = { .addr = code->addr,
                                      .code = span_of(bytes, (size_t)size),
                                      .name = trace_string(w->naming.t, symbols->rows[s].name),
                                      .lines = w->lines,
                                      .line_count = w->line_count };
    jit_dump_add(&w->dump, &method);
    w->result->methods++;
    w->result->with_lines += w->line_count > 0;
}

static void write_methods(struct code_listing *listing, struct output *out, struct jit_dump_file *result)
{
    struct trace *t = &listing->census->b.trace;
    struct symbol_cache cache;
    symbol_store_open(&cache);
    struct symbolizer_options options = { .files = code_listing_files(listing->census), .cache = &cache };
    struct dump_writer w = { .listing = listing, .result = result };
    naming_init(&w.naming, t, &listing->census->b.functions, &options);
    jit_dump_begin(&w.dump, t->processes.rows[listing->census->process].pid, SINCE_NS, out);
    for (size_t i = 1; i < t->codes.count; i++)
        write_method(&w, &t->codes.rows[i]);
    naming_done(&w.naming);
    symbol_cache_close(&cache);
    free(w.lines);
}

/* What perf takes for the sign that there is a dump. */
static bool mark(int folder_fd, const char *name)
{
    AUTO_FD int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, MARKER_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return false;
    munmap(at, MARKER_BYTES);
    return true;
}

bool jit_dump_file_write(struct code_listing *listing, const char *folder, struct jit_dump_file *out,
                         struct error *err)
{
    AUTO_FD int folder_fd = -1;
    AUTO_FREE char *name = mem_format("jit-%d.dump", (int)getpid());
    struct replaced_file file;
    struct output output;
    *out = (struct jit_dump_file){ 0 };
    if (!listing->census->memory) {
        *err = listing->census->memory_error;
        return error_context(err, "the bytes of jitted code are not to be had");
    }
    snprintf(out->path, sizeof out->path, "%s/%s", folder, name);
    if (!file_tree_open(folder, &folder_fd, err) || !replaced_file_open(folder_fd, name, &file, err))
        return false;
    output_over_fd(&output, file.fd);
    write_methods(listing, &output, out);
    if (!output_close(&output, err)) {
        replaced_file_abandon(&file);
        return error_context(err, "'%s'", out->path);
    }
    if (!replaced_file_commit(&file, err))
        return false;
    out->marked = mark(folder_fd, name);
    return true;
}
