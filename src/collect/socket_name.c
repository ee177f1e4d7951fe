#include "collect/socket_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/target_root.h"
#include "base/units.h"
#include "collect/proc_file.h"
#include "collect/time_namespace.h"

static void add_key(struct socket_keys *keys, uint64_t key)
{
    for (unsigned i = 0; i < keys->count; i++) {
        if (keys->keys[i] == key)
            return;
    }
    keys->keys[keys->count++] = key;
}

void socket_keys_of(pid_t pid, uint32_t ns_pid, uint64_t start_ticks, struct socket_keys *out)
{
    uint64_t namesake_ticks;
    *out = (struct socket_keys){ .ns_pid = ns_pid };
    add_key(out, time_namespace_start_ticks(pid, start_ticks));
    if (ns_pid != (uint32_t)pid && proc_file_start_ticks((pid_t)ns_pid, &namesake_ticks, NULL))
        add_key(out, time_namespace_start_ticks(pid, namesake_ticks));
    add_key(out, 0);
}

bool socket_keys_open(const struct socket_keys *keys, int root_fd, const char *folder, char *out_path,
                      size_t out_size, int *out_fd, struct error *err)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_SOCKET };
    for (unsigned i = 0; i < keys->count; i++) {
        struct error why = { 0 };
        snprintf(out_path, out_size, "%s/dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket", folder,
                 keys->ns_pid, keys->keys[i]);
        if (target_root_open_path(root_fd, out_path, rules, out_fd, &why))
            return true;
        if (i == 0 && err)
            *err = why;
        if (why.os_error != ENOENT)
            return false;
    }
    return false;
}

static bool take_digits(const char **text, uint64_t *out)
{
    char digits[24];
    size_t size = strspn(*text, "0123456789");
    if (size == 0 || size >= sizeof digits)
        return false;
    memcpy(digits, *text, size);
    digits[size] = 0;
    *text += size;
    return units_parse_count(digits, out);
}

bool socket_name_read(const char *name, pid_t *out_pid, uint64_t *out_key)
{
    static const char prefix[] = "dotnet-diagnostic-";
    uint64_t pid, key;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    name += sizeof prefix - 1;
    if (!take_digits(&name, &pid) || *name++ != '-' || !take_digits(&name, &key) ||
        strcmp(name, "-socket") != 0 || pid == 0 || pid > INT32_MAX)
        return false;
    *out_pid = (pid_t)pid;
    *out_key = key;
    return true;
}
