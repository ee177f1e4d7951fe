#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/debug_info.h"

enum { ADDRS_MAX = 640, CHAIN_BYTES = 256, CUT_STRIDE = 16 };

static const char *const samples[] = { "gcc2", "gcc4", "gcc5", "gcc5-gz", "gcc5-lto", "clang4", "clang5" };

/* What a judge says of every byte of the code: "NAME FILE:LINE ...", the innermost first. */
struct golden {
    uint64_t addrs[ADDRS_MAX];
    char chains[ADDRS_MAX][CHAIN_BYTES];
    size_t count;
};

/* An ELF file with its sections. */
struct fixture {
    int fd;
    struct elf elf;
    struct debug_sections sections;
};

static void fixture_open(const char *name, struct fixture *out)
{
    AUTO_FREE char *path = mem_format("%s/dwarf/inlined/%s.elf", GOLDEN_DIR, name);
    struct source file;
    struct error err;
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0 || !source_over_fd(out->fd, 0, UINT64_MAX, &file, &err) ||
        !elf_open(&file, &out->elf, &err))
        fail_msg("cannot read %s", path);
    debug_sections_open(&out->elf, &out->sections);
}

static void fixture_close(struct fixture *f)
{
    debug_sections_close(&f->sections);
    elf_done(&f->elf);
    close(f->fd);
}

static void golden_read(const char *name, struct golden *out)
{
    AUTO_FREE char *path = mem_format("%s/dwarf/inlined/%s.frames", GOLDEN_DIR, name);
    AUTO_FREE char *line = NULL;
    AUTO_STREAM FILE *file = fopen(path, "re");
    size_t capacity = 0;
    char chain[CHAIN_BYTES] = "";
    uint64_t at = 0;
    out->count = 0;
    while (file && getline(&line, &capacity, file) > 0) {
        char *rest;
        uint64_t next = strtoull(line, &rest, 16);
        for (; at && at < next && out->count < ADDRS_MAX; at++) {
            out->addrs[out->count] = at;
            memcpy(out->chains[out->count++], chain, sizeof chain);
        }
        rest[strcspn(rest, "\n")] = 0;
        snprintf(chain, sizeof chain, "%s", rest + 1);
        at = next;
    }
    if (out->count < 50)
        fail_msg("cannot read %s", path);
}

/* Lines and chains by address, as the golden file has them, but for the function's own name. */
struct answers {
    struct {
        char line[CHAIN_BYTES], chain[CHAIN_BYTES], own_line[CHAIN_BYTES];
        bool inlined;
    } rows[ADDRS_MAX];
    size_t count;
};

static void place_text(char out[CHAIN_BYTES], const char *file, uint32_t line)
{
    /* before version 5 the line program does not know the compiler's folder */
    const char *folder = file[0] && file[0] != '/' ? "/src/" : "";
    if (line && file[0])
        snprintf(out, CHAIN_BYTES, "%s%s:%" PRIu32, folder, file, line);
    else
        snprintf(out, CHAIN_BYTES, "--:0");
}

static void take_line(void *user, size_t index, const char *file, uint32_t line)
{
    struct answers *answers = user;
    place_text(answers->rows[index].line, file, line);
    answers->count++;
}

static void take_inlined(void *user, size_t index, const struct debug_inlined *inlined, size_t count)
{
    struct answers *answers = user;
    char *chain = answers->rows[index].chain;
    size_t used = 0;
    if (answers->rows[index].inlined || count == 0)
        fail_msg("answered twice, or with nothing");
    answers->rows[index].inlined = true;
    const char *place = answers->rows[index].line[0] ? answers->rows[index].line : "--:0";
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(chain + used, CHAIN_BYTES - used, "%s %s ", inlined[i].function, place);
        assert_true(used < CHAIN_BYTES);
        place_text(answers->rows[index].own_line, inlined[i].call_file, inlined[i].call_line);
        place = answers->rows[index].own_line;
    }
    answers->count++;
}

static bool ask(const struct debug_sections *sections, const uint64_t *addrs, size_t count,
                struct answers *answers)
{
    struct debug_units units;
    uint64_t *programs = mem_alloc(count + 1, sizeof *programs);
    bool ok = debug_units_find(sections, addrs, count, &units, NULL);
    if (ok) {
        size_t program_count = debug_units_line_programs(&units, sections, programs);
        debug_line_find(&sections->lines, programs, program_count, addrs, count, take_line, answers, NULL);
        ok = debug_info_find(sections, &units, addrs, take_inlined, answers, NULL);
        debug_units_done(&units);
    }
    free(programs);
    return ok;
}

static bool is_right(const struct answers *answers, size_t i, const char *wanted)
{
    const char *chain = answers->rows[i].chain;
    const char *own_line = answers->rows[i].inlined ? answers->rows[i].own_line : answers->rows[i].line;
    size_t size = strlen(chain);
    const char *last = strrchr(wanted, ' ');
    return strncmp(wanted, chain, size) == 0 && last && last > wanted + size - (size != 0) &&
           !memchr(wanted + size, ' ', (size_t)(last - wanted) - size) &&
           strcmp(last + 1, own_line[0] ? own_line : "--:0") == 0;
}

