#include "cli/verb.h"
static bool ps_run(struct verb_call *call, struct error *err)
{
    (void)call;
    return error_set(err, ERROR_UNSUPPORTED, "ps is not there yet");
}
const struct verb verb_ps = { .name = "ps",
                              .summary = "list .NET processes and what can be seen of them",
                              .run = ps_run };
