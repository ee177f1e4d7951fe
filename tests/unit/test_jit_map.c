#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/jit_name.h"
#include "elf_fixture.h"
#include "read/jitdump.h"
#include "symbolize/jit_map.h"
#include "temp_folder.h"

static const struct {
    const char *raw, *name, *module;
    enum code_kind kind;
    enum code_tier tier;
} names[] = {
    { "instance string [natapp] Nat.App.P+<>c::<Main>b__2_0(object)[MinOptJitted]",
      "Nat.App.P+<>c::<Main>b__2_0(class System.Object)", "natapp", CODE_JIT, TIER_0 },
    { "void [natapp] Nat.App.P::A(native int,native uint,string,object,int32*,void*,int32[][],method string "
      "*(int32),valuetype [System.Runtime]System.DateTime&,valuetype [System.Runtime]System.Guid&,typedref)"
      "[OptimizedTier1]",
      "Nat.App.P::A(int,unsigned int,class System.String,class System.Object,int32*,void*,int32[][],fnptr "
      "class "
      "System.String(int32),value class System.DateTime&,value class System.Guid&,refany)",
      "natapp", CODE_JIT, TIER_1 },
    { "int32 [natapp] Nat.App.Outer`1[System.__Canon]::M1(valuetype Nat.App.Outer`1/Inner<!0>,class "
      "Nat.App.Outer`1/C2<!0>,class "
      "[System.Collections]System.Collections.Generic.List`1<!0>,!0[],!0[0...,0...],!0&)"
      "[OptimizedTier1OSR]",
      "Nat.App.Outer`1[System.__Canon]::M1(value class Inner<!0>,class C2<!0>,class "
      "System.Collections.Generic.List`1<!0>,!0[],!0[,],!0&)",
      "natapp", CODE_JIT, TIER_OSR },
    { "class [System.Runtime]System.Threading.Tasks.Task`1<int32> [a b] Q::B(bool,char,int8,uint8,float32)"
      "[InstrumentedTier]",
      "Q::B(bool,wchar,int8,unsigned int8,float32)", "a b", CODE_JIT, TIER_0_INSTRUMENTED },
    { "int32[] [x] A::B(class C/<>c__D0`1<!!0>)[Optimized]", "A::B(class <>c__D0`1<!!0>)", "x", CODE_JIT,
      TIER_OPTIMIZED },
    { "void [System.Private.CoreLib] dynamicClass::IL_STUB_PInvoke(S.Q /* MT: 0x7f8a12fdaac0 "
      "*/,int32)[Optimized]",
      "dynamicClass::IL_STUB_PInvoke(S.Q,int32)", "System.Private.CoreLib", CODE_DYNAMIC, TIER_OPTIMIZED },
    { "void [a] B::M(int32& modreq(System.Runtime.InteropServices.InAttribute))", "B::M(int32&)", "a",
      CODE_JIT, TIER_NONE },
    { "void [a] B::M()[PreJIT]", "B::M()", "a", CODE_R2R, TIER_R2R },
    { "void [a] B::M()[Whatever9]", "B::M()", "a", CODE_JIT, TIER_NONE },
    { "void [] [a] ] B::M()[Whatever9]", "] B::M()", "a", CODE_JIT, TIER_NONE },
    { "void [a] B:M()::N", "void [a] B:M()::N", "perf map", CODE_JIT, TIER_NONE },
    { "stub1234 GenerateResolveStub<VSD>", "[stub VSD]", "", CODE_STUB, TIER_NONE },
    { "stub ReportStubBlock<MethodCallThunk>", "[stub MethodCallThunk]", "", CODE_STUB, TIER_NONE },
    { "stub ReportStubBlock<Unknown>", "[stub ReportStubBlock]", "", CODE_STUB, TIER_NONE },
    { "stubborn", "stubborn", "perf map", CODE_JIT, TIER_NONE },
    { "LazyCompile:~foo file.js:1", "LazyCompile:~foo file.js:1", "perf map", CODE_JIT, TIER_NONE },
    { "Lcom/foo;::bar", "Lcom/foo;::bar", "perf map", CODE_JIT, TIER_NONE },
    { "evil\033[31m", "evil?[31m", "perf map", CODE_JIT, TIER_NONE },
    { "void [a] B::M(valuetype [", "B::M(value class ", "a", CODE_JIT, TIER_NONE },
    { "", "", "perf map", CODE_JIT, TIER_NONE },
};

