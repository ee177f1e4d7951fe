#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "elf_fixture.h"
#include "symbolize/symbolizer.h"
#include "trace/builder.h"
#include "trace/code_symbols.h"

enum { START = 0x7f0000000000, CODE_OFF = 0x384, CODE_ADDR = START + CODE_OFF };

/* What the processes of a trace have: one file, and memory with its bytes. */
struct target {
    const char *path;  /* where the file is */
    uint32_t process;  /* that can open it */
    int fd;            /* given out as a duplicate */
    struct span bytes; /* in memory at START; empty: cannot be read */
    size_t opened;
};

static int open_file(void *user, uint32_t process, const char *path)
{
    struct target *target = user;
    if (process != target->process || strcmp(path, target->path) != 0)
        return -1;
    target->opened++;
    return dup(target->fd);
}

static void read_memory(void *user, uint32_t process, const uint64_t *addrs, size_t count, size_t size,
                        uint8_t *into, uint32_t *got)
{
    const struct target *target = user;
    for (size_t i = 0; i < count; i++) {
        struct span part = span_part(target->bytes, 0, target->bytes.size);
        got[i] = 0;
        if (process != target->process || addrs[i] < START || addrs[i] - START >= part.size)
            continue;
        size_t off = (size_t)(addrs[i] - START);
        got[i] = (uint32_t)(part.size - off < size ? part.size - off : size);
        memcpy(into + i * size, part.data + off, got[i]);
    }
}

static uint32_t add_location(struct trace *t, uint32_t process, uint32_t mapping, uint64_t addr,
                             uint64_t time_ns)
{
    uint32_t id = trace_push(&t->locations);
    t->locations.rows[id] =
        (struct trace_location){ .process = process, .mapping = mapping, .addr = addr, .first_ns = time_ns };
    return id;
}

static void symbolize(struct trace_builder *b, struct target *target, bool kernel)
{
    struct symbolizer_options options = {
        .files = { .open = open_file, .read_memory = read_memory, .user = target }, .kernel = kernel
    };
    struct symbolizer_result result = { .kernel_hidden = true };
    symbolizer_run(&b->trace, &b->functions, &options, &result);
    assert_false(result.kernel_hidden);
}

static const char *name_of(const struct trace *t, uint32_t location)
{
    return trace_string(t, t->functions.rows[t->locations.rows[location].function].name);
}

static const char *module_of(const struct trace *t, uint32_t location)
{
    return trace_string(t, t->functions.rows[t->locations.rows[location].function].module);
}

static struct span text(const char *s)
{
    return span_of(s, strlen(s));
}

static const struct {
    const char *what;
    const char *mapped, *there; /* paths: of the mapping, of the file that is there now */
    const char *build_id;       /* that the trace has */
    const char *memory;         /* fixture that is in memory, or NULL */
    bool named;
} images[] = {
    { "the file", "/a/x.so", "/a/x.so", "", NULL, true },
    { "no file", "/a/x.so", "/a/y.so", "", NULL, false },
    { "deleted, the same again", "/a/x.so (deleted)", "/a/x.so", "", "sample.so", true },
    { "deleted, another one", "/a/x.so (deleted)", "/a/x.so", "", "runtime.so", false },
    { "deleted, nobody knows", "/a/x.so (deleted)", "/a/x.so", "", NULL, false },
    { "another build", "/a/x.so", "/a/x.so", "0123456789abcdef", NULL, false },
    { "deleted, another build", "/a/x.so (deleted)", "/a/x.so", "0123456789abcdef", "sample.so", false },
};

