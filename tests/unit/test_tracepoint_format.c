#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/tracepoint_format.h"

static const char NEWTASK[] = "name: task_newtask\n"
                              "ID: 205\n"
                              "format:\n"
                              "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                              "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
                              "\n"
                              "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
                              "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
                              "\tfield:const char *name;\toffset:28;\tsize:8;\tsigned:0;\n"
                              "\tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n"
                              "\n"
                              "print fmt: \"pid=%d\", REC->pid\n";

static struct span text_of(const char *text)
{
    return span_of(text, strlen(text));
}

static void assert_field(const char *name, uint16_t offset, uint16_t size)
{
    struct tracepoint_field field = { 0 };
    assert_true(tracepoint_format_field(text_of(NEWTASK), name, &field));
    assert_int_equal(field.offset, offset);
    assert_int_equal(field.size, size);
}

static void test_fields(void **state)
{
    (void)state;
    struct tracepoint_field field;
    uint32_t id = 0;
    assert_true(tracepoint_format_id(text_of(NEWTASK), &id));
    assert_int_equal(id, 205);
    assert_field("pid", 8, 4);
    assert_field("comm", 12, 16);
    assert_field("name", 28, 8);
    assert_field("clone_flags", 32, 8);
    assert_false(tracepoint_format_field(text_of(NEWTASK), "flags", &field));
    assert_false(tracepoint_format_field(text_of(NEWTASK), "", &field));
}

static void test_places_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "field:pid_t pid;\toffset:;\tsize:4;\n",
        "field:pid_t pid;\toffset:8;\n",
        "field:pid_t pid;\tsize:8;\n",
        "field:pid_t pid;\toffset:65530;\tsize:8;\n",
        "field:pid_t pid;\toffset:-8;\tsize:4;\n",
        "field:pid_t pid\toffset:8\tsize:4\n",
        "print fmt: field:pid_t pid;\toffset:8;\n",
        "field:pid_t pid;\toffset:70000;\tsize:4;\n",
    };
    struct tracepoint_field field;
    uint32_t id;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (tracepoint_format_field(text_of(texts[i]), "pid", &field))
            fail_msg("%s", texts[i]);
    assert_false(tracepoint_format_id(text_of("ID: none\n"), &id));
    assert_false(tracepoint_format_id(text_of(""), &id));
}

/* Cut at every byte it either says the same, or nothing. */
static void test_cut(void **state)
{
    (void)state;
    struct tracepoint_field field;
    uint32_t id;
    for (size_t size = 0; size < sizeof NEWTASK - 1; size++) {
        struct span cut = span_of(NEWTASK, size);
        if (tracepoint_format_field(cut, "comm", &field))
            assert_int_equal(field.offset, 12);
        if (tracepoint_format_id(cut, &id))
            assert_true(id == 2 || id == 20 || id == 205);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_places_that_make_no_sense),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
