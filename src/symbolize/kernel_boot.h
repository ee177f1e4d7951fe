/*
 * kernel_boot: what tells one state of the running kernel's symbols from another.
 *
 * That is the boot, and which modules are loaded where. Programs of bpf, trampolines and the like come and go
 * without a trace here. Read from /proc/sys/kernel/random/boot_id and /proc/modules, specified in proc(5); a
 * kernel without modules lacks the second.
 */
#ifndef CLRPERF_SYMBOLIZE_KERNEL_BOOT_H
#define CLRPERF_SYMBOLIZE_KERNEL_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct kernel_module {
    char name[64];
    uint64_t start, end; /* its code is within; [start, end) may have what is not the module's */
};

struct kernel_boot {
    uint64_t key[2];               /* the same only for the same state */
    struct kernel_module *modules; /* owned */
    size_t module_count, module_capacity;
};

/* False while a module comes or goes, or without /proc. */
bool kernel_boot_read(struct kernel_boot *out);
/*
 * The same, of texts. `sys_modules_fd` is /sys/module, which has a new inode for a module that was loaded
 * again; or -1.
 */
bool kernel_boot_parse(struct span boot_id, struct span modules, int sys_modules_fd, struct kernel_boot *out);
void kernel_boot_done(struct kernel_boot *boot);

#endif