static void test_image_is_the_mapped_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        AUTO_FD int fd = elf_fixture_open("sample.so");
        struct buffer memory = { 0 };
        if (images[i].memory)
            memory = elf_fixture_load(images[i].memory);
        struct trace_builder b;
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        uint32_t image = trace_builder_image(&b, text(images[i].mapped), IMAGE_ELF, 8, 1, 77);
        b.trace.images.rows[image].build_id = trace_add_string(&b.trace, images[i].build_id);
        uint32_t mapping = trace_builder_mapping(&b, process, START, 0x10000, 0, image, 0);
        uint32_t location = add_location(&b.trace, process, mapping, CODE_ADDR, 1);
        struct target target = {
            .path = images[i].there, .process = process, .fd = fd, .bytes = buffer_span(&memory)
        };
        symbolize(&b, &target, false);
        if (strcmp(name_of(&b.trace, location), images[i].named ? "hidden_helper" : "") != 0)
            fail_msg("%s: '%s'", images[i].what, name_of(&b.trace, location));
        if (images[i].named)
            assert_string_equal(module_of(&b.trace, location), "x.so");
        else
            assert_int_equal(b.trace.locations.rows[location].unnamed, UNNAMED_NO_IMAGE);
        trace_builder_done(&b);
        buffer_done(&memory);
    }
}

/* Native code gets its names early; what is added to the trace meanwhile gets its own. */
static void test_named_while_others_add(void **state)
{
    (void)state;
    AUTO_FD int fd = elf_fixture_open("sample.so");
    struct trace_builder b;
    trace_builder_init(&b, 16);
    uint32_t process = trace_builder_process_start(&b, 10, 0);
    uint32_t image = trace_builder_image(&b, text("/a/x.so"), IMAGE_ELF, 8, 1, 77);
    uint32_t mapping = trace_builder_mapping(&b, process, START, 0x10000, 0, image, 0);
    uint32_t early = add_location(&b.trace, process, mapping, CODE_ADDR, 1);
    uint32_t nowhere = add_location(&b.trace, process, mapping, START + 0xfff0, 1);
    struct target target = { .path = "/a/x.so", .process = process, .fd = fd };
    struct symbolizer_options options = { .files = { .open = open_file, .user = &target } };
    struct symbolizer_result result;
    struct symbolizer *s = symbolizer_begin(&b.trace, &b.functions, &options);
    assert_true(symbolizer_step(s));
    assert_false(symbolizer_step(s));
    assert_string_equal(name_of(&b.trace, early), "hidden_helper");
    assert_int_equal(target.opened, 1);

    struct trace_function function = { .name = trace_add_string(&b.trace, "Told"), .kind = CODE_JIT };
    struct trace_code code = { .process = process,
                               .function = trace_builder_function(&b, &function),
                               .addr = 0x5000,
                               .size_bytes = 0x40 };
    trace_builder_code(&b, &code);
    uint32_t told = add_location(&b.trace, process, 0, 0x5010, 1);
    uint32_t late = add_location(&b.trace, process, mapping, CODE_ADDR + 1, 1);
    symbolizer_finish(s, &result);
    assert_string_equal(name_of(&b.trace, early), "hidden_helper");
    assert_string_equal(name_of(&b.trace, told), "Told");
    assert_string_equal(name_of(&b.trace, late), "hidden_helper");
    assert_int_equal(b.trace.locations.rows[nowhere].function, 0);
    assert_int_equal(b.trace.locations.rows[nowhere].unnamed, UNNAMED_NO_SYMBOL);
    assert_int_equal(target.opened, 2); /* for the late one: nobody asks again what nobody knew */
    assert_true(b.trace.symbolized);
    trace_builder_done(&b);
}

/* The process whose location comes first ended before anybody could look at its files. */
static void test_image_of_another_process(void **state)
{
    (void)state;
    AUTO_FD int fd = elf_fixture_open("sample.so");
    struct trace_builder b;
    trace_builder_init(&b, 16);
    uint32_t locations[2], process = 0;
    for (size_t i = 0; i < 2; i++) {
        process = trace_builder_process_start(&b, (uint32_t)(10 + i), 0);
        uint32_t image = trace_builder_image(&b, text("/a/x.so"), IMAGE_ELF, 8, 1, 77);
        uint32_t mapping = trace_builder_mapping(&b, process, START, 0x10000, 0, image, 0);
        locations[i] = add_location(&b.trace, process, mapping, CODE_ADDR, 1);
    }
    struct target target = { .path = "/a/x.so", .process = process, .fd = fd };
    symbolize(&b, &target, false);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(name_of(&b.trace, locations[i]), "hidden_helper");
    assert_int_equal(target.opened, 1);
    trace_builder_done(&b);
}

