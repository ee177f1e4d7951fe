#include "symbolize/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

enum { MANGLED_BYTES_MAX = 4096 };

struct demangling {
    struct buffer *out;
    jmp_buf too_long;
};

/*
 * libiberty has no way to stop, and substitutions double the text each time they nest. Its callback
 * form keeps everything on the stack, so that leaving it by longjmp loses nothing.
 */
static void take_piece(const char *piece, size_t size, void *user)
{
    struct demangling *d = user;
    if (size > DEMANGLED_BYTES_MAX - d->out->size)
        longjmp(d->too_long, 1);
    buffer_append(d->out, piece, size);
}

bool demangle(const char *mangled, struct buffer *out)
{
    bool rust = mangled[0] == '_' && mangled[1] == 'R';
    if (!rust && (mangled[0] != '_' || mangled[1] != 'Z'))
        return false;
    if (strnlen(mangled, MANGLED_BYTES_MAX + 1) > MANGLED_BYTES_MAX)
        return false;
    struct demangling d = { .out = out };
    buffer_clear(out);
    if (setjmp(d.too_long))
        return false;
    /* Rust's older names look like C++ names that end in a hash; only the Rust reader drops it */
    if (!rust_demangle_callback(mangled, DMGL_AUTO, take_piece, &d)) {
        buffer_clear(out);
        if (!cplus_demangle_v3_callback(mangled, DMGL_ANSI, take_piece, &d))
            return false;
    }
    buffer_u8(out, 0);
    return !out->failed && out->size > 1;
}
