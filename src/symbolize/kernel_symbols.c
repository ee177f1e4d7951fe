#include "symbolize/kernel_symbols.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/sorted.h"

enum {
    CHUNK_BYTES = 256 * 1024,
    LINE_MAX_BYTES = 1024,        /* KSYM_NAME_LEN is 512 */
    FUNCTION_BYTES_MAX = 2 << 20, /* a last symbol reaches no farther */
    NAME_BYTES = 512,
    MODULE_BYTES = 64,
};

struct symbol {
    uint64_t addr;
    char type;
    char name[NAME_BYTES];
    char module[MODULE_BYTES];
};

/* The nearest symbol at or below one of the addresses. */
struct nearest {
    uint64_t addr; /* 0: none yet */
    char *text;    /* owned: type, name, NUL, module, NUL */
};

struct kernel_symbols {
    const uint64_t *addrs;
    size_t count;
    struct nearest *nearest;
    /*
     * Neighbouring symbols mostly stay below the same address: the best one so far is kept here and
     * only stored when the search moves on to another address.
     */
    struct symbol best;
    size_t best_index;   /* count: none */
    bool any, any_shown; /* lines, and lines with an address */
};

/* The list is sorted but for its modules: the answer is mostly the last one or near it. */
static size_t first_at_or_above(const struct kernel_symbols *s, uint64_t addr)
{
    size_t last = s->best_index;
    if (last < s->count && addr <= s->addrs[last] && (last == 0 || addr > s->addrs[last - 1]))
        return last;
    return sorted_from(s->addrs, s->count, addr);
}

static void store_best(struct kernel_symbols *s)
{
    if (s->best_index == s->count)
        return;
    struct nearest *n = &s->nearest[s->best_index];
    size_t name = strlen(s->best.name) + 1, module = strlen(s->best.module) + 1;
    n->addr = s->best.addr;
    n->text = mem_resize(n->text, 1 + name + module, 1);
    n->text[0] = s->best.type;
    memcpy(n->text + 1, s->best.name, name);
    memcpy(n->text + 1 + name, s->best.module, module);
    s->best_index = s->count;
}

static unsigned hex_digit(char c)
{
    unsigned decimal = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';
    return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 16;
}

/* A system call's name for 32-bit programs, where it has its own for others. */
static bool is_of_32_bit(struct span name)
{
    return span_begins(name, "__ia32_");
}

/* Of two names for one address a global one wins. */
static bool is_better(char type, struct span name, char than, const char *than_name)
{
    bool global = isupper((unsigned char)type), other = isupper((unsigned char)than);
    if (global != other)
        return global;
    return is_of_32_bit(span_of(than_name, strlen(than_name))) && !is_of_32_bit(name);
}

static void copy_text(char *to, size_t room, struct span from)
{
    size_t size = from.size < room - 1 ? from.size : room - 1;
    if (size)
        memcpy(to, from.data, size);
    to[size] = 0;
}

/* "ffffffff81000000 T name\t[module]" */
static inline bool read_line(const char *line, const char *end, struct kernel_symbol_line *out)
{
    uint64_t addr = 0;
    const char *p = line;
    for (unsigned digit; p < end && p - line < 16 && (digit = hex_digit(*p)) < 16; p++)
        addr = addr << 4 | digit;
    if (p == line || end - p < 4 || p[0] != ' ' || p[2] != ' ')
        return false;
    const char *name = p + 3, *tab = memchr(name, '\t', (size_t)(end - name));
    out->addr = addr;
    out->type = p[1];
    out->name = span_of(name, (size_t)((tab ? tab : end) - name));
    out->module = tab ? span_of(tab + 1, (size_t)(end - tab - 1)) : (struct span){ 0 };
    return true;
}

bool kernel_symbol_line_read(struct span line, struct kernel_symbol_line *out)
{
    const char *text = (const char *)line.data;
    return line.size && read_line(text, text + line.size, out);
}

static void take_line(struct kernel_symbols *s, const char *text, const char *end)
{
    struct kernel_symbol_line line;
    if (!read_line(text, end, &line))
        return;
    s->any = true;
    s->any_shown |= line.addr != 0;
    size_t index = line.addr ? first_at_or_above(s, line.addr) : s->count;
    if (index == s->count)
        return;
    if (index != s->best_index) {
        store_best(s);
        const struct nearest *old = &s->nearest[index];
        if (line.addr < old->addr ||
            (line.addr == old->addr && !is_better(line.type, line.name, old->text[0], old->text + 1)))
            return;
    } else if (line.addr < s->best.addr ||
               (line.addr == s->best.addr && !is_better(line.type, line.name, s->best.type, s->best.name))) {
        return;
    }
    s->best_index = index;
    s->best.addr = line.addr;
    s->best.type = line.type;
    copy_text(s->best.name, sizeof s->best.name, line.name);
    copy_text(s->best.module, sizeof s->best.module, line.module);
}

