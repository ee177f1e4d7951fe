#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "symbolize/jit_helper_names.h"

/* The tables of the runtimes, made: places as in their files, functions numbered by place. */
static const struct version {
    const char *kinds;
    size_t tail, gap;
    uint64_t first_index;
    size_t throw_slot, generics;
} versions[] = {
    { "FFD0D00FFFFDDDFFFDDDDDDDDDFDFDFFDDFFFFFFFFFFFF0FFFFFFDFF", 157, 1, 4, 34, 111 },
    { "FFD0D00FFFFDDDFFFDDDDDDDDDFDFDFFFDDDDFDDDDDFFFF0FFFFFFDF", 149, 1, 7, 35, 102 },
    { "FFD0DD0DDFFDDDDDDDDDDDDDDDFDDDDDDDDDDDDDDDDDFDDD0DDFDDDF", 145, 1, 5, 35, 0 },
    { "FFD0DD0DDFFDDDDDDDDDDDDDDFDDDDDDDDDDDDDDDDDFDDDDDFDDDFDDDDD0", 142, 3, 5, 34, 0 },
};
/* 8 counts no values */
static const char tail_call_kinds[] = "FFFFFF", tail_kinds[] = "FFFFFFFFFFF", values_kinds[] = "FF0D";

enum { TAIL_CALLS = 6, BEFORE = 7, SLOTS = 220, FUNCTIONS = 0x10000, REPLACEABLE_BASE = 11 };

static struct helper_slot fixed_rows[SLOTS], replaceable_rows[128];

static void put_kinds(const char *kinds, size_t at, uint64_t *index)
{
    for (size_t i = 0; kinds[i]; i++) {
        struct helper_slot *slot = &fixed_rows[at + i];
        if (kinds[i] == 'F')
            *slot = (struct helper_slot){ FUNCTIONS + 16 * (at + i - BEFORE), HELPER_SLOT_FUNCTION };
        else if (kinds[i] == 'D')
            *slot = (struct helper_slot){ (*index)++, HELPER_SLOT_INDEX };
        else
            *slot = (struct helper_slot){ 0, HELPER_SLOT_NONE };
    }
}

static void make(const struct version *v)
{
    memset(fixed_rows, 0, sizeof fixed_rows);
    memset(replaceable_rows, 0, sizeof replaceable_rows);
    uint64_t index = v->first_index;
    put_kinds(v->kinds, BEFORE, &index);
    size_t begin = BEFORE + v->tail + TAIL_CALLS + v->gap;
    put_kinds(tail_call_kinds, BEFORE + v->tail, &index);
    put_kinds(&"000"[3 - v->gap], BEFORE + v->tail + TAIL_CALLS, &index);
    put_kinds(tail_kinds, begin, &index);
    put_kinds(v == versions ? "0D" : values_kinds, begin + strlen(tail_kinds), &index);
    if (v->generics) { /* the last but one two are the fifth and the sixth again */
        struct helper_slot *generics = &fixed_rows[BEFORE + v->generics];
        put_kinds("FFFFFFFFFFF0", BEFORE + v->generics, &index);
        memcpy(generics + 8, generics + 4, 2 * sizeof *generics);
    }
    for (size_t i = 0; v->kinds[i]; i++) {
        if (v->kinds[i] != 'D')
            continue;
        /* NEWSFAST begins as NEWFAST, the kinds of array as the first; the others as themselves */
        size_t like = i < 7 ? 0 : i >= 11 && i <= 13 ? 9 : i;
        replaceable_rows[REPLACEABLE_BASE + fixed_rows[BEFORE + i].value] =
            (struct helper_slot){ FUNCTIONS + 16 * like, HELPER_SLOT_FUNCTION };
    }
}

struct seen {
    const char *name[64];
    uint64_t function[64];
    size_t count;
};

static void note(void *user, const char *name, uint64_t function)
{
    struct seen *seen = user;
    assert_true(seen->count < 64);
    seen->name[seen->count] = name;
    seen->function[seen->count++] = function;
}

static uint64_t slot_of(const struct seen *seen, const char *name)
{
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->name[i], name) == 0)
            return (seen->function[i] - FUNCTIONS) / 16;
    return UINT64_MAX;
}

