#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/type_name.h"

enum { SHOWN_MAX = 4096 };

static const struct {
    const char *raw, *shown;
} cases[] = {
    { "System.String", "string" },
    { "System.Int32[,]", "int[,]" },
    { "System.Byte[][]", "byte[][]" },
    { "System.ValueTuple`2[System.Int32,System.String][]", "(int,string)[]" },
    { "System.Nullable`1[System.Int32]", "int?" },
    { "System.Strings", "System.Strings" },
    { "Order", "Order" },
    { "App.Outer+Inner", "App.Outer.Inner" },
    { "System.Func`1[System.Int32]", "System.Func<int>" },
    { "System.Collections.Generic.List`1[App.Order]", "System.Collections.Generic.List<Order>" },
    { "System.Collections.Generic.Dictionary`2+Entry[System.Int32,System.__Canon][]",
      "System.Collections.Generic.Dictionary<int,_>.Entry[]" },
    { "System.Collections.Generic.KeyValuePair`2[System.Nullable`1[System.Int32],System.String][]",
      "System.Collections.Generic.KeyValuePair<int?,string>[]" },
    /* nested, told alone: the arguments are those of the type around it */
    { "Entry[System.Int32,System.String][]", "Entry<int,string>[]" },
    { "MemberInfoCache`1[System.Reflection.RuntimeConstructorInfo]",
      "MemberInfoCache<RuntimeConstructorInfo>" },
    { "Slot`1[System.Int32,System.String]", "Slot<int,string>" },
    /* what the compiler named */
    { "<>f__AnonymousType0`2[System.Int32,System.String]", "AnonymousType0<int,string>" },
    { "<>c__DisplayClass33_0", "DisplayClass33_0" },
    { "<>c", "<>c" },
    { "<Sequence>d__11", "<Sequence>d__11" },
    { "AsyncStateMachineBox`1[System.Threading.Tasks.VoidTaskResult,App.Program+<RunAsync>d__9]",
      "AsyncStateMachineBox<VoidTaskResult,Program.RunAsync>" },
    /* not of the runtime's form */
    { "", "" },
    { "A[", "A[" },
    { "A`1[", "A`1[" },
};

static void test_full(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buffer_clear(&out);
        type_name_show_full(span_of(cases[i].raw, strlen(cases[i].raw)), &out);
        buffer_u8(&out, 0);
        assert_string_equal(out.data, cases[i].shown);
    }
    buffer_done(&out);
}

static void test_full_cut(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t size = 0; size < strlen(cases[i].raw); size++) {
            AUTO_FREE char *cut = strndup(cases[i].raw, size); /* so that a read behind the cut is seen */
            buffer_clear(&out);
            type_name_show_full(span_of(cut, size), &out);
            assert_false(out.failed);
        }
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_full_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