static void test_names(void **state)
{
    (void)state;
    struct jit_name text;
    jit_name_init(&text);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct code_name name = { 0 };
        size_t size = strlen(names[i].raw);
        for (size_t cut = 0; cut <= size; cut++) {
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, names[i].raw, cut);
            jit_name_parse(&text, span_of(exact, cut), "perf map", &name);
            free(exact);
        }
        if (strcmp(name.name, names[i].name) != 0 || strcmp(name.module, names[i].module) != 0 ||
            name.kind != names[i].kind || name.tier != names[i].tier)
            fail_msg("%s: %s, %s, kind %d, tier %d", names[i].raw, name.name, name.module, name.kind,
                     name.tier);
    }
    jit_name_done(&text);
}

enum { ADDRS = 6 };
static const uint64_t addrs[ADDRS] = { 0x1000, 0x1010, 0x2000, 0x2fff, 0x3000, 0xfffffffffffffff0 };

struct answers {
    char name[ADDRS][64];
    size_t count;
};

static void keep(void *user, const struct jit_map_match *match)
{
    struct answers *a = user;
    assert_int_equal(a->name[match->index][0], 0); /* once for each */
    snprintf(a->name[match->index], sizeof a->name[0], "%s", match->name.name);
    a->count++;
}

static struct answers resolve(const void *bytes, size_t size, struct jit_map_result *result)
{
    struct answers answers = { 0 };
    struct error err;
    struct source file = source_over_span(span_of(bytes, size));
    if (!jit_map_resolve(&file, addrs, ADDRS, keep, &answers, result, &err))
        fail_msg("%s", err.what);
    assert_int_equal(result->named, answers.count);
    return answers;
}

static const struct {
    const char *label, *map;
    const char *names[ADDRS];
    uint64_t malformed;
} maps[] = {
    { "empty", "", { "", "", "", "", "", "" }, 0 },
    { "plain", "1000 10 a\n2000 1000 b\n", { "a", "", "b", "b", "", "" }, 0 },
    { "prefixes and capitals",
      "0x1000 0x10 a\n00000000000002000 FFF b c\n",
      { "a", "", "b c", "", "", "" },
      0 },
    { "later wins", "1000 1000 old\n1010 10 new\n", { "old", "new", "", "", "", "" }, 0 },
    { "later, larger wins", "1010 10 old\n1000 1000 new\n", { "new", "new", "", "", "", "" }, 0 },
    { "last line partial", "1000 10 a\n1000 10 b", { "a", "", "", "", "", "" }, 0 },
    { "only a partial line", "1000 10 b", { "", "", "", "", "", "" }, 0 },
    { "no size", "1000 0 a\n", { "", "", "", "", "", "" }, 0 },
    { "wraps", "fffffffffffffff0 11 a\n", { "", "", "", "", "", "" }, 1 },
    { "2^64 bytes", "0 ffffffffffffffff a\n", { "", "", "", "", "", "" }, 1 },
    { "wider than 64 bits", "10000000000001000 10 a\n", { "", "", "", "", "", "" }, 1 },
    { "no name", "1000 10 \n1000 10\n1000\n\n \n", { "", "", "", "", "", "" }, 5 },
    { "not hex", "x000 10 a\n1000 g0 a\n-1000 10 a\n", { "", "", "", "", "", "" }, 3 },
    { "last address", "fffffffffffffff0 f a\n", { "", "", "", "", "", "a" }, 0 },
};

static void test_perf_map(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        struct jit_map_result result;
        struct answers a = resolve(maps[i].map, strlen(maps[i].map), &result);
        for (size_t k = 0; k < ADDRS; k++)
            if (strcmp(a.name[k], maps[i].names[k]) != 0)
                fail_msg("%s: address %zu is '%s'", maps[i].label, k, a.name[k]);
        if (result.malformed != maps[i].malformed)
            fail_msg("%s: %lu malformed", maps[i].label, (unsigned long)result.malformed);
        for (size_t cut = 0; cut < strlen(maps[i].map); cut++)
            resolve(maps[i].map, cut, &result);
    }
}

/* Lines around the size of a window and above the limit, with a good one before and behind. */
static void test_long_lines(void **state)
{
    (void)state;
    static const size_t sizes[] = { 65000, 65536, 70000, 262143, 262144, 262145, 600000 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buffer map;
        buffer_init(&map, 4 << 20);
        buffer_string(&map, "1000 10 before\n2000 10 ");
        for (size_t k = 0; k < sizes[i]; k++)
            buffer_u8(&map, 'x');
        buffer_string(&map, "\n3000 10 behind\n");
        for (int k = 0; k < 30000; k++)
            buffer_string(&map, "5000 10 filler\n");
        struct jit_map_result result;
        struct answers a = resolve(map.data, map.size, &result);
        assert_string_equal(a.name[0], "before");
        assert_string_equal(a.name[4], "behind");
        assert_int_equal(a.name[2][0] != 0, sizes[i] < 65530);
        assert_int_equal(result.malformed, sizes[i] < 65530 ? 0 : 1);
        buffer_done(&map);
    }
}

