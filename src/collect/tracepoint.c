#include "collect/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/proc_file.h"

enum { PATH_BYTES = 160 };

/* The root of a tracefs that nobody else sees, or -1 with errno. Not every C library has these calls. */
static int tracefs_mount(void)
{
    AUTO_FD int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        return -1;
    return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* A mounted one that does not let us in would not do so elsewhere. */
static int tracefs_open(void)
{
    static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/events", folders[i]);
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 || errno == EACCES)
            return fd;
    }
    AUTO_FD int mount = tracefs_mount();
    return mount < 0 ? -1 : openat(mount, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool tracefs_refused(int os_error, struct error *err)
{
    if (os_error != EACCES && os_error != EPERM) {
        error_set(err, ERROR_UNSUPPORTED, "the kernel shows no tracepoints: tracefs: %s", strerror(os_error));
        return error_hint(err, "use a kernel built with CONFIG_TRACING");
    }
    error_set(err, ERROR_PERMISSION,
              os_error == EACCES ? "tracefs can only be read by root"
                                 : "tracefs is not mounted, and CAP_SYS_ADMIN is missing");
    return error_hint(err, geteuid() ? "run with sudo"
                                     : "in a container add the capability (docker run --cap-add SYS_ADMIN)");
}

bool tracepoint_read_format(const char *name, struct buffer *out, struct error *err)
{
    char path[PATH_BYTES];
    AUTO_FD int events = tracefs_open();
    if (events < 0)
        return tracefs_refused(errno, err);
    snprintf(path, sizeof path, "%s/format", name);
    struct error why = { 0 };
    if (proc_file_read_at(events, path, out, &why))
        return true;
    if (why.kind == ERROR_PERMISSION)
        return tracefs_refused(EACCES, err);
    error_set(err, ERROR_UNSUPPORTED, "the kernel has no tracepoint %s", name);
    return error_hint(err, "use a kernel built with CONFIG_TRACING");
}
