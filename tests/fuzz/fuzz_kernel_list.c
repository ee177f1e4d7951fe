#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbolize/kernel_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRS = 5, HASH_OFFSET = KERNEL_LIST_HEAD_BYTES - 8, ROWS_MAX = 64 };

static void count(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    (void)start;
    uint8_t *answered = user;
    if (answered[index]++ || strlen(name) > 1024 || strlen(module) > 1024)
        __builtin_trap();
}

static void put_u64le(uint8_t *to, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Hashes that are right, where there is something to hash. */
static void mend(uint8_t *bytes, size_t size)
{
    struct span whole = span_of(bytes, size);
    uint64_t offset = load_u64le(bytes + 24), rows = load_u32le(bytes + 32);
    struct span index = span_part(whole, offset, rows * KERNEL_LIST_ROW_BYTES);
    for (size_t i = 0; index.size && i < rows && i < ROWS_MAX; i++) {
        uint8_t *row = bytes + offset + i * KERNEL_LIST_ROW_BYTES;
        put_u64le(row + 32, kernel_list_hash(span_part(whole, load_u64le(row + 16), load_u64le(row + 24))));
    }
    put_u64le(bytes + HASH_OFFSET, kernel_list_hash_index(span_of(bytes, HASH_OFFSET), index));
}

static int memory_file(const void *bytes, size_t size)
{
    int fd = memfd_create("list", MFD_CLOEXEC);
    if (fd >= 0 && pwrite(fd, bytes, size, 0) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    return fd;
}

/* What a file in the cache may be, of the kernel that runs, which shows the list's own beginning. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addrs[ADDRS] = { 1, 0xffffffff81000110, 0xffffffff81000900, 0xffffffffc0200080,
                                           UINT64_MAX };
    struct kernel_symbols_result result;
    uint8_t answered[ADDRS] = { 0 };
    if (size < KERNEL_LIST_HEAD_BYTES + 64)
        return 0;
    uint8_t *copy = mem_alloc(size, 1);
    memcpy(copy, data, size);
    mend(copy, size);
    const struct kernel_boot boot = { .key = { load_u64le(copy + 8), load_u64le(copy + 16) } };
    int fd = memory_file(copy, size);
    int live_fd = memory_file(copy + KERNEL_LIST_HEAD_BYTES, 64);
    for (size_t from = 0; fd >= 0 && live_fd >= 0 && from < ADDRS; from++) {
        memset(answered, 0, sizeof answered);
        kernel_list_resolve(fd, live_fd, &boot, addrs + from, 1 + from % 2 * (ADDRS - 1 - from), count,
                            answered, &result);
    }
    close(fd);
    close(live_fd);
    free(copy);
    return 0;
}
