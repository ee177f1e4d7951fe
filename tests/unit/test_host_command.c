#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/host_command.h"
#include "clr/module_name.h"

#define LINE(text)                                                                                           \
    {                                                                                                        \
        text, sizeof(text) - 1                                                                               \
    }

static const struct {
    struct {
        const char *text;
        size_t size;
    } line;
    const char *assembly; /* "" : none */
    bool sdk;
} cases[] = {
    { LINE("dotnet\0/app/Shop.Api.dll\0--urls\0x.dll\0"), "/app/Shop.Api.dll", false },
    { LINE("dotnet\0exec\0--depsfile\0a.dll\0--roll-forward\0Major\0App.DLL\0"), "App.DLL", false },
    { LINE("/usr/bin/dotnet\0--fx-version\0"
           "8.0.0\0app.exe\0"),
      "app.exe", false },
    { LINE("dotnet\0--unknown\0app.dll"), "app.dll", false },
    { LINE("dotnet\0run\0--project\0x.dll\0"), "", true },
    { LINE("dotnet\0build\0"), "", true },
    { LINE("dotnet\0--info\0"), "", false },
    { LINE("dotnet\0--depsfile\0"), "", false },
    { LINE("dotnet\0"), "", false },
    { LINE("dotnet"), "", false },
    { LINE(""), "", false },
    { LINE("dotnet\0.dll\0"), "", true },
};

static void test_command(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct host_command command = host_command_read(span_of(cases[i].line.text, cases[i].line.size));
        struct span wanted = span_of(cases[i].assembly, strlen(cases[i].assembly));
        if (!span_equals(command.assembly_path, wanted) || command.sdk_command != cases[i].sdk)
            fail_msg("case %zu: '%.*s'", i, (int)command.assembly_path.size,
                     (const char *)command.assembly_path.data);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name;
        bool in_sdk;
    } names[] = {
        { "/app/Shop.Api.dll", "Shop.Api", false },
        { "Shop.Api", "Shop.Api", false },
        { "/usr/share/dotnet/sdk/10.0.401/MSBuild.dll", "MSBuild", true },
        { "/home/x/sdk/app.exe", "app", false },
        { "/x/sdk/", "", false },
        { "C:\\app\\App.DLL", "App", false },
        { "/app/.dll", ".dll", false },
        { "", "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct span path = span_of(names[i].path, strlen(names[i].path));
        assert_true(span_equals(module_simple_name(path), span_of(names[i].name, strlen(names[i].name))));
        assert_int_equal(host_path_in_sdk(path), names[i].in_sdk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_command), cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
