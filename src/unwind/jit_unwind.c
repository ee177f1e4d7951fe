#include "unwind/jit_unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/unwind_info.h"

enum {
    HEADER_AT = -8, /* of the word that points to it, from the start of the code */
    COUNT_AT = 0x20,
    FUNCTIONS_AT = 0x24,
    FUNCTION_BYTES = 12, /* u32 begin, u32 end, u32 unwind info, from one base */
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
    uint32_t count;
    size_t bytes; /* of all of this */
    const uint8_t *infos;
    struct jit_function functions[];
};

/* The function table, with the number of functions; a first read guesses how many there are. */
static uint8_t *read_functions(unwind_read_fn *read, void *user, uint64_t header, uint32_t *out_count)
{
    uint8_t guess[FUNCTIONS_AT - COUNT_AT + GUESSED_FUNCTIONS * FUNCTION_BYTES];
    size_t got = sizeof guess;
    if (!read(user, header + COUNT_AT, guess, got)) {
        got = FUNCTIONS_AT - COUNT_AT + FUNCTION_BYTES;
        if (!read(user, header + COUNT_AT, guess, got))
            return NULL;
    }
    uint32_t count = load_u32le(guess);
    if (count == 0 || count > JIT_FUNCTIONS_MAX)
        return NULL;
    size_t size = (size_t)count * FUNCTION_BYTES, have = got - (FUNCTIONS_AT - COUNT_AT);
    uint8_t *table = mem_alloc(count, FUNCTION_BYTES);
    memcpy(table, guess + (FUNCTIONS_AT - COUNT_AT), size < have ? size : have);
    if (size > have && !read(user, header + FUNCTIONS_AT, table, size)) {
        free(table);
        return NULL;
    }
    *out_count = count;
    return table;
}

/* An UNWIND_INFO, whose length it tells itself; most are short, so one read mostly does. */
static uint32_t read_info(unwind_read_fn *read, void *user, uint64_t addr,
                          uint8_t into[UNWIND_INFO_BYTES_MAX])
{
    uint32_t got = GUESSED_INFO_BYTES;
    if (!read(user, addr, into, got)) {
        got = UNWIND_INFO_HEADER_BYTES;
        if (!read(user, addr, into, got))
            return 0;
    }
    uint32_t size = unwind_info_bytes(into);
    if (size > got && !read(user, addr, into, size))
        return 0;
    return size;
}

/* `base` is what the table's numbers count from; the first function starts where the method does. */
static struct jit_unwind *build(unwind_read_fn *read, void *user, uint64_t start, const uint8_t *table,
                                uint32_t count)
{
    struct jit_unwind *method = mem_alloc(1, sizeof *method + count * sizeof *method->functions);
    uint8_t *infos = NULL;
    size_t capacity = 0, used = 0;
    uint32_t first = load_u32le(table), end = 0;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        const uint8_t *words = table + (size_t)i * FUNCTION_BYTES;
        struct jit_function f = { load_u32le(words) - first, load_u32le(words + 4) - first, (uint32_t)used,
                                  0 };
        uint8_t info[UNWIND_INFO_BYTES_MAX];
        ok = f.begin >= end && f.end > f.begin && f.end <= CODE_BYTES_MAX;
        f.info_bytes = ok ? read_info(read, user, start - first + load_u32le(words + 8), info) : 0;
        struct frame_rule rule;
        ok = f.info_bytes && unwind_info_rule(span_of(info, f.info_bytes), UINT32_MAX, &rule);
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
        method->count = count;
        method->bytes = head + used;
    } else {
        free(method);
        method = NULL;
    }
    free(infos);
    return method;
}

bool jit_unwind_read(unwind_read_fn *read, void *user, uint64_t start, struct jit_unwind **out,
                     struct error *err)
{
    uint8_t word[8];
    uint32_t count;
    uint8_t *table = NULL;
    if (read(user, start + (uint64_t)(int64_t)HEADER_AT, word, sizeof word))
        table = read_functions(read, user, load_u64le(word), &count);
    if (!table)
        return error_set(err, ERROR_INPUT, "no code header before %#llx", (unsigned long long)start);
    struct jit_unwind *method = build(read, user, start, table, count);
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
                                         { method->infos + f->info_at, f->info_bytes } };
        return true;
    }
    return false;
}

size_t jit_unwind_bytes(const struct jit_unwind *method)
{
    return method->bytes;
}
