#include "collect/target_walk.h"

#include <stdio.h>

#include "base/own.h"
#include "base/target_root.h"
#include "collect/memory_session.h"

bool target_walk_try(const struct target *t, struct target_walk *out, struct error *err)
{
    AUTO_FD int root = -1;
    struct memory_session *session;
    const struct runtime_sink nobody = { 0 };
    if (!target_root_open(t->pid, &root, err) ||
        !memory_session_start(t->pid, t->start_ticks, root, &session, err))
        return false;
    bool ok = memory_session_name_all(session, &nobody, err);
    const struct code_walk_report *report = code_walk_report(memory_session_walk(session));
    struct target_walk walk = {
        .way = report->way,
        .checked = report->checked,
        .agreed = report->agreed,
        .methods = report->methods,
        .dynamic = report->dynamic,
        .unnamed = report->unnamed,
    };
    snprintf(walk.version.text, sizeof walk.version.text, "%s", report->layout);
    memory_session_close(session);
    if (ok)
        *out = walk;
    return ok;
}
