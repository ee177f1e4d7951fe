#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/core_name.h"

static const struct {
    const char *executable, *command /* blanks stand for NULs */, *wanted;
} cases[] = {
    { "dotnet", "dotnet /srv/shop/shop.dll --urls x", "shop" },
    { "dotnet", "dotnet exec --depsfile a.json bin/Zoo.Cpu.dll", "Zoo.Cpu" },
    { "dotnet", "dotnet build", "dotnet" },
    { "dotnet", "dotnet", "dotnet" },
    { "dotnet", "", "dotnet" },
    { "shop", "/srv/shop/shop --urls x", "shop" },
    { "shop", "shop other.dll", "shop" },
    { "", "", "" },
    { "", " ", "" },
    { "A.Rather.Long.N", "/srv/A.Rather.Long.Name --x", "A.Rather.Long.Name" },
    { "A.Rather.Long.N", "sh -c A.Rather.Long.Name", "A.Rather.Long.N" },
    { "exactly.fifteen", "./exactly.fifteen x", "exactly.fifteen" },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t end = 0; end < 2; end++) { /* with and without a NUL at the end */
            AUTO_FREE char *command = strdup(cases[i].command);
            size_t size = strlen(command);
            for (char *at = command; *at; at++)
                *at = *at == ' ' ? '\0' : *at;
            AUTO_FREE char *name =
                core_name_new(cases[i].executable, span_of(command, size ? size + end : 0));
            assert_string_equal(name, cases[i].wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
