#include "symbolize/fcall_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbolize/rodata_names.h"

enum {
    RELATIVE_X86_64 = 8,
    RELATIVE_AARCH64 = 1027,
    SECTION_BYTES_MAX = 4 << 20,
    POINTER_BYTES = 8,
    CLASS_POINTERS = 3,
    LIST_MAX = 256, /* functions of one class */
    ENTRY_BYTES = 24,
    ENTRY_BYTES_SIGNED = 32, /* with a signature */
    FLAG_END = 1,
    FLAG_SIGNATURE = 2,
    FLAGS_LOW = 0xffff, /* above are numbers */
    PATH_MAX_BYTES = 512,
};

/* What the loader writes at a place. */
struct pointer {
    uint64_t addr, value;
};

struct fcall_tables {
    const struct elf *elf;
    const struct eh_ranges *functions;
    const struct elf_section *section; /* .data.rel.ro */
    struct buffer bytes;               /* of it */
    struct pointer *pointers;          /* in it, by address */
    size_t count, capacity;
    struct rodata_names names;
    struct symbol_table *out;
    struct buffer *strings;
};

static bool inside(const struct elf_section *section, uint64_t addr)
{
    return addr >= section->addr && addr - section->addr < section->size_bytes;
}

static bool take_relocation(void *user, const struct elf_relocation *r)
{
    struct fcall_tables *t = user;
    uint32_t relative = t->elf->machine == ELF_X86_64 ? RELATIVE_X86_64 : RELATIVE_AARCH64;
    if (r->type != relative || !inside(t->section, r->addr))
        return true;
    t->pointers = mem_grow(t->pointers, &t->capacity, t->count + 1, sizeof *t->pointers);
    t->pointers[t->count++] = (struct pointer){ r->addr, r->addend };
    return true;
}

static int pointer_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct pointer *)a)->addr, y = ((const struct pointer *)b)->addr;
    return (x > y) - (x < y);
}

/* 0: there is none. */
static uint64_t pointer_at(const struct fcall_tables *t, uint64_t addr)
{
    struct pointer key = { .addr = addr };
    const struct pointer *found =
        t->count ? bsearch(&key, t->pointers, t->count, sizeof key, pointer_compare) : NULL;
    return found ? found->value : 0;
}

static bool flags_at(const struct fcall_tables *t, uint64_t addr, uint64_t *out)
{
    struct cursor c = cursor_over(buffer_span(&t->bytes));
    cursor_skip(&c, addr - t->section->addr);
    *out = cursor_u64le(&c);
    return cursor_ok(&c) && (*out & FLAGS_LOW & ~(uint64_t)(FLAG_END | FLAG_SIGNATURE)) == 0;
}

static bool is_function(const struct fcall_tables *t, uint64_t addr)
{
    uint64_t start = 0, size_bytes = 0;
    return eh_ranges_find(t->functions, addr, &start, &size_bytes) && start == addr;
}

static void add_function(struct fcall_tables *t, const char *type, const char *method, uint64_t addr)
{
    uint64_t start = 0, size_bytes = 0;
    uint32_t name = (uint32_t)t->strings->size;
    buffer_format(t->strings, "%s.%s", type, method);
    buffer_u8(t->strings, 0);
    if (!t->strings->failed && eh_ranges_find(t->functions, addr, &start, &size_bytes))
        symbol_table_add(t->out, start, size_bytes, name, 0);
}

/* Goes through a list of functions; adds them when there is a `type`. False when it is no such list. */
static bool read_list(struct fcall_tables *t, uint64_t at, const char *type)
{
    uint64_t flags;
    for (size_t i = 0; i < LIST_MAX && inside(t->section, at) && flags_at(t, at, &flags); i++) {
        if (flags & FLAG_END)
            return true;
        uint64_t function = pointer_at(t, at + POINTER_BYTES);
        const char *method = rodata_names_at(&t->names, pointer_at(t, at + 2 * POINTER_BYTES), true);
        if (!method || (function && !is_function(t, function)))
            return false;
        if (type && function) /* some are found otherwise */
            add_function(t, type, method, function);
        at += flags & FLAG_SIGNATURE ? ENTRY_BYTES_SIGNED : ENTRY_BYTES;
    }
    return false;
}

/* Whether three pointers in a row are those of a class, which is added. */
static bool take_class(struct fcall_tables *t, const struct pointer *p)
{
    char type[PATH_MAX_BYTES];
    if (p[1].addr != p[0].addr + POINTER_BYTES || p[2].addr != p[1].addr + POINTER_BYTES ||
        !inside(t->section, p[2].value))
        return false;
    const char *space = rodata_names_at(&t->names, p[1].value, true);
    int size = space ? snprintf(type, sizeof type, "%s.", space) : 0;
    const char *name = size ? rodata_names_at(&t->names, p[0].value, false) : NULL;
    if (!name || (size_t)size + strlen(name) >= sizeof type)
        return false;
    memcpy(type + size, name, strlen(name) + 1);
    return read_list(t, p[2].value, NULL) && read_list(t, p[2].value, type);
}

static void take_classes(struct fcall_tables *t)
{
    if (t->count)
        qsort(t->pointers, t->count, sizeof *t->pointers, pointer_compare);
    for (size_t i = 0; i + CLASS_POINTERS <= t->count;)
        i += take_class(t, &t->pointers[i]) ? CLASS_POINTERS : 1;
}

static bool read_pointers(struct fcall_tables *t, const struct elf_section *relocations, struct error *err)
{
    struct buffer unpacked;
    struct source table;
    buffer_init(&unpacked, 64 << 20);
    bool ok = source_load(&t->elf->file, t->section->file_off, t->section->size_bytes, &t->bytes, err) &&
              elf_section_source(t->elf, relocations, &unpacked, &table, err) &&
              elf_relocations(&table, take_relocation, t, err);
    buffer_done(&unpacked);
    return ok;
}

bool fcall_names_read(const struct elf *e, const struct eh_ranges *functions, struct symbol_table *out,
                      struct buffer *strings, struct error *err)
{
    const struct elf_section *relocations = elf_section_named(e, ".rela.dyn");
    struct fcall_tables t = { .elf = e, .functions = functions, .out = out, .strings = strings };
    t.section = elf_section_named(e, ".data.rel.ro");
    if (!relocations || !t.section || !rodata_names_open(e, &t.names))
        return error_set(err, ERROR_INPUT, "no relocated tables of names");
    buffer_init(&t.bytes, SECTION_BYTES_MAX);
    bool ok = read_pointers(&t, relocations, err);
    if (ok)
        take_classes(&t);
    free(t.pointers);
    buffer_done(&t.bytes);
    rodata_names_done(&t.names);
    return ok;
}
