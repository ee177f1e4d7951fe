#include "unwind/jit_unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    HEADER_AT = -8, /* of the word that points to it, from the start of the code */
    COUNT_AT = 0x20,
    FUNCTIONS_AT = 0x24,
    CODE_BYTES_MAX = 256 << 20,
    GUESSED_FUNCTIONS = 4,
    GUESSED_INFO_BYTES = 64,
};

struct jit_function {
    uint32_t begin, end; /* from the method's start */
    uint32_t info_at, info_bytes;
};

struct jit_unwind {
    uint64_t start;
    const struct unwind_format *format;
    uint32_t count;
    size_t bytes; /* of all of this */
    const uint8_t *infos;
    struct jit_function functions[];
};

/* The function table, with the number of functions; a first read guesses how many there are. */
static uint8_t *read_functions(const struct unwind_format *format, unwind_read_fn *read, void *user,
                               uint64_t header, uint32_t *out_count)
{
    uint8_t guess[FUNCTIONS_AT - COUNT_AT + GUESSED_FUNCTIONS * UNWIND_FORMAT_ENTRY_BYTES_MAX];
    size_t got = FUNCTIONS_AT - COUNT_AT + GUESSED_FUNCTIONS * format->entry_bytes;
    if (!read(user, header + COUNT_AT, guess, got)) {
        got = FUNCTIONS_AT - COUNT_AT + format->entry_bytes;
        if (!read(user, header + COUNT_AT, guess, got))
            return NULL;
    }
    uint32_t count = load_u32le(guess);
    if (count == 0 || count > JIT_FUNCTIONS_MAX)
        return NULL;
    size_t size = (size_t)count * format->entry_bytes, have = got - (FUNCTIONS_AT - COUNT_AT);
    uint8_t *table = mem_alloc(count, format->entry_bytes);
    memcpy(table, guess + (FUNCTIONS_AT - COUNT_AT), size < have ? size : have);
    if (size > have && !read(user, header + FUNCTIONS_AT, table, size)) {
        free(table);
        return NULL;
    }
    *out_count = count;
    return table;
}

/* An info, whose length it tells itself; most are short, so one read mostly does. */
static uint32_t read_info(const struct unwind_format *format, unwind_read_fn *read, void *user, uint64_t addr,
                          uint8_t *into)
{
    uint32_t got = GUESSED_INFO_BYTES;
    if (!read(user, addr, into, got)) {
        got = format->header_bytes;
        if (!read(user, addr, into, got))
            return 0;
    }
    uint32_t size = format->info_bytes(into);
    if (size > got && !read(user, addr, into, size))
        return 0;
    return size;
}

/* One function, by its entry in the table, whose numbers count from `base`; `info` has room for the longest.
 */
static bool read_function(const struct unwind_format *format, unwind_read_fn *read, void *user, uint64_t base,
                          const uint8_t *entry, uint8_t *info, struct jit_function *out)
{
    uint32_t info_at = format->info_at(entry);
    struct frame_rule rule;
    out->info_bytes = info_at ? read_info(format, read, user, base + info_at, info) : 0;
    if (!out->info_bytes || !format->rule(span_of(info, out->info_bytes), UINT32_MAX, &rule))
        return false;
    out->begin = load_u32le(entry);
    out->end = format->function_end(entry, info);
    return true;
}

/* The first function starts where the method does. */
static struct jit_unwind *build(const struct unwind_format *format, unwind_read_fn *read, void *user,
                                uint64_t start, const uint8_t *table, uint32_t count)
{
    struct jit_unwind *method = mem_alloc(1, sizeof *method + count * sizeof *method->functions);
    uint8_t *infos = NULL, info[UNWIND_FORMAT_INFO_BYTES_MAX];
    size_t capacity = 0, used = 0;
    uint32_t first = load_u32le(table), end = 0;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        struct jit_function f;
        ok = read_function(format, read, user, start - first, table + (size_t)i * format->entry_bytes, info,
                           &f);
        if (!ok)
            break;
        f.begin -= first;
        f.end -= first;
        f.info_at = (uint32_t)used;
        ok = f.begin >= end && f.end > f.begin && f.end <= CODE_BYTES_MAX;
        if (!ok)
            break;
        infos = mem_grow(infos, &capacity, used + f.info_bytes, 1);
        memcpy(infos + used, info, f.info_bytes);
        used += f.info_bytes;
        end = f.end;
        method->functions[i] = f;
    }
    if (ok) { /* one piece, so that free() is enough */
        size_t head = sizeof *method + count * sizeof *method->functions;
        method = mem_resize(method, head + used, 1);
        if (infos)
            memcpy((uint8_t *)method + head, infos, used);
        method->infos = (uint8_t *)method + head;
        method->start = start;
        method->format = format;
        method->count = count;
        method->bytes = head + used;
    } else {
        free(method);
        method = NULL;
    }
    free(infos);
    return method;
}

bool jit_unwind_read(const struct unwind_format *format, unwind_read_fn *read, void *user, uint64_t start,
                     struct jit_unwind **out, struct error *err)
{
    uint8_t word[8];
    uint32_t count;
    uint8_t *table = NULL;
    if (read(user, start + (uint64_t)(int64_t)HEADER_AT, word, sizeof word))
        table = read_functions(format, read, user, load_u64le(word), &count);
    if (!table)
        return error_set(err, ERROR_INPUT, "no code header before %#llx", (unsigned long long)start);
    struct jit_unwind *method = build(format, read, user, start, table, count);
    free(table);
    if (!method)
        return error_set(err, ERROR_INPUT, "a damaged code header before %#llx", (unsigned long long)start);
    *out = method;
    return true;
}

bool jit_unwind_find(const struct jit_unwind *method, uint64_t addr, struct unwind_function *out)
{
    uint64_t off = addr - method->start;
    for (uint32_t i = 0; i < method->count; i++) {
        const struct jit_function *f = &method->functions[i];
        if (off < f->begin || off >= f->end)
            continue;
        *out = (struct unwind_function){ method->start + f->begin,
                                         method->start + f->end,
                                         { method->infos + f->info_at, f->info_bytes },
                                         method->format };
        return true;
    }
    return false;
}

size_t jit_unwind_bytes(const struct jit_unwind *method)
{
    return method->bytes;
}