static void test_every_address(void **state)
{
    (void)state;
    struct golden *golden = mem_alloc(1, sizeof *golden);
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct fixture f;
        struct answers *answers = mem_alloc(1, sizeof *answers);
        size_t inlined = 0;
        fixture_open(samples[s], &f);
        golden_read(samples[s], golden);
        assert_true(ask(&f.sections, golden->addrs, golden->count, answers));
        for (size_t i = 0; i < golden->count; i++) {
            inlined += answers->rows[i].inlined;
            if (!is_right(answers, i, golden->chains[i]))
                fail_msg("%s at 0x%" PRIx64 ": '%s(function) %s', not '%s'", samples[s], golden->addrs[i],
                         answers->rows[i].chain,
                         answers->rows[i].inlined ? answers->rows[i].own_line : answers->rows[i].line,
                         golden->chains[i]);
        }
        assert_true(inlined > 20);
        free(answers);
        fixture_close(&f);
    }
    free(golden);
}

/* A few of many: only their units are read, in any mixture. */
static void test_single_addresses(void **state)
{
    (void)state;
    struct golden *golden = mem_alloc(1, sizeof *golden);
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct fixture f;
        fixture_open(samples[s], &f);
        golden_read(samples[s], golden);
        for (size_t i = 0; i < golden->count; i++) {
            struct answers *answers = mem_alloc(1, sizeof *answers);
            assert_true(ask(&f.sections, &golden->addrs[i], 1, answers));
            if (!is_right(answers, 0, golden->chains[i]))
                fail_msg("%s at 0x%" PRIx64 " alone", samples[s], golden->addrs[i]);
            free(answers);
        }
        fixture_close(&f);
    }
    free(golden);
}

static void test_elsewhere(void **state)
{
    (void)state;
    static const uint64_t addrs[] = { 0, 4, 0x400fff, 0x402000, UINT64_MAX };
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct fixture f;
        struct answers *answers = mem_alloc(1, sizeof *answers);
        fixture_open(samples[s], &f);
        assert_true(ask(&f.sections, addrs, ARRAY_LEN(addrs), answers));
        assert_int_equal(answers->count, 0);
        free(answers);
        fixture_close(&f);
    }
}

/* Leaves some of the addresses. Returns how many. */
static size_t golden_thin(struct golden *golden)
{
    size_t count = 0;
    for (size_t i = 0; i < golden->count; i += CUT_STRIDE, count++) {
        golden->addrs[count] = golden->addrs[i];
        memmove(golden->chains[count], golden->chains[i], CHAIN_BYTES);
    }
    return count;
}

/* With nothing behind it, so that whoever reads on is noticed. */
static uint8_t *copy_of(struct span bytes, size_t size)
{
    return memcpy(mem_alloc(size ? size : 1, 1), bytes.data, size);
}

/* Puts a part of a section in its place, and asks. `part` is `whole`'s beginning. */
typedef void cut_fn(struct debug_sections *sections, size_t section, struct span part);

/* With one section cut at every byte. What is not there is missing; with `judged` nothing else comes up. */
static void ask_cut(const char *name, struct debug_sections *sections, const struct golden *golden,
                    size_t few, cut_fn *put, size_t section, struct span whole, bool judged)
{
    AUTO_FREE struct answers *answers = mem_alloc(1, sizeof *answers);
    for (size_t size = 0; size < whole.size; size++) {
        AUTO_FREE uint8_t *bytes = copy_of(whole, size);
        memset(answers->rows, 0, few * sizeof *answers->rows);
        answers->count = 0;
        put(sections, section, span_of(bytes, size));
        ask(sections, golden->addrs, few, answers);
        for (size_t i = 0; judged && i < few; i++)
            if (answers->rows[i].inlined && !is_right(answers, i, golden->chains[i]))
                fail_msg("%s cut at %zu: 0x%" PRIx64 " is '%s'", name, size, golden->addrs[i],
                         answers->rows[i].chain);
    }
    put(sections, section, whole);
}

enum { CUT_SPANS = 6 };

static struct span *span_at(struct debug_sections *s, size_t section)
{
    struct span *const parts[CUT_SPANS] = { &s->abbrev, &s->addr,     &s->str_offsets,
                                            &s->ranges, &s->rnglists, &s->lines.strings };
    return parts[section];
}

static void put_span(struct debug_sections *s, size_t section, struct span part)
{
    *span_at(s, section) = part;
}

static const char *const byte_sections[] = { ".debug_info", ".debug_line" };

static void put_bytes(struct debug_sections *s, size_t section, struct span part)
{
    *(section ? &s->lines.line : &s->info) = elf_bytes_over_span(part);
}

