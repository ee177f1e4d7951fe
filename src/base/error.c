#include "base/error.h"

#ifdef __clang_analyzer__ /* these are the functions, not what the analyzer is told of them */
#undef error_set
#undef error_system
#undef error_hint
#undef error_context
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    *err = (struct error){ .kind = kind };
    vsnprintf(err->what, sizeof err->what, format, args);
    va_end(args);
    return false;
}

bool error_system(struct error *err, int os_error, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    bool denied = os_error == EACCES || os_error == EPERM;
    *err = (struct error){ .kind = denied ? ERROR_PERMISSION : ERROR_SYSTEM, .os_error = os_error };
    int used = vsnprintf(err->what, sizeof err->what, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->what)
        snprintf(err->what + used, sizeof err->what - (size_t)used, ": %s", strerror(os_error));
    return false;
}

bool error_hint(struct error *err, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
    return false;
}

bool error_context(struct error *err, const char *format, ...)
{
    if (!err)
        return false;
    char what[sizeof err->what];
    memcpy(what, err->what, sizeof what);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->what, sizeof err->what, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->what)
        snprintf(err->what + used, sizeof err->what - (size_t)used, ": %s", what);
    return false;
}
