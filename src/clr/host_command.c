#include "clr/host_command.h"

#include <string.h>

#include "base/own.h"
#include "clr/module_name.h"

static bool next_argument(struct cursor *c, struct span *out)
{
    if (!cursor_left(c))
        return false;
    struct cursor ahead = *c;
    *out = cursor_zstring(&ahead);
    if (!cursor_ok(&ahead)) {
        *out = cursor_bytes(c, cursor_left(c));
        return true;
    }
    *c = ahead;
    return true;
}

static bool is_text(struct span a, const char *text)
{
    return span_equals(a, span_of(text, strlen(text)));
}

static bool takes_value(struct span option)
{
    static const char *const options[] = {
        "--additionalprobingpath",
        "--additional-deps",
        "--depsfile",
        "--fx-version",
        "--roll-forward",
        "--runtimeconfig",
        "--roll-forward-on-no-candidate-fx",
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (is_text(option, options[i]))
            return true;
    }
    return false;
}

struct host_command host_command_read(struct span cmdline)
{
    struct host_command command = { 0 };
    struct cursor c = cursor_over(cmdline);
    struct span arg;
    next_argument(&c, &arg);
    while (next_argument(&c, &arg)) {
        if (is_text(arg, "exec"))
            continue;
        if (arg.size >= 2 && arg.data[0] == '-') {
            if (takes_value(arg))
                next_argument(&c, &arg);
            continue;
        }
        if (module_path_is_assembly(arg))
            command.assembly_path = arg;
        else
            command.sdk_command = arg.size > 0;
        break;
    }
    return command;
}

bool host_path_in_sdk(struct span path)
{
    static const char folder[] = "/sdk/";
    const uint8_t *at = path.size ? memmem(path.data, path.size, folder, sizeof folder - 1) : NULL;
    size_t behind = at ? (size_t)(at - path.data) + sizeof folder - 1 : path.size;
    return behind < path.size && path.data[behind] >= '0' && path.data[behind] <= '9';
}
