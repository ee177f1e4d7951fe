/* aot_methods FILE: the methods of a Native AOT program, a line each: where it begins, in hex, its size and
 * its name. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/own.h"
#include "symbolize/aot_names.h"

int main(int argc, char **argv)
{
    AUTO_FD int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    struct source file;
    struct elf e;
    struct error err = { 0 };
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, &err) || !elf_open(&file, &e, &err)) {
        fprintf(stderr, "usage: aot_methods FILE (%s)\n", err.what);
        return 2;
    }
    struct symbol_table table;
    struct buffer strings;
    symbol_table_init(&table, elf_base_addr(&e), false);
    buffer_init(&strings, 256 << 20);
    aot_names_find(&e, &table, &strings);
    for (size_t i = 0; i < table.count; i++)
        printf("%" PRIx64 " %u %s\n", table.base + table.rows[i].start, table.rows[i].size_bytes,
               (const char *)strings.data + table.rows[i].name);
    buffer_done(&strings);
    symbol_table_done(&table);
    elf_done(&e);
    return 0;
}
