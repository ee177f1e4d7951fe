/*
 * muslbase: lets glibc's builds of libstdc++ and libgcc_s serve programs that run on musl.
 *
 * Debian has musl, but no C++ library for it, which .NET's runtime for Alpine needs. Those two libraries find
 * nearly all that they ask of glibc in musl, too. Here is the rest, as far as a runtime's start, its
 * exceptions and its texts need it. It is loaded before all others, under the name of glibc's dynamic linker,
 * which the two name as well.
 */
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { LOWEST_CHAR = -128, CHARS = 384, EH_FRAME_HEADER = 0x6474e550, LOADED = 1 };

/* As of <elf.h> and <link.h>, whose musl form is not at hand. */
struct program_header {
    uint32_t type, flags;
    uint64_t file_off, addr, physical_addr, file_bytes, bytes, align;
};

struct image {
    uint64_t bias;
    const char *name;
    const struct program_header *headers;
    uint16_t header_count;
};

/* What libgcc_s wants to know of the image around an address, as glibc's <dlfcn.h> has it. */
struct found_image {
    uint64_t flags;
    void *begin, *end, *link_map, *eh_frame_header;
    uint64_t reserved[7];
};

struct question {
    uint64_t addr;
    struct found_image *answer;
};

/* glibc's form of a locale, whose tables libstdc++ takes from where they lie in it. */
struct glibc_locale {
    void *categories[13];
    const uint16_t *classes;
    const int32_t *lower, *upper;
    const char *names[13];
};

char __libc_single_threaded;
uint32_t __cpu_model[4];
static uint16_t classes[CHARS];
static int32_t lower[CHARS], upper[CHARS];
static struct glibc_locale c_locale;

long getrandom(void *into, size_t size, unsigned flags);
int dl_iterate_phdr(int (*look)(struct image *image, size_t size, void *user), void *user);

int __cpu_indicator_init(void)
{
    return 0;
}

/* Destructors of a thread's objects: a sample's threads need none. */
int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object, void *library)
{
    (void)destroy, (void)object, (void)library;
    return 0;
}

size_t __strftime_l(char *into, size_t size, const char *format, const struct tm *time, locale_t locale)
{
    (void)locale;
    return strftime(into, size, format, time);
}

uint32_t arc4random(void)
{
    uint32_t value = 0;
    (void)getrandom(&value, sizeof value, 0);
    return value;
}

static int look(struct image *image, size_t size, void *user)
{
    (void)size;
    const struct question *q = user;
    uint64_t begin = UINT64_MAX, end = 0, header = 0;
    int is_inside = 0;
    for (unsigned i = 0; i < image->header_count; i++) {
        const struct program_header *h = &image->headers[i];
        uint64_t addr = image->bias + h->addr;
        if (h->type == EH_FRAME_HEADER)
            header = addr;
        if (h->type != LOADED)
            continue;
        begin = addr < begin ? addr : begin;
        end = addr + h->bytes > end ? addr + h->bytes : end;
        is_inside |= q->addr >= addr && q->addr - addr < h->bytes;
    }
    if (!is_inside || !header)
        return 0;
    *q->answer =
        (struct found_image){ .begin = (void *)begin, .end = (void *)end, .eh_frame_header = (void *)header };
    return 1;
}

int _dl_find_object(void *addr, struct found_image *out)
{
    struct question question = { (uint64_t)addr, out };
    return dl_iterate_phdr(look, &question) ? 0 : -1;
}

static uint16_t class_of(int c)
{
    int is_upper = c >= 'A' && c <= 'Z', is_lower = c >= 'a' && c <= 'z', is_digit = c >= '0' && c <= '9';
    int is_hex = is_digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    int is_blank = c == ' ' || c == '\t', is_space = c == ' ' || (c >= '\t' && c <= '\r');
    int is_printed = c >= ' ' && c <= '~', is_letter = is_upper || is_lower;
    return (uint16_t)(is_upper << 8 | is_lower << 9 | is_letter << 10 | is_digit << 11 | is_hex << 12 |
                      is_space << 13 | is_printed << 14 | (is_printed && c != ' ') << 15 | is_blank);
}

__attribute__((constructor)) static void fill(void)
{
    for (int i = 0; i < CHARS; i++) {
        int c = i + LOWEST_CHAR;
        classes[i] = class_of(c);
        lower[i] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        upper[i] = c >= 'a' && c <= 'z' ? c - 32 : c;
    }
    c_locale = (struct glibc_locale){ .classes = classes - LOWEST_CHAR,
                                      .lower = lower - LOWEST_CHAR,
                                      .upper = upper - LOWEST_CHAR };
    for (int i = 0; i < 13; i++)
        c_locale.names[i] = "C";
}

void *__newlocale(int mask, const char *name, void *base)
{
    (void)mask, (void)name, (void)base;
    return &c_locale;
}

void *__duplocale(void *locale)
{
    return locale;
}

void __freelocale(void *locale)
{
    (void)locale;
}
