/*
 * Writes a hand-made profile to files, in the format of each one's extension:
 *   export_fixture small|nasty|empty|SAMPLES FILE...
 * For the checks with other programs as readers, and for measuring.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "profile_fixture.h"
#include "render/export_format.h"

static void build(const char *which, struct profile *p)
{
    if (strcmp(which, "small") == 0)
        profile_fixture_small(p);
    else if (strcmp(which, "nasty") == 0)
        profile_fixture_nasty(p);
    else if (strcmp(which, "empty") == 0)
        profile_fixture_empty(p);
    else
        profile_fixture_large(p, strtoul(which, NULL, 10));
}

static bool write_file(const char *path, const struct profile *p, struct error *err)
{
    const struct export_format *format = export_format_for_path(path);
    if (!format)
        return error_set(err, ERROR_USAGE, "no format for '%s'", path);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set(err, ERROR_SYSTEM, "cannot create '%s'", path);
    struct output out;
    output_over_fd(&out, fd);
    uint64_t start = clock_monotonic_ns();
    bool ok = export_profile(format, p, &(struct export_options){ 0 }, &out, err);
    ok = output_close(&out, ok ? err : NULL) && ok;
    double seconds = (double)(clock_monotonic_ns() - start) / 1e9;
    fprintf(stderr, "%-20s %lld bytes in %.3f s\n", format->name, (long long)lseek(fd, 0, SEEK_CUR), seconds);
    return ok;
}

int main(int argc, char **argv)
{
    struct profile p;
    struct error err = { 0 };
    if (argc < 2)
        return 2;
    build(argv[1], &p);
    for (int i = 2; i < argc; i++) {
        if (!write_file(argv[i], &p, &err)) {
            fprintf(stderr, "error: %s\n", err.what);
            return 1;
        }
    }
    profile_fixture_done(&p);
    return 0;
}
