#include "symbolize/jit_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/stub_code.h"
#include "read/il_map.h"
#include "symbolize/jit_map.h"
#include "symbolize/managed_image.h"
#include "trace/code_symbols.h"

enum { JIT_NAMES_READ_MAX = 8192 };
enum { SHUTDOWN_NS = 1000000000 }; /* more than a runtime takes to tell of all of its methods */

/* A method's code; a copy, so that sorting needs no context. */
struct code_entry {
    uint64_t addr, end;
    uint64_t from_ns, to_ns;
    uint32_t code;
    bool dynamic;
};

struct jit_names {
    struct naming *naming;
    uint32_t process;
    const uint64_t *addrs;
    const uint32_t *locations;
    size_t count;
    uint32_t *code_of;        /* by question: row of codes, 0 unknown */
    struct code_entry *codes; /* of this process, by address, then time */
    size_t code_count;
};

static int code_compare(const void *a, const void *b)
{
    const struct code_entry *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/*
 * A runtime that shuts down tells that all of its methods are gone, and other threads go on in them until the
 * process is: these ends are none. When nothing else is left it was that. Dynamic methods were freed, maybe.
 */
static void jit_names_without_shutdown(struct jit_names *names)
{
    uint64_t last_ns = 0, first_ns = UINT64_MAX;
    size_t gone = 0, left = 0;
    for (size_t i = 0; i < names->code_count; i++)
        if (names->codes[i].to_ns > last_ns)
            last_ns = names->codes[i].to_ns;
    uint64_t since_ns = last_ns > SHUTDOWN_NS ? last_ns - SHUTDOWN_NS : 0;
    for (size_t i = 0; i < names->code_count; i++) {
        const struct code_entry *code = &names->codes[i];
        if (code->dynamic || code->to_ns <= since_ns)
            continue;
        gone++;
        first_ns = code->to_ns < first_ns ? code->to_ns : first_ns;
    }
    for (size_t i = 0; i < names->code_count; i++) {
        const struct code_entry *code = &names->codes[i];
        left += !code->dynamic && !code->to_ns && code->from_ns < first_ns;
    }
    if (left * 10 > gone)
        return;
    for (size_t i = 0; i < names->code_count; i++)
        if (!names->codes[i].dynamic && names->codes[i].to_ns > since_ns)
            names->codes[i].to_ns = 0;
}

static void jit_names_index(struct jit_names *names)
{
    const struct trace *t = names->naming->t;
    names->codes = mem_alloc(t->codes.count, sizeof *names->codes);
    for (uint32_t id = 1; id < t->codes.count; id++) {
        const struct trace_code *row = &t->codes.rows[id];
        if (row->process == names->process && row->function)
            names->codes[names->code_count++] =
                (struct code_entry){ row->addr,    row->addr + row->size_bytes,
                                     row->from_ns, row->to_ns,
                                     id,           t->functions.rows[row->function].kind == CODE_DYNAMIC };
    }
    jit_names_without_shutdown(names);
    qsort(names->codes, names->code_count, sizeof *names->codes, code_compare);
}

/* The number of entries that are at most `addr`, and of those at that address from `time_ns` on at most. */
static size_t jit_names_up_to(const struct jit_names *names, uint64_t addr, uint64_t time_ns)
{
    size_t low = 0, high = names->code_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_entry *code = &names->codes[middle];
        if (code->addr < addr || (code->addr == addr && code->from_ns <= time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The code that lived at an address at a time; the entries around it may have lived there at others. */
static uint32_t jit_names_code_at(const struct jit_names *names, uint64_t addr, uint64_t time_ns)
{
    enum { LOOK_BACK = 64 }; /* code that overlaps in address but not in time */
    size_t i = jit_names_up_to(names, addr, UINT64_MAX);
    for (size_t looked = 0; i > 0 && looked < LOOK_BACK; looked++) {
        const struct code_entry *code = &names->codes[i - 1];
        if (addr < code->end && code->from_ns <= time_ns && (!code->to_ns || time_ns < code->to_ns))
            return code->code;
        /* an address may have been used again thousands of times since */
        i = code->from_ns > time_ns ? jit_names_up_to(names, code->addr, time_ns) : i - 1;
    }
    return 0;
}

static void jit_names_match(struct jit_names *names)
{
    const struct trace *t = names->naming->t;
    for (size_t i = 0; i < names->count; i++) {
        const struct trace_location *row = &t->locations.rows[names->locations[i]];
        names->code_of[i] = row->code ? row->code : jit_names_code_at(names, names->addrs[i], row->first_ns);
    }
}

/* A used code, sorted by its assembly so that each is opened once. */
struct used_code {
    uint32_t module_path, code, location;
};

static int used_compare(const void *a, const void *b)
{
    const struct used_code *x = a, *y = b;
    if (x->module_path != y->module_path)
        return x->module_path < y->module_path ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* What the assembly knows of a method that the runtime does not tell: its generic parameters' names. */
static void jit_names_describe(struct naming *naming, struct managed_image *image, uint32_t code)
{
    struct trace *t = naming->t;
    struct trace_code *row = &t->codes.rows[code];
    struct trace_function described = t->functions.rows[row->function];
    const char *params = managed_image_type_params(image, row->token);
    if (described.type_params || !params[0])
        return;
    described.type_params = trace_add_string(t, params);
    row->function = function_index_add(naming->functions, t, &described);
}

static void jit_names_describe_all(struct jit_names *names)
{
    struct naming *naming = names->naming;
    const struct trace *t = naming->t;
    struct used_code *used = mem_alloc(names->count, sizeof *used);
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        const struct trace_code *row = &t->codes.rows[names->code_of[i]];
        if (names->code_of[i] && row->module_path && row->token)
            used[count++] = (struct used_code){ row->module_path, names->code_of[i], names->locations[i] };
    }
    qsort(used, count, sizeof *used, used_compare);
    struct managed_image *image = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || used[i].module_path != used[i - 1].module_path) {
            managed_image_close(image);
            image = NULL;
            struct source file;
            if (naming_open_assembly(naming, names->process, trace_string(t, used[i].module_path), &file)) {
                managed_image_open_metadata(&file, naming_assemblies(naming, names->process), &image, NULL);
                close(file.fd);
            }
        }
        if (image && (i == 0 || used[i].code != used[i - 1].code))
            jit_names_describe(naming, image, used[i].code);
        if (image)
            naming_set_origin(naming, used[i].location, 0, "", managed_image_mvid(image));
    }
    managed_image_close(image);
    free(used);
}

static void jit_names_from_runtime(struct jit_names *names)
{
    struct trace *t = names->naming->t;
    for (size_t i = 0; i < names->count; i++) {
        if (!names->code_of[i])
            continue;
        const struct trace_code *code = &t->codes.rows[names->code_of[i]];
        struct trace_location *row = &t->locations.rows[names->locations[i]];
        row->function = code->function;
        row->tier = code->tier;
        row->resolver = code->resolver;
        row->unnamed = UNNAMED_NOT;
        naming_set_origin(names->naming, names->locations[i], code->addr, "", "");
    }
}

static void jit_names_lines(struct jit_names *names)
{
    struct naming *naming = names->naming;
    const struct trace *t = naming->t;
    for (size_t i = 0; i < names->count; i++) {
        const struct trace_code *code = &t->codes.rows[names->code_of[i]];
        const struct trace_location *row = &t->locations.rows[names->locations[i]];
        if (names->code_of[i] && code->token && code->module_path)
            naming_set_line(naming, names->locations[i], names->process, trace_string(t, code->module_path),
                            code->token, row->il_known ? row->il_off : IL_NO_MAPPING);
    }
}

/* Questions that are still open, for the file that a process left. */
struct open_questions {
    struct jit_names *names;
    uint64_t *addrs;
    uint32_t *locations;
    size_t count;
};

static void jit_names_from_map(void *user, const struct jit_map_match *match)
{
    const struct open_questions *open = user;
    naming_set(open->names->naming, open->locations[match->index], &match->name);
    naming_set_origin(open->names->naming, open->locations[match->index], match->start, "", "");
}

static bool jit_names_of_memory(const struct jit_names *names)
{
    for (size_t i = 0; i < names->code_count; i++)
        if (names->naming->t->codes.rows[names->codes[i].code].resolver == RESOLVER_MEMORY)
            return true;
    return false;
}

/* What `clrperf map` left tells nothing that the memory did not, and may be of code that is gone. */
static bool is_our_map(const struct source *file)
{
    char start[sizeof CODE_SYMBOLS_MARK - 1];
    return file->size >= sizeof start && source_read(file, 0, start, sizeof start, NULL) &&
           memcmp(start, CODE_SYMBOLS_MARK, sizeof start) == 0;
}

/* "jit-4711.dump" */
static bool is_dump(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (path[0] != '/' || strncmp(name, "jit-", 4) != 0)
        return false;
    size_t digits = strspn(name + 4, "0123456789");
    return digits > 0 && strcmp(name + 4 + digits, ".dump") == 0;
}

/* Whoever writes a jitdump has it mapped as if it were code, so that its place is known (perf's
 * jitdump-specification.txt). NULL: nowhere. */
static const char *mapped_dump(const struct jit_names *names)
{
    const struct trace *t = names->naming->t;
    for (size_t i = t->mappings.count; i-- > 1;) {
        const struct trace_mapping *row = &t->mappings.rows[i];
        const char *path = trace_string(t, t->images.rows[row->image].path);
        if (row->process == names->process && is_dump(path))
            return path;
    }
    return NULL;
}

static int open_file(const struct jit_names *names, bool jitdump, struct error *err)
{
    const struct file_finder *files = names->naming->files;
    return files->open_jit_file(files->user, names->process, jitdump, jitdump ? mapped_dump(names) : NULL,
                                err);
}

static void note_problem(struct naming *naming, const char *problem)
{
    if (!naming->map_problem[0])
        snprintf(naming->map_problem, sizeof naming->map_problem, "%s", problem);
}

static void answer_from_file(struct open_questions *open, bool jitdump)
{
    struct naming *naming = open->names->naming;
    struct source file;
    struct jit_map_result result = { 0 };
    struct error err = { 0 };
    AUTO_FD int fd = open_file(open->names, jitdump, &err);
    if (fd < 0 && err.kind == ERROR_INPUT)
        note_problem(naming, err.what);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) ||
        (is_our_map(&file) && jit_names_of_memory(open->names)))
        return;
    if (!jit_map_resolve(&file, open->addrs, open->count, jit_names_from_map, open, &result, &err))
        note_problem(naming, err.what);
    naming->map_malformed += result.malformed;
}