static void add_load(struct buffer *b, uint64_t start, uint64_t size, const char *name)
{
    buffer_u32le(b, 0);
    buffer_u32le(b, (uint32_t)(16 + 40 + strlen(name) + 1 + 4));
    buffer_u64le(b, 1);
    buffer_u64le(b, 0);
    buffer_u64le(b, start);
    buffer_u64le(b, start);
    buffer_u64le(b, size);
    buffer_u64le(b, 1);
    buffer_append(b, name, strlen(name) + 1);
    buffer_u32le(b, 0xcccccccc);
}

static struct buffer make_jitdump(void)
{
    struct buffer b;
    buffer_init(&b, 4096);
    buffer_u32le(&b, 0x4A695444);
    buffer_u32le(&b, 1);
    buffer_u32le(&b, 40);
    buffer_u32le(&b, 62);
    buffer_u64le(&b, 0);
    buffer_u64le(&b, 0);
    buffer_u64le(&b, 0);
    add_load(&b, 0x1000, 0x1000, "void [a] B::Old()[PreJIT]");
    buffer_u32le(&b, 2); /* debug info, passed over */
    buffer_u32le(&b, 16);
    buffer_u64le(&b, 1);
    add_load(&b, 0x1010, 0x10, "void [a] B::New()[Optimized]");
    add_load(&b, 0xfffffffffffffff0, 0x1000, "wraps");
    add_load(&b, 0x2000, 0x10, "other");
    return b;
}

static void test_jitdump(void **state)
{
    (void)state;
    struct buffer b = make_jitdump();
    struct jit_map_result result;
    struct answers a = resolve(b.data, b.size, &result);
    assert_string_equal(a.name[0], "B::Old()");
    assert_string_equal(a.name[1], "B::New()");
    assert_string_equal(a.name[2], "other");
    assert_int_equal(a.count, 3);
    assert_int_equal(result.malformed, 1);
    assert_false(result.cut);
    for (size_t cut = 0; cut < b.size; cut++) {
        struct source file = source_over_span(span_of(b.data, cut));
        struct answers none = { 0 };
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, b.data, cut);
        file.memory.data = exact;
        bool ok = jit_map_resolve(&file, addrs, ADDRS, keep, &none, &result, NULL);
        assert_true(ok == (cut >= 40 || cut < 4));
        assert_true(none.count <= 2);
        free(exact);
    }
    buffer_done(&b);
}

static const struct {
    const char *label;
    uint32_t size;
    uint64_t malformed;
    bool cut;
} record_sizes[] = {
    { "size 0", 0, 1, false },
    { "size of less than its head", 15, 1, false },
    { "2^32 - 1", UINT32_MAX, 0, true },
    { "no room for the name", 40, 2, false }, /* nor a record where it ends */
};

static void test_jitdump_record_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(record_sizes); i++) {
        struct buffer b = make_jitdump();
        struct jit_map_result result = { 0 };
        for (unsigned k = 0; k < 4; k++)
            b.data[44 + k] = (uint8_t)(record_sizes[i].size >> 8 * k);
        struct answers a = resolve(b.data, b.size, &result);
        assert_int_equal(a.name[0][0], 0);
        if (result.malformed != record_sizes[i].malformed || result.cut != record_sizes[i].cut)
            fail_msg("%s: %lu %d", record_sizes[i].label, (unsigned long)result.malformed, result.cut);
        buffer_done(&b);
    }
}

/* A file with holes may claim any size. */
static void test_jitdump_too_large(void **state)
{
    (void)state;
    struct buffer b = make_jitdump();
    AUTO_FD int fd = elf_fixture_file(b.data, b.size);
    struct source file;
    struct error err = { 0 };
    struct jit_map_result result;
    struct answers a = { 0 };
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, &err));
    assert_true(jit_map_resolve(&file, addrs, ADDRS, keep, &a, &result, &err));
    assert_int_equal(a.count, 3);
    if (ftruncate(fd, (off_t)JITDUMP_BYTES_MAX + 1) == 0) {
        assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, &err));
        assert_false(jit_map_resolve(&file, addrs, ADDRS, keep, &a, &result, &err));
        assert_int_equal(err.kind, ERROR_LIMIT);
    }
    buffer_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_perf_map),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_jitdump),
        cmocka_unit_test(test_jitdump_record_sizes),
        cmocka_unit_test(test_jitdump_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