/* Takes what is whole, and returns where the rest begins. */
static const char *take_lines(struct kernel_symbols *s, const char *line, const char *end)
{
    for (const char *newline; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
        take_line(s, line, newline);
    return line;
}

void kernel_symbols_take(struct kernel_symbols *s, struct span lines)
{
    const char *text = (const char *)lines.data;
    if (lines.size)
        take_lines(s, text, text + lines.size);
}

static void show(const struct kernel_lines_reader *also, const char *from, const char *to)
{
    if (also && to > from)
        also->take(also->user, span_of(from, (size_t)(to - from)));
}

/* A line that does not fit is dropped: nothing that long comes from a kernel. */
static bool read_lines(int fd, struct kernel_symbols *s, const struct kernel_lines_reader *also,
                       struct error *err)
{
    AUTO_FREE char *chunk = mem_alloc(1, CHUNK_BYTES);
    size_t kept = 0;
    for (;;) {
        ssize_t got = read(fd, chunk + kept, CHUNK_BYTES - kept);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_system(err, errno, "cannot read the kernel's symbols");
        const char *end = chunk + kept + got;
        const char *rest = take_lines(s, chunk, end);
        show(also, chunk, rest);
        if (got == 0) {
            take_line(s, rest, end);
            return true;
        }
        kept = (size_t)(end - rest);
        if (kept > LINE_MAX_BYTES)
            kept = 0;
        memmove(chunk, rest, kept);
    }
}

/* Whether code can be found at this kind of symbol; data of a module ends the code before it. */
static bool is_code(char type)
{
    return strchr("tTwWiI", type) != NULL;
}

static size_t emit_all(const struct kernel_symbols *s, kernel_symbol_fn *emit, void *user)
{
    size_t named = 0;
    const struct nearest *last = NULL; /* the nearest symbol of all addresses up to this one */
    for (size_t i = 0; i < s->count; i++) {
        const struct nearest *n = &s->nearest[i];
        if (n->addr)
            last = n;
        if (!last || s->addrs[i] - last->addr > FUNCTION_BYTES_MAX || !is_code(last->text[0])) {
            emit(user, i, KERNEL_MODULE, KERNEL_MODULE, 0);
            continue;
        }
        const char *name = last->text + 1;
        const char *module = name + strlen(name) + 1;
        emit(user, i, name, *module ? module : KERNEL_MODULE, last->addr);
        named++;
    }
    return named;
}

bool kernel_symbols_reach_all(struct kernel_symbols *s)
{
    uint64_t last = 0;
    store_best(s);
    for (size_t i = 0; i < s->count; i++) {
        if (s->nearest[i].addr)
            last = s->nearest[i].addr;
        if (!last || s->addrs[i] - last > FUNCTION_BYTES_MAX)
            return false;
    }
    return true;
}

struct kernel_symbols *kernel_symbols_begin(const uint64_t *addrs, size_t count)
{
    struct kernel_symbols *s = mem_alloc(1, sizeof *s);
    s->addrs = addrs;
    s->count = count;
    s->best_index = count;
    s->nearest = mem_alloc(count, sizeof *s->nearest);
    return s;
}

void kernel_symbols_end(struct kernel_symbols *s, kernel_symbol_fn *emit, void *user,
                        struct kernel_symbols_result *out)
{
    store_best(s);
    if (emit)
        *out = (struct kernel_symbols_result){ .named = emit_all(s, emit, user),
                                               .hidden = s->any && !s->any_shown };
    for (size_t i = 0; i < s->count; i++)
        free(s->nearest[i].text);
    free(s->nearest);
    free(s);
}

bool kernel_symbols_resolve(int fd, const uint64_t *addrs, size_t count,
                            const struct kernel_lines_reader *also, kernel_symbol_fn *emit, void *user,
                            struct kernel_symbols_result *out, struct error *err)
{
    struct kernel_symbols *s = kernel_symbols_begin(addrs, count);
    bool ok = read_lines(fd, s, also, err);
    kernel_symbols_end(s, ok ? emit : NULL, user, out);
    return ok;
}