static void jit_names_ask_files(struct jit_names *names)
{
    struct naming *naming = names->naming;
    struct open_questions open = { .names = names };
    open.addrs = mem_alloc(names->count, sizeof *open.addrs);
    open.locations = mem_alloc(names->count, sizeof *open.locations);
    for (unsigned jitdump = 0; jitdump < 2 && naming->files->open_jit_file; jitdump++) {
        open.count = 0;
        for (size_t i = 0; i < names->count; i++)
            if (!naming->t->locations.rows[names->locations[i]].function) {
                open.addrs[open.count] = names->addrs[i];
                open.locations[open.count++] = names->locations[i];
            }
        if (open.count)
            answer_from_file(&open, jitdump);
    }
    free(open.addrs);
    free(open.locations);
}

static const char *stub_by_place(const struct trace *t, const struct trace_location *row)
{
    const struct trace_mapping *m = &t->mappings.rows[row->mapping];
    if (t->images.rows[m->image].kind != IMAGE_JIT)
        return NULL;
    return stub_code_place(row->addr - m->start + m->file_off);
}

static void jit_names_set_stub(struct jit_names *names, uint32_t location, const char *kind)
{
    naming_set(
        names->naming, location,
        &(struct code_name){
            .name = kind, .module = "", .type_params = "", .kind = CODE_STUB, .resolver = RESOLVER_STUB });
}