enum { ASKED_PROCESSES = 2 };

/* How often whose files were asked for. */
struct asked {
    size_t count[ASKED_PROCESSES + 1]; /* by process */
};

static int open_tiny(void *user, uint32_t process, const char *path)
{
    struct asked *asked = user;
    assert_in_range(process, 1, ASKED_PROCESSES);
    asked->count[process]++;
    return strcmp(path, "/a/tiny.dll") == 0 ? open(GOLDEN_DIR "/r2r/tiny/tiny.dll", O_RDONLY | O_CLOEXEC)
                                            : -1;
}

/* Where processes share an assembly, what it needs of others is looked for where the first of them has it:
 * the places of one process are forgotten for those of the next. */
static void test_assembly_of_processes(void **state)
{
    enum { PLACES = 200, STEP = 16 };
    (void)state;
    struct trace_builder b;
    struct asked asked = { 0 };
    struct symbolizer_options options = { .files = { .open = open_tiny, .user = &asked } };
    struct symbolizer_result result;
    uint32_t mappings[ASKED_PROCESSES], processes[ASKED_PROCESSES];
    trace_builder_init(&b, 16);
    for (size_t i = 0; i < ASKED_PROCESSES; i++) {
        processes[i] = trace_builder_process_start(&b, (uint32_t)(10 + i), 0);
        uint32_t image = trace_builder_image(&b, text("/a/tiny.dll"), IMAGE_PE, 8, 1, 77);
        mappings[i] = trace_builder_mapping(&b, processes[i], START, 0x10000, 0, image, 0);
    }
    for (uint64_t i = 0; i < PLACES; i++)
        add_location(&b.trace, processes[i % ASKED_PROCESSES], mappings[i % ASKED_PROCESSES],
                     START + i * STEP, 1);
    symbolizer_run(&b.trace, &b.functions, &options, &result);
    assert_true(asked.count[processes[0]] > 1);
    assert_int_equal(asked.count[processes[1]], 0);
    trace_builder_done(&b);
}

/* An assembly that is in no file may lie in the program, which is opened to look; libraries are not. */
static void test_bundle_looked_for(void **state)
{
    static const struct {
        const char *path;
        size_t opened;
    } paths[] = {
        { "/my.soft/acme.social", 1 }, { "/a/x.so", 0 }, { "/a/x.so.6", 0 }, { "/a/my.soft.so", 0 }
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        AUTO_FD int fd = elf_fixture_open("sample.so");
        struct trace_builder b;
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        uint32_t image = trace_builder_image(&b, text(paths[i].path), IMAGE_ELF, 8, 1, 77);
        trace_builder_mapping(&b, process, START, 0x10000, 0, image, 0);
        struct trace_function function = { .name = trace_add_string(&b.trace, "A::M()"), .kind = CODE_JIT };
        struct trace_code code = { .process = process,
                                   .function = trace_builder_function(&b, &function),
                                   .addr = 0x5000,
                                   .size_bytes = 0x40,
                                   .module_path = trace_add_string(&b.trace, "/my.soft/App.dll"),
                                   .token = 0x06000001 };
        trace_builder_code(&b, &code);
        add_location(&b.trace, process, 0, 0x5010, 1);
        struct target target = { .path = paths[i].path, .process = process, .fd = fd };
        symbolize(&b, &target, false);
        if (target.opened != paths[i].opened)
            fail_msg("%s was opened %zu times", paths[i].path, target.opened);
        trace_builder_done(&b);
    }
}

