#include "base/thread.h"

#include <signal.h>

bool thread_start(pthread_t *out, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool ok = pthread_create(out, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}
