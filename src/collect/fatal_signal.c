#include "collect/fatal_signal.h"

#include <signal.h>
#include <stddef.h>

#include "base/own.h"

static const char *const names[] = {
    [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL", [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",
    [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE", [SIGSEGV] = "SIGSEGV", [SIGXCPU] = "SIGXCPU",
    [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
};

const char *fatal_signal_name(uint16_t number)
{
    return number < ARRAY_LEN(names) ? names[number] : NULL;
}
