#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "elf_fixture.h"
#include "symbolize/late_names.h"
#include "symbolize/native_image.h"
#include "symbolize/symbol_cache.h"
#include "temp_folder.h"
#include "trace/builder.h"

struct folder {
    char path[200];
    struct symbol_cache cache;
};

static int make_folder(void **state)
{
    static struct folder f;
    struct error err;
    assert_true(temp_folder_make(f.path, sizeof f.path));
    if (!symbol_cache_open(f.path, false, &f.cache, &err))
        fail_msg("%s", err.what);
    *state = &f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    symbol_cache_close(&f->cache);
    AUTO_FREE char *command = mem_format("rm -rf '%s'", f->path);
    return system(command);
}

static size_t count_files(const struct folder *f)
{
    DIR *dir = opendir(f->path);
    size_t count = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static struct symbol_id fixture_id(void)
{
    struct buffer bytes = elf_fixture_load("stripped.so");
    struct source file = source_over_span(buffer_span(&bytes));
    struct elf e;
    assert_true(elf_open(&file, &e, NULL));
    struct symbol_id id = symbol_id_of_elf(&e);
    elf_done(&e);
    buffer_done(&bytes);
    return id;
}

/* Puts the first `size` bytes of a fixture into the cache under `id`. */
static bool put(const struct folder *f, const struct symbol_id *id, const char *fixture, size_t size,
                struct error *err)
{
    struct buffer bytes = elf_fixture_load(fixture);
    struct replaced_file file;
    assert_true(symbol_cache_begin(&f->cache, id, &file, err));
    size = size < bytes.size ? size : bytes.size;
    assert_int_equal(write(file.fd, bytes.data, size), size);
    buffer_done(&bytes);
    return symbol_cache_keep(id, &file, err);
}

static void test_keep(void **state)
{
    const struct folder *f = *state;
    struct symbol_id id = fixture_id(), other = id;
    struct error err;
    struct stat st;
    assert_int_equal(symbol_cache_find(&f->cache, &id), -1);
    assert_true(put(f, &id, "sample.debug", SIZE_MAX, &err));
    AUTO_FD int fd = symbol_cache_find(&f->cache, &id);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    other.bytes[0] ^= 1;
    assert_int_equal(symbol_cache_find(&f->cache, &other), -1);
    assert_int_equal(symbol_cache_find(NULL, &id), -1);
    assert_int_equal(count_files(f), 1);
}

/* What is not what was asked for leaves nothing behind, and what was there stays. */
static void test_refuse(void **state)
{
    const struct folder *f = *state;
    struct symbol_id id = fixture_id(), none = { .size = 4 };
    struct replaced_file file;
    struct error err;
    assert_false(put(f, &id, "runtime.so", SIZE_MAX, &err));
    assert_non_null(strstr(err.what, "another build"));
    assert_false(put(f, &id, "sample.debug", 2000, &err));
    assert_false(put(f, &id, "sample.debug", 0, &err));
    assert_int_equal(count_files(f), 0);
    assert_true(put(f, &id, "sample.debug", SIZE_MAX, &err));
    assert_false(put(f, &id, "runtime.so", SIZE_MAX, &err));
    AUTO_FD int fd = symbol_cache_find(&f->cache, &id);
    assert_true(fd >= 0);
    assert_false(symbol_cache_begin(&f->cache, &none, &file, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_int_equal(count_files(f), 1);
}

/* Under the name of an id lies something else. */
static void test_planted(void **state)
{
    const struct folder *f = *state;
    struct symbol_id id = fixture_id();
    char name[SYMBOL_CACHE_NAME_BYTES];
    struct error err;
    struct stat st;
    symbol_cache_name(&id, name);
    assert_int_equal(symlinkat("/etc/passwd", f->cache.directory_fd, name), 0);
    assert_int_equal(symbol_cache_find(&f->cache, &id), -1);
    assert_true(put(f, &id, "sample.debug", SIZE_MAX, &err));
    assert_int_equal(fstatat(f->cache.directory_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(unlinkat(f->cache.directory_fd, name, 0), 0);
    assert_int_equal(mkfifoat(f->cache.directory_fd, name, 0600), 0);
    assert_int_equal(symbol_cache_find(&f->cache, &id), -1);
}

/* Names come out of it. */
static void test_names(void **state)
{
    const struct folder *f = *state;
    struct symbol_id id = fixture_id();
    struct debug_finder finder = { .cache = &f->cache };
    struct buffer bytes = elf_fixture_load("stripped.so");
    struct source file = source_over_span(buffer_span(&bytes));
    for (unsigned fetched = 0; fetched < 2; fetched++) {
        struct native_image *image;
        struct code_name name;
        struct error err;
        uint64_t start;
        assert_true(native_image_open(&file, "/a/x.so", &finder, &image, &err));
        assert_true(native_image_find(image, 0x384, &name, &start));
        assert_string_equal(name.name, fetched ? "hidden_helper" : "x.so!0x380");
        assert_int_equal(name.resolver, fetched ? RESOLVER_ELF_DEBUG : RESOLVER_EH_FRAME);
        native_image_close(image);
        assert_true(fetched || put(f, &id, "sample.debug", SIZE_MAX, &err));
    }
    buffer_done(&bytes);
}

/* A capture that was made when there were no symbols. */
static void test_late_names(void **state)
{
    const struct folder *f = *state;
    static const struct {
        const char *name;
        uint8_t resolver;
        const char *late;
    } functions[] = {
        { "x.so!0x380", RESOLVER_EH_FRAME, "hidden_helper" },
        { "x.so!0x3c0", RESOLVER_EH_FRAME, "plain_alias" },
        { "x.so!0x380", RESOLVER_ELF_DYNSYM, NULL },
        { "x.so!0xffffffffffffffff", RESOLVER_EH_FRAME, NULL },
        { "x.so!0x", RESOLVER_EH_FRAME, NULL },
        { "x.so!0x380z", RESOLVER_EH_FRAME, NULL },
        { "0x380", RESOLVER_EH_FRAME, NULL },
        { "", RESOLVER_EH_FRAME, NULL },
    };
    struct symbol_id id = fixture_id();
    char build_id[SYMBOL_ID_TEXT_BYTES];
    struct trace_builder b;
    struct error err;
    symbol_id_text(&id, build_id);
    assert_true(put(f, &id, "sample.debug", SIZE_MAX, &err));
    trace_builder_init(&b, 16);
    struct trace *t = &b.trace;
    uint32_t image = trace_push(&t->images), mapping = trace_push(&t->mappings);
    t->images.rows[image] = (struct trace_image){ .path = trace_add_string(t, "/a/x.so"),
                                                  .build_id = trace_add_string(t, build_id) };
    t->mappings.rows[mapping].image = image;
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        struct trace_function wanted = { .name = trace_add_string(t, functions[i].name),
                                         .kind = CODE_NATIVE };
        uint32_t function = function_index_add(&b.functions, t, &wanted),
                 location = trace_push(&t->locations);
        t->locations.rows[location] = (struct trace_location){ .mapping = mapping,
                                                               .function = function,
                                                               .resolver = functions[i].resolver };
    }
    late_names_add(t, &b.functions, &f->cache);
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        const struct trace_location *row = &t->locations.rows[i + 1];
        const char *late = functions[i].late;
        assert_string_equal(trace_string(t, t->functions.rows[row->function].name),
                            late ? late : functions[i].name);
        assert_int_equal(row->resolver, late ? RESOLVER_ELF_DEBUG : functions[i].resolver);
    }
    trace_builder_done(&b);
}

static void plant(const struct folder *f, const char *name, size_t size, time_t used)
{
    AUTO_FD int fd = openat(f->cache.directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(futimens(fd, (struct timespec[2]){ { .tv_sec = used }, { .tv_sec = used } }), 0);
}

static bool is_there(const struct folder *f, const char *name)
{
    return faccessat(f->cache.directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_trim(void **state)
{
    const struct folder *f = *state;
    static const char *const names[] = { "0000000000000001.debug", "0000000000000002.pdb",
                                         "0000000000000003.debug", "0000000000000004.debug" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        plant(f, names[i], 1000, (time_t)(1000000 + i));
    plant(f, "notes.txt", 5000, 1);
    plant(f, "0000000000000005.debug.bak", 5000, 1);
    plant(f, ".clrperf-0123456789abcdef", 5000, 1);
    assert_int_equal(symbol_cache_trim(&f->cache, 4000), 0);
    assert_false(is_there(f, ".clrperf-0123456789abcdef"));
    /* the second is used again: then the first and the third go before it */
    struct symbol_id second = { .kind = SYMBOL_PDB, .size = 8, .bytes = { 0, 0, 0, 0, 0, 0, 0, 2 } };
    AUTO_FD int fd = symbol_cache_find(&f->cache, &second);
    assert_true(fd >= 0);
    assert_int_equal(symbol_cache_trim(&f->cache, 2999), 2);
    assert_true(is_there(f, names[1]) && is_there(f, names[3]));
    /* the one used last stays, however large */
    assert_int_equal(symbol_cache_trim(&f->cache, 0), 1);
    assert_true(is_there(f, names[1]));
    assert_true(is_there(f, "notes.txt") && is_there(f, "0000000000000005.debug.bak"));
}

static void test_create(void **state)
{
    const struct folder *f = *state;
    AUTO_FREE char *below = mem_format("%s//a/b//c/", f->path);
    AUTO_FREE char *middle = mem_format("%s/a", f->path);
    struct symbol_cache cache;
    struct error err;
    struct stat st;
    assert_false(symbol_cache_open(below, false, &cache, &err));
    assert_int_equal(err.kind, ERROR_SYSTEM);
    assert_int_equal(cache.directory_fd, -1);
    assert_int_equal(count_files(f), 0);
    if (!symbol_cache_open(below, true, &cache, &err))
        fail_msg("%s", err.what);
    assert_int_equal(fstat(cache.directory_fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    symbol_cache_close(&cache);
    assert_true(symbol_cache_open(below, true, &cache, &err));
    symbol_cache_close(&cache);
    /* others may write above it, or in it */
    assert_int_equal(chmod(middle, 0777), 0);
    assert_false(symbol_cache_open(below, false, &cache, &err));
    assert_int_equal(err.kind, ERROR_PERMISSION);
    assert_int_equal(chmod(middle, 01777), 0);
    assert_true(symbol_cache_open(below, false, &cache, &err));
    symbol_cache_close(&cache);
    assert_false(symbol_cache_open(middle, false, &cache, &err));
    assert_false(symbol_cache_open("a/b", true, &cache, &err));
    assert_int_equal(err.kind, ERROR_USAGE);
    assert_false(symbol_cache_open("/proc/self/status/x", true, &cache, &err));
}

/* Only root can make what belongs to somebody else. */
static void test_stranger(void **state)
{
    const struct folder *f = *state;
    AUTO_FREE char *theirs = mem_format("%s/theirs", f->path);
    AUTO_FREE char *below = mem_format("%s/theirs/mine", f->path);
    struct symbol_cache cache;
    struct error err;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(theirs, 0755), 0);
    assert_int_equal(chown(theirs, 65534, 65534), 0);
    assert_false(symbol_cache_open(theirs, false, &cache, &err));
    assert_int_equal(err.kind, ERROR_PERMISSION);
    assert_false(symbol_cache_open(below, true, &cache, &err));
    assert_int_equal(err.kind, ERROR_PERMISSION);
    assert_int_equal(access(below, F_OK), -1);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_keep),   IN_FOLDER(test_refuse),   IN_FOLDER(test_planted), IN_FOLDER(test_trim),
        IN_FOLDER(test_create), IN_FOLDER(test_stranger), IN_FOLDER(test_names),   IN_FOLDER(test_late_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
