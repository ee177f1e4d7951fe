#include "symbolize/fcall_names.h"

#include <stdio.h>
#include <string.h>

enum {
    SECTION_BYTES_MAX = 4 << 20,
    POINTER_BYTES = 8,
    CLASS_POINTERS = 3,
    LIST_MAX = 256,      /* functions of one class */
    LOOKS_MAX = 1 << 15, /* at entries, of whatever is taken for a class */
    ENTRY_BYTES = 24,
    ENTRY_BYTES_SIGNED = 32, /* with a signature */
    FLAG_END = 1,
    FLAG_SIGNATURE = 2,
    FLAGS_LOW = 0xffff, /* above are numbers */
    TYPE_BYTES_MAX = 512,
};

struct fcall_tables {
    struct relocated_pointers *pointers;
    struct buffer section; /* its bytes */
    struct symbol_table *out;
    struct buffer *strings;
    size_t looks;
};

static bool flags_at(const struct fcall_tables *t, uint64_t addr, uint64_t *out)
{
    struct cursor c = cursor_over(buffer_span(&t->section));
    cursor_skip(&c, addr - t->pointers->fixed->addr);
    *out = cursor_u64le(&c);
    return cursor_ok(&c) && (*out & FLAGS_LOW & ~(uint64_t)(FLAG_END | FLAG_SIGNATURE)) == 0;
}

static void add_function(struct fcall_tables *t, const char *type, const char *method,
                         const struct relocated_pointer *function)
{
    uint32_t name = (uint32_t)t->strings->size;
    buffer_format(t->strings, "%s.%s", type, method);
    buffer_u8(t->strings, 0);
    if (!t->strings->failed)
        symbol_table_add(t->out, function->value, function->function_bytes, name, 0);
}

/* Goes through a list of functions; adds them when there is a `type`. False when it is no such list. */
static bool read_list(struct fcall_tables *t, uint64_t at, const char *type)
{
    struct relocated_pointers *p = t->pointers;
    uint64_t flags;
    for (size_t i = 0; i < LIST_MAX && relocated_pointers_fix(p, at) && flags_at(t, at, &flags); i++) {
        if (flags & FLAG_END)
            return true;
        if (++t->looks > LOOKS_MAX)
            return false;
        const struct relocated_pointer *function = relocated_pointer_at(p, at + POINTER_BYTES),
                                       *name = relocated_pointer_at(p, at + 2 * POINTER_BYTES);
        const char *method = name ? rodata_names_at(&p->names, name->value, true) : NULL;
        if (!method || (function && !function->function_bytes))
            return false;
        if (type && function) /* some are found otherwise */
            add_function(t, type, method, function);
        at += flags & FLAG_SIGNATURE ? ENTRY_BYTES_SIGNED : ENTRY_BYTES;
    }
    return false;
}

/* Whether three pointers in a row are those of a class, which is added. */
static bool take_class(struct fcall_tables *t, const struct relocated_pointer *p)
{
    char type[TYPE_BYTES_MAX];
    struct rodata_names *names = &t->pointers->names;
    if (p[1].addr != p[0].addr + POINTER_BYTES || p[2].addr != p[1].addr + POINTER_BYTES ||
        !relocated_pointers_fix(t->pointers, p[2].value))
        return false;
    const char *space = rodata_names_at(names, p[1].value, true);
    int size = space ? snprintf(type, sizeof type, "%s.", space) : 0;
    const char *name = size ? rodata_names_at(names, p[0].value, false) : NULL;
    if (!name || (size_t)size + strlen(name) >= sizeof type)
        return false;
    memcpy(type + size, name, strlen(name) + 1);
    return read_list(t, p[2].value, NULL) && read_list(t, p[2].value, type);
}

void fcall_names_find(struct relocated_pointers *pointers, struct symbol_table *out, struct buffer *strings)
{
    const struct elf_section *section = pointers->fixed;
    struct fcall_tables t = { .pointers = pointers, .out = out, .strings = strings };
    buffer_init(&t.section, SECTION_BYTES_MAX);
    if (source_load(&pointers->elf->file, section->file_off, section->size_bytes, &t.section, NULL))
        for (size_t i = 0; i + CLASS_POINTERS <= pointers->count;)
            i += take_class(&t, &pointers->rows[i]) ? CLASS_POINTERS : 1;
    buffer_done(&t.section);
}