/* The vdso is at hand for the kernel that runs; with another one's addresses its names would be wrong. */
static void test_vdso_of_another_kernel(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct trace_builder b;
        struct target target = { .path = "" };
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        uint32_t image = trace_builder_image(&b, text("[vdso]"), IMAGE_VDSO, 0, 0, 0);
        uint32_t mapping = trace_builder_mapping(&b, process, START, 0x2000, 0, image, 0);
        size_t named = 0;
        for (uint64_t offset = 0; offset < 0x2000; offset += 0x20)
            add_location(&b.trace, process, mapping, START + offset, 1);
        symbolize(&b, &target, own);
        for (size_t i = 1; i < b.trace.locations.count; i++)
            named += b.trace.locations.rows[i].function != 0;
        assert_int_equal(named > 0, own && getauxval(AT_SYSINFO_EHDR));
        trace_builder_done(&b);
    }
}

/* A dynamic method's address is used again and again: the name is of the time. */
static void test_code_of_the_time(void **state)
{
    enum { TIMES = 1000 };
    (void)state;
    struct trace_builder b;
    struct target target = { .path = "" };
    uint32_t locations[TIMES], functions[TIMES];
    trace_builder_init(&b, 16);
    uint32_t process = trace_builder_process_start(&b, 10, 0);
    for (uint32_t i = 0; i < TIMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", i);
        struct trace_function function = { .name = trace_add_string(&b.trace, name), .kind = CODE_DYNAMIC };
        functions[i] = trace_builder_function(&b, &function);
        struct trace_code code = { .process = process,
                                   .function = functions[i],
                                   .addr = 0x5000,
                                   .size_bytes = 0x40,
                                   .from_ns = 1000 + 10 * i };
        trace_builder_code(&b, &code);
        locations[i] = add_location(&b.trace, process, 0, 0x5010, 1005 + 10 * i);
    }
    uint32_t before = add_location(&b.trace, process, 0, 0x5010, 999);
    symbolize(&b, &target, false);
    for (uint32_t i = 0; i < TIMES; i++)
        assert_int_equal(b.trace.locations.rows[locations[i]].function, functions[i]);
    assert_int_equal(b.trace.locations.rows[before].function, 0);
    trace_builder_done(&b);
}

/* Threads go on after the runtime told, at its end, that all methods are gone; not in those that are. */
static void test_code_of_a_shutdown(void **state)
{
    enum { METHODS = 40, TOLD_MS = 10000, END_MS = 10200 };
    static const struct {
        uint64_t gone;  /* how many of the methods */
        uint64_t at_ms; /* when */
        enum code_kind kind;
        bool named;
    } cases[] = {
        { METHODS, TOLD_MS, CODE_JIT, true },      { METHODS - 1, TOLD_MS, CODE_JIT, true },
        { METHODS, TOLD_MS, CODE_DYNAMIC, false }, { METHODS / 2, TOLD_MS, CODE_JIT, false },
        { 1, TOLD_MS, CODE_JIT, false },           { 1, 1000, CODE_JIT, false },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        struct target target = { .path = "" };
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        for (uint32_t m = 0; m < METHODS; m++) {
            struct trace_function function = { .name = trace_add_string(&b.trace, "A::M()"),
                                               .kind = m ? CODE_JIT : (uint8_t)cases[i].kind };
            struct trace_code code = { .process = process,
                                       .function = trace_builder_function(&b, &function),
                                       .addr = 0x5000 + 0x40 * m,
                                       .size_bytes = 0x40,
                                       .from_ns = 1000 };
            trace_builder_code(&b, &code);
        }
        for (uint32_t m = 0; m < cases[i].gone; m++)
            trace_builder_code_end(&b, process, 0x5000 + 0x40 * m, cases[i].at_ms * 1000000 + m);
        uint32_t location = add_location(&b.trace, process, 0, 0x5010, END_MS * 1000000ULL);
        symbolize(&b, &target, false);
        if ((b.trace.locations.rows[location].function != 0) != cases[i].named)
            fail_msg("case %zu: '%s'", i, name_of(&b.trace, location));
        trace_builder_done(&b);
    }
}

static int open_map(void *user, uint32_t process, bool jitdump, const char *path, struct error *err)
{
    (void)err;
    (void)process;
    (void)path;
    return jitdump ? -1 : dup(*(const int *)user);
}

