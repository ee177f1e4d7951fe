#include "symbolize/kernel_symbols.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "base/own.h"

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

struct search {
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
static size_t first_at_or_above(const struct search *s, uint64_t addr)
{
    size_t last = s->best_index;
    if (last < s->count && addr <= s->addrs[last] && (last == 0 || addr > s->addrs[last - 1]))
        return last;
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->addrs[middle] < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void store_best(struct search *s)
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

static void copy_text(char *to, size_t room, const char *from, const char *end)
{
    size_t size = (size_t)(end - from) < room - 1 ? (size_t)(end - from) : room - 1;
    memcpy(to, from, size);
    to[size] = 0;
}

/* "ffffffff81000000 T name\t[module]", without the newline. */
static void take_line(struct search *s, const char *line, const char *end)
{
    uint64_t addr = 0;
    const char *p = line;
    for (unsigned digit; p < end && p - line < 16 && (digit = hex_digit(*p)) < 16; p++)
        addr = addr << 4 | digit;
    if (p == line || end - p < 4 || p[0] != ' ' || p[2] != ' ')
        return;
    s->any = true;
    s->any_shown |= addr != 0;
    size_t index = addr ? first_at_or_above(s, addr) : s->count;
    if (index == s->count)
        return;
    char type = p[1];
    struct span name = span_of(p + 3, (size_t)(end - p - 3));
    if (index != s->best_index) {
        store_best(s);
        const struct nearest *old = &s->nearest[index];
        if (addr < old->addr || (addr == old->addr && !is_better(type, name, old->text[0], old->text + 1)))
            return;
    } else if (addr < s->best.addr ||
               (addr == s->best.addr && !is_better(type, name, s->best.type, s->best.name))) {
        return;
    }
    const char *tab = memchr(p + 3, '\t', (size_t)(end - p - 3));
    s->best_index = index;
    s->best.addr = addr;
    s->best.type = type;
    copy_text(s->best.name, sizeof s->best.name, p + 3, tab ? tab : end);
    copy_text(s->best.module, sizeof s->best.module, tab ? tab + 1 : end, end);
}

/* A line that does not fit is dropped: nothing that long comes from a kernel. */
static bool read_lines(int fd, struct search *s, struct error *err)
{
    AUTO_FREE char *chunk = mem_alloc(1, CHUNK_BYTES);
    size_t kept = 0;
    for (;;) {
        ssize_t got = read(fd, chunk + kept, CHUNK_BYTES - kept);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_system(err, errno, "cannot read the kernel's symbols");
        char *end = chunk + kept + got;
        char *line = chunk;
        for (char *newline; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
            take_line(s, line, newline);
        if (got == 0) {
            take_line(s, line, end);
            return true;
        }
        kept = (size_t)(end - line);
        if (kept > LINE_MAX_BYTES)
            kept = 0;
        memmove(chunk, line, kept);
    }
}

/* Whether code can be found at this kind of symbol; data of a module ends the code before it. */
static bool is_code(char type)
{
    return strchr("tTwWiI", type) != NULL;
}

static size_t emit_all(const struct search *s, kernel_symbol_fn *emit, void *user)
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

bool kernel_symbols_resolve(int fd, const uint64_t *addrs, size_t count, kernel_symbol_fn *emit, void *user,
                            struct kernel_symbols_result *out, struct error *err)
{
    struct search *s = mem_alloc(1, sizeof *s);
    s->addrs = addrs;
    s->count = count;
    s->best_index = count;
    s->nearest = mem_alloc(count, sizeof *s->nearest);
    bool ok = read_lines(fd, s, err);
    if (ok) {
        store_best(s);
        *out = (struct kernel_symbols_result){ .named = emit_all(s, emit, user),
                                               .hidden = s->any && !s->any_shown };
    }
    for (size_t i = 0; i < count; i++)
        free(s->nearest[i].text);
    free(s->nearest);
    free(s);
    return ok;
}
