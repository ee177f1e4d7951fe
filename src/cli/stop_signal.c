#include "cli/stop_signal.h"

#include <stddef.h>

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal_number)
{
    stopped_by = signal_number;
}

const volatile sig_atomic_t *stop_signal_catch(void)
{
    struct sigaction action = { .sa_handler = on_signal }, hangup;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* under nohup it stays ignored */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a failed write like any other */
    return &stopped_by;
}
