#include "cli/verb.h"
static bool doctor_run(struct verb_call *call, struct error *err)
{
    (void)call;
    return error_set(err, ERROR_UNSUPPORTED, "doctor is not there yet");
}
const struct verb verb_doctor = { .name = "doctor",
                                  .summary = "say what works here and how to fix the rest",
                                  .run = doctor_run };
