#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/kernel_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRS = 4 };

static void count(void *user, size_t index, const char *name, const char *module, uint64_t start)
{
    (void)start;
    uint8_t *answered = user;
    if (answered[index]++ || strlen(name) > 1024 || strlen(module) > 1024)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addrs[ADDRS] = { 1, 0xffffffff81000110, 0xffffffffa0001004, UINT64_MAX };
    struct kernel_symbols_result result;
    uint8_t answered[ADDRS] = { 0 };
    int fd = memfd_create("kallsyms", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    if (pwrite(fd, data, size, 0) == (ssize_t)size)
        kernel_symbols_resolve(fd, addrs, ADDRS, NULL, count, answered, &result, NULL);
    close(fd);
    return 0;
}