static bool find(size_t fixed_count, size_t replaceable_count, struct seen *seen)
{
    struct helper_slots fixed = { fixed_rows, fixed_count };
    struct helper_slots replaceable = { replaceable_rows, replaceable_count };
    seen->count = 0;
    return jit_helper_table_find(&fixed, &replaceable, note, seen);
}

static void test_versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        const struct version *v = &versions[i];
        struct seen seen;
        make(v);
        assert_true(find(SLOTS, 128, &seen));
        assert_int_equal(slot_of(&seen, "IL_Throw"), v->throw_slot);
        assert_int_equal(slot_of(&seen, "IL_Rethrow"), v->throw_slot + 1);
        assert_int_equal(slot_of(&seen, i < 2 ? "JIT_New" : "RhpNew"), 0);
        assert_int_equal(slot_of(&seen, i < 2 ? "JIT_NewArr1" : "RhpNewVariableSizeObject"), 9);
        assert_int_equal(slot_of(&seen, "JIT_PInvokeBegin"), v->tail);
        assert_int_equal(slot_of(&seen, "JIT_Patchpoint"), v->tail + 7 + v->gap);
        assert_int_equal(slot_of(&seen, "JIT_CountProfile32"), v->tail + 15 + v->gap);
        assert_int_equal(slot_of(&seen, "JIT_ValueProfile64"), i ? v->tail + 18 + v->gap : UINT64_MAX);
        uint64_t generics = v->generics ? v->generics : UINT64_MAX;
        assert_int_equal(slot_of(&seen, "JIT_GenericHandleMethod"), generics);
        assert_int_equal(slot_of(&seen, "JIT_GetRuntimeType"), v->generics ? generics + 4 : UINT64_MAX);
        assert_int_equal(slot_of(&seen, "JIT_VirtualFunctionPointer"),
                         v->generics ? generics + 10 : UINT64_MAX);
        if (!v->generics)
            continue;
        fixed_rows[BEFORE + v->generics + 9].value++; /* another order */
        assert_true(find(SLOTS, 128, &seen));
        assert_int_equal(slot_of(&seen, "JIT_VirtualFunctionPointer"), UINT64_MAX);
    }
}

/* Cut anywhere: what is left of the table must not be read over its end, nor named wrongly. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct seen seen;
        make(&versions[i]);
        for (size_t cut = 0; cut <= SLOTS; cut++) {
            bool found = find(cut, 128, &seen);
            assert_true(found == (cut >= BEFORE + strlen(versions[i].kinds)));
            assert_true(
                (slot_of(&seen, "JIT_Patchpoint") != UINT64_MAX) ==
                (cut >= BEFORE + versions[i].tail + TAIL_CALLS + versions[i].gap + strlen(tail_kinds)));
        }
        for (size_t cut = 0; cut <= 128; cut++) {
            assert_true(find(SLOTS, cut, &seen));
            uint64_t slot = slot_of(&seen, "IL_Throw");
            assert_true(slot == versions[i].throw_slot || slot == UINT64_MAX);
        }
    }
}

static void test_damage(void **state)
{
    (void)state;
    struct seen seen;
    for (size_t i = 0; i < strlen(versions[2].kinds); i++) {
        make(&versions[2]);
        fixed_rows[BEFORE + i].kind = HELPER_SLOT_OTHER;
        assert_false(find(SLOTS, 128, &seen));
    }
    make(&versions[2]);
    fixed_rows[BEFORE + 35].value += 1; /* indexes that do not count up */
    assert_false(find(SLOTS, 128, &seen));
    make(&versions[2]);
    fixed_rows[BEFORE + versions[2].tail].kind = HELPER_SLOT_NONE;
    assert_true(find(SLOTS, 128, &seen));
    assert_int_equal(slot_of(&seen, "JIT_Patchpoint"), UINT64_MAX);
    make(&versions[2]); /* the replaceable part is not where it should be: no name instead of a wrong one */
    replaceable_rows[REPLACEABLE_BASE + fixed_rows[BEFORE + 12].value].value += 16;
    assert_true(find(SLOTS, 128, &seen));
    assert_int_equal(slot_of(&seen, "IL_Throw"), UINT64_MAX);
    assert_int_equal(slot_of(&seen, "RhpNew"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
