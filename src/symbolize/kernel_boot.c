#include "symbolize/kernel_boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"

enum { TEXT_BYTES_MAX = 1 << 20, READ_BYTES = 4096, BOOT_ID_BYTES = 36, FIELDS = 6 };

/* Cuts *rest at the first `at`; without one all of it is taken. */
static struct span take_until(struct span *rest, char at)
{
    const uint8_t *end = rest->size ? memchr(rest->data, at, rest->size) : NULL;
    struct span taken = span_of(rest->data, end ? (size_t)(end - rest->data) : rest->size);
    size_t passed = taken.size + (end ? 1 : 0);
    *rest = passed == rest->size ? (struct span){ 0 } : span_of(rest->data + passed, rest->size - passed);
    return taken;
}

static bool read_number(struct span text, int base, uint64_t *out)
{
    char copy[32], *end;
    if (text.size == 0 || text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    errno = 0;
    *out = strtoull(copy, &end, base);
    return errno == 0 && *end == 0;
}

static uint64_t module_inode(int sys_modules_fd, const char *name)
{
    struct stat st;
    return sys_modules_fd >= 0 && fstatat(sys_modules_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino
                                                                                               : 0;
}

/* "nf_tables 356352 583 nft_ct, Live 0xffffffffc0a3b000 (E)": name, size, users, whose, state, address. */
static bool read_module(struct span line, struct kernel_module *out)
{
    struct span fields[FIELDS];
    uint64_t size;
    for (unsigned i = 0; i < FIELDS; i++)
        fields[i] = take_until(&line, ' ');
    if (fields[0].size == 0 || fields[0].size >= sizeof out->name ||
        memchr(fields[0].data, '/', fields[0].size) || !read_number(fields[1], 10, &size) ||
        !span_equals(fields[4], span_of("Live", 4)) || !read_number(fields[5], 16, &out->start) ||
        size > UINT64_MAX - out->start)
        return false;
    memcpy(out->name, fields[0].data, fields[0].size);
    out->name[fields[0].size] = 0;
    out->end = out->start + size;
    return true;
}

/* All but how often it is used and by whom. */
static void add_module(struct kernel_boot *boot, const struct kernel_module *module, int sys_modules_fd,
                       struct buffer *stable)
{
    boot->modules =
        mem_grow(boot->modules, &boot->module_capacity, boot->module_count + 1, sizeof *boot->modules);
    boot->modules[boot->module_count++] = *module;
    buffer_string(stable, module->name);
    buffer_u8(stable, 0);
    buffer_u64le(stable, module->start);
    buffer_u64le(stable, module->end);
    buffer_u64le(stable, module_inode(sys_modules_fd, module->name));
}

bool kernel_boot_parse(struct span boot_id, struct span modules, int sys_modules_fd, struct kernel_boot *out)
{
    struct kernel_boot boot = { 0 };
    struct buffer stable;
    bool ok = boot_id.size >= BOOT_ID_BYTES;
    buffer_init(&stable, 2 * (size_t)TEXT_BYTES_MAX);
    buffer_append(&stable, boot_id.data, boot_id.size);
    while (ok && modules.size) {
        struct kernel_module module = { 0 };
        ok = read_module(take_until(&modules, '\n'), &module);
        if (ok)
            add_module(&boot, &module, sys_modules_fd, &stable);
    }
    ok = ok && !stable.failed;
    if (ok) {
        XXH128_hash_t hash = XXH3_128bits(stable.data, stable.size);
        boot.key[0] = hash.low64;
        boot.key[1] = hash.high64;
        *out = boot;
    } else {
        kernel_boot_done(&boot);
    }
    buffer_done(&stable);
    return ok;
}

/* A file of /proc, whose size nobody tells. */
static bool read_text(const char *path, struct buffer *out)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (;;) {
        uint8_t *room = buffer_reserve(out, READ_BYTES);
        ssize_t got = room ? read(fd, room, READ_BYTES) : -1;
        if (got < 0 && room && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        out->size += (size_t)got;
    }
}

bool kernel_boot_read(struct kernel_boot *out)
{
    struct buffer boot_id, modules;
    AUTO_FD int sys_modules_fd = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);
    buffer_init(&boot_id, TEXT_BYTES_MAX);
    buffer_init(&modules, TEXT_BYTES_MAX);
    bool ok = read_text("/proc/sys/kernel/random/boot_id", &boot_id) &&
              (read_text("/proc/modules", &modules) || (errno == ENOENT && !modules.failed)) &&
              kernel_boot_parse(buffer_span(&boot_id), buffer_span(&modules), sys_modules_fd, out);
    buffer_done(&boot_id);
    buffer_done(&modules);
    return ok;
}

void kernel_boot_done(struct kernel_boot *boot)
{
    free(boot->modules);
    *boot = (struct kernel_boot){ 0 };
}