static int open_dump(void *user, uint32_t process, bool jitdump, const char *path, struct error *err)
{
    char *asked = user;
    (void)process;
    if (jitdump)
        snprintf(asked, 64, "%s", path ? path : "nowhere");
    error_set(err, jitdump ? ERROR_SYSTEM : ERROR_INPUT, jitdump ? "none" : "not to be believed");
    return -1;
}

/* Where a process has a jitdump mapped it is looked for. */
static void test_mapped_dump(void **state)
{
    static const struct {
        const char *mapped, *asked;
    } cases[] = {
        { "/srv/app/jit-12.dump", "/srv/app/jit-12.dump" },
        { "/srv/app/jit-.dump", "nowhere" },
        { "/srv/app/jit-12.dump.old", "nowhere" },
        { "/srv/app/libjit-12.dump", "nowhere" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char asked[64] = "";
        struct trace_builder b;
        struct symbolizer_options options = { .files = { .open_jit_file = open_dump, .user = asked } };
        struct symbolizer_result result;
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        struct span path = span_of(cases[i].mapped, strlen(cases[i].mapped));
        uint32_t dump = trace_builder_image(&b, path, IMAGE_ELF, 0, 0, 0);
        trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, dump, 0);
        uint32_t anon = trace_builder_image(&b, span_of("", 0), IMAGE_ANON, 0, 0, 0);
        uint32_t code = trace_builder_mapping(&b, process, 0x5000, 0x1000, 0, anon, 0);
        add_location(&b.trace, process, code, 0x5010, 1);
        symbolizer_run(&b.trace, &b.functions, &options, &result);
        assert_string_equal(asked, cases[i].asked);
        assert_string_equal(result.map_problem, "not to be believed"); /* what is not there is no problem */
        trace_builder_done(&b);
    }
}

/* What `clrperf map` left counts only where the memory did not tell. */
static void test_our_own_map(void **state)
{
    static const struct {
        const char *map;
        enum resolver told_by;
        bool used;
    } cases[] = {
        { CODE_SYMBOLS_MARK "6000 40 Old.Name\n", RESOLVER_MEMORY, false },
        { CODE_SYMBOLS_MARK "6000 40 Old.Name\n", RESOLVER_EVENTPIPE, true },
        { "6000 40 Old.Name\n", RESOLVER_MEMORY, true },
        { "0 1 [clrperf", RESOLVER_MEMORY, false },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        int fd = elf_fixture_file(cases[i].map, strlen(cases[i].map));
        struct symbolizer_options options = { .files = { .open_jit_file = open_map, .user = &fd } };
        struct symbolizer_result result;
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, 10, 0);
        struct trace_function function = { .name = trace_add_string(&b.trace, "Told"), .kind = CODE_JIT };
        struct trace_code code = { .process = process,
                                   .function = trace_builder_function(&b, &function),
                                   .addr = 0x5000,
                                   .size_bytes = 0x40,
                                   .resolver = (uint8_t)cases[i].told_by };
        trace_builder_code(&b, &code);
        uint32_t told = add_location(&b.trace, process, 0, 0x5010, 1);
        uint32_t other = add_location(&b.trace, process, 0, 0x6010, 1);
        symbolizer_run(&b.trace, &b.functions, &options, &result);
        assert_string_equal(name_of(&b.trace, told), "Told");
        assert_string_equal(name_of(&b.trace, other), cases[i].used ? "Old.Name" : "");
        trace_builder_done(&b);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_image_is_the_mapped_one),
        cmocka_unit_test(test_image_of_another_process),
        cmocka_unit_test(test_bundle_looked_for),
        cmocka_unit_test(test_vdso_of_another_kernel),
        cmocka_unit_test(test_code_of_the_time),
        cmocka_unit_test(test_code_of_a_shutdown),
        cmocka_unit_test(test_our_own_map),
        cmocka_unit_test(test_mapped_dump),
        cmocka_unit_test(test_named_while_others_add),
        cmocka_unit_test(test_assembly_of_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