static void jit_names_by_place(struct jit_names *names)
{
    struct trace *t = names->naming->t;
    for (size_t i = 0; i < names->count; i++) {
        struct trace_location *row = &t->locations.rows[names->locations[i]];
        const char *kind = row->function ? NULL : stub_by_place(t, row);
        if (kind)
            jit_names_set_stub(names, names->locations[i], kind);
    }
}

/* What was seen there when it was sampled counts more than what is there now. */
static void jit_names_by_earlier_look(struct jit_names *names)
{
    const struct trace *t = names->naming->t;
    for (size_t i = 0; i < names->count; i++) {
        const struct trace_location *row = &t->locations.rows[names->locations[i]];
        if (!row->function && row->stub)
            jit_names_set_stub(names, names->locations[i], trace_string(t, row->stub));
    }
}

/* The rest is told by its bytes, as long as the process still has them. */
static void jit_names_by_code(struct jit_names *names)
{
    struct trace *t = names->naming->t;
    const struct file_finder *files = names->naming->files;
    uint64_t *addrs = mem_alloc(names->count, sizeof *addrs);
    uint32_t *locations = mem_alloc(names->count, sizeof *locations);
    size_t count = 0;
    for (size_t i = 0; i < names->count && count < JIT_NAMES_READ_MAX; i++) {
        const struct trace_location *row = &t->locations.rows[names->locations[i]];
        if (row->function || !row->mapping || names->addrs[i] < STUB_CODE_BEFORE)
            continue;
        addrs[count] = names->addrs[i] - STUB_CODE_BEFORE;
        locations[count++] = names->locations[i];
    }
    if (count && files->read_memory) {
        uint8_t *code = mem_alloc(count, STUB_CODE_BYTES);
        uint32_t *got = mem_alloc(count, sizeof *got);
        files->read_memory(files->user, names->process, addrs, count, STUB_CODE_BYTES, code, got);
        for (size_t i = 0; i < count; i++) {
            const char *kind =
                got[i] > STUB_CODE_BEFORE
                    ? stub_code_kind(span_of(code + i * STUB_CODE_BYTES, got[i]), STUB_CODE_BEFORE)
                    : NULL;
            if (kind)
                jit_names_set_stub(names, locations[i], kind);
        }
        free(code);
        free(got);
    }
    free(addrs);
    free(locations);
}

static void jit_names_rest(struct jit_names *names)
{
    struct trace *t = names->naming->t;
    for (size_t i = 0; i < names->count; i++) {
        struct trace_location *row = &t->locations.rows[names->locations[i]];
        if (!row->function)
            row->unnamed = row->mapping ? UNNAMED_JIT_UNKNOWN : UNNAMED_NO_MAPPING;
    }
}

void jit_names_answer(struct naming *naming, uint32_t process, const uint64_t *addrs,
                      const uint32_t *locations, size_t count)
{
    struct jit_names names = {
        .naming = naming, .process = process, .addrs = addrs, .locations = locations, .count = count
    };
    names.code_of = mem_alloc(count, sizeof *names.code_of);
    jit_names_index(&names);
    jit_names_match(&names);
    jit_names_describe_all(&names);
    jit_names_from_runtime(&names);
    jit_names_lines(&names);
    jit_names_ask_files(&names);
    jit_names_by_place(&names);
    jit_names_by_earlier_look(&names);
    jit_names_by_code(&names);
    jit_names_rest(&names);
    free(names.code_of);
    free(names.codes);
}