static void test_cut(void **state)
{
    (void)state;
    struct golden *golden = mem_alloc(1, sizeof *golden);
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct fixture f;
        struct buffer whole;
        fixture_open(samples[s], &f);
        golden_read(samples[s], golden);
        size_t few = golden_thin(golden);
        struct debug_sections cut = f.sections;
        for (size_t p = 0; p < CUT_SPANS; p++)
            ask_cut(samples[s], &cut, golden, few, put_span, p, *span_at(&cut, p), false);
        buffer_init(&whole, 1 << 20);
        for (size_t p = 0; p < ARRAY_LEN(byte_sections); p++) {
            const struct elf_bytes before = p ? cut.lines.line : cut.info;
            assert_true(elf_section_load(&f.elf, elf_section_named(&f.elf, byte_sections[p]), &whole, NULL));
            /* a unit that is cut is left out; without its lines the chain is there, and without them */
            ask_cut(samples[s], &cut, golden, few, put_bytes, p, buffer_span(&whole), p == 0);
            *(p ? &cut.lines.line : &cut.info) = before;
        }
        buffer_done(&whole);
        fixture_close(&f);
    }
    free(golden);
}

/* Version 4: a unit whose only function has inlined what is inlined from itself. */
static const uint8_t circle_abbrev[] = {
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0,    0,          /* a unit: low_pc, high_pc */
    2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0,    0,          /* a function with them */
    3, 0x1d, 0, 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0, /* something inlined, with an origin */
    0,
};

static void test_circle(void **state)
{
    (void)state;
    enum { HEADER = 11, BODY = 1 + 16 + 1 + 16 + 1 + 16 + 4 + 2 };
    static const uint64_t addrs[] = { 0x1004 };
    struct buffer info;
    buffer_init(&info, 4096);
    buffer_u32le(&info, HEADER - 4 + BODY);
    buffer_u16le(&info, 4);
    buffer_u32le(&info, 0);
    buffer_u8(&info, 8);
    for (uint8_t code = 1; code <= 3; code++) {
        if (code == 3)
            assert_int_equal(info.size, HEADER + 34);
        buffer_u8(&info, code);
        buffer_u64le(&info, 0x1000);
        buffer_u64le(&info, 0x10);
    }
    buffer_u32le(&info, HEADER + 34); /* itself */
    buffer_u16le(&info, 0);
    struct debug_sections sections = { .info = elf_bytes_over_span(buffer_span(&info)),
                                       .str = source_over_span((struct span){ 0 }),
                                       .abbrev = span_of(circle_abbrev, sizeof circle_abbrev) };
    struct answers *answers = mem_alloc(1, sizeof *answers);
    assert_true(ask(&sections, addrs, 1, answers));
    assert_int_equal(answers->count, 0); /* nobody tells its name */
    free(answers);
    buffer_done(&info);
}

/* Everything inlined into itself, at many addresses: that asks for more than a file can need. */
static void test_deep_unit(void **state)
{
    (void)state;
    enum { HEADER = 11, LEVELS = 500, ADDRS = 9000 };
    static const uint8_t abbrev[] = {
        1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, /* a unit: low_pc, high_pc */
        2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, /* a function with them */
        3, 0x1d, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, /* something inlined, with children */
        0,
    };
    AUTO_FREE uint64_t *addrs = mem_alloc(ADDRS, sizeof *addrs);
    for (size_t i = 0; i < ADDRS; i++)
        addrs[i] = 0x1000 + i;
    struct buffer info;
    buffer_init(&info, 1 << 20);
    buffer_u32le(&info, HEADER - 4 + (LEVELS + 2) * 18);
    buffer_u16le(&info, 4);
    buffer_u32le(&info, 0);
    buffer_u8(&info, 8);
    for (unsigned i = 0; i < LEVELS + 2; i++) {
        buffer_u8(&info, i < 2 ? (uint8_t)(i + 1) : 3);
        buffer_u64le(&info, 0x1000);
        buffer_u64le(&info, ADDRS);
    }
    for (unsigned i = 0; i < LEVELS + 2; i++)
        buffer_u8(&info, 0);
    struct debug_sections sections = { .info = elf_bytes_over_span(buffer_span(&info)),
                                       .str = source_over_span((struct span){ 0 }),
                                       .abbrev = span_of(abbrev, sizeof abbrev) };
    struct answers *answers = mem_alloc(1, sizeof *answers);
    assert_true(ask(&sections, addrs, 100, answers));
    assert_int_equal(answers->count, 0); /* deeper than what is answered */
    assert_false(ask(&sections, addrs, ADDRS, answers));
    assert_int_equal(answers->count, 0);
    free(answers);
    buffer_done(&info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_address), cmocka_unit_test(test_single_addresses),
        cmocka_unit_test(test_elsewhere),     cmocka_unit_test(test_cut),
        cmocka_unit_test(test_circle),        cmocka_unit_test(test_deep_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
