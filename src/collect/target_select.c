#include "collect/target_select.h"

#include <stdio.h>
#include <string.h>

#include "base/glob_text.h"
#include "base/mem.h"
#include "base/own.h"

bool target_query_is_empty(const struct target_query *q)
{
    return !q->pid_count && !q->name_count && !q->container && !q->cgroup && !q->all && !q->router;
}

/* It leads to a program on a phone: its process, threads and memory are not here, only what it tells. */
static bool refuse_router(const char *router, struct error *err)
{
    error_set(err, ERROR_UNSUPPORTED, "--dsrouter %s: clrperf looks at processes of this machine", router);
    return error_hint(
        err, "dotnet-trace collect --dsrouter %s -o FILE.nettrace; report and export read that file", router);
}

bool target_query_check(const struct target_query *q, struct error *err)
{
    if (q->router)
        return refuse_router(q->router, err);
    const char *narrow = q->name_count ? "-n" : q->container ? "--container" : q->cgroup ? "--cgroup" : NULL;
    if (q->pid_count && (q->all || narrow)) {
        error_set(err, ERROR_USAGE, "-p and %s exclude each other", q->all ? "-a" : narrow);
        return error_hint(err, "-p alone takes any process, several as -p 4711,4712");
    }
    if (q->all && narrow) {
        error_set(err, ERROR_USAGE, "-a and %s exclude each other", narrow);
        return error_hint(err, "leave out -a: %s takes all that fit", narrow);
    }
    return true;
}

static bool has_pid(const struct target_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].pid == pid)
            return true;
    }
    return false;
}

/* One "4711,4712". */
static bool add_pids(const char *text, bool begun, struct target_list *list, struct error *err)
{
    const char *p = text;
    do {
        uint64_t pid = 0;
        size_t digits = strspn(p, "0123456789");
        for (size_t i = 0; i < digits && i < 10; i++)
            pid = pid * 10 + (uint64_t)(p[i] - '0');
        if (digits == 0 || (p[digits] && p[digits] != ',')) {
            error_set(err, ERROR_USAGE, "'%s' is no process id", text);
            return error_hint(err, "-p takes numbers such as 4711 or 4711,4712; use -n for names");
        }
        if (digits > 10 || pid == 0 || pid > INT32_MAX) {
            error_set(err, ERROR_TARGET, "there is no process %.*s", (int)digits, p);
            return error_hint(err, "clrperf ps lists the .NET processes");
        }
        struct target t;
        if (!has_pid(list, (pid_t)pid)) {
            if (!(begun ? target_begin((pid_t)pid, &t, err) : target_open((pid_t)pid, &t, err)))
                return false;
            target_list_add(list, &t);
        }
        p += digits;
    } while (*p++ == ',');
    return true;
}

bool target_is_called(const struct target *t, const char *glob)
{
    if (glob_matches(glob, t->name))
        return true;
    if (!t->entry_assembly)
        return false;
    AUTO_FREE char *file = mem_format("%s.dll", t->entry_assembly);
    return glob_matches(glob, t->entry_assembly) || glob_matches(glob, file);
}

static bool container_matches(const char *wanted, const struct target *t)
{
    if (!t->container_id)
        return false;
    /* two digits would fit a good part of all containers */
    enum { PREFIX_MIN = 3 };
    size_t size = strlen(wanted);
    if (t->container_name && strcmp(t->container_name, wanted) == 0)
        return true;
    return strcmp(t->container_id, wanted) == 0 ||
           (size >= PREFIX_MIN && strncmp(t->container_id, wanted, size) == 0);
}

static bool cgroup_matches(const char *wanted, const struct target *t)
{
    static const char mount[] = "/sys/fs/cgroup";
    if (!t->cgroup)
        return false;
    if (strncmp(wanted, mount, sizeof mount - 1) == 0)
        wanted += sizeof mount - 1;
    const char *path = t->cgroup;
    wanted += *wanted == '/';
    path += *path == '/';
    size_t size = strlen(wanted);
    while (size && wanted[size - 1] == '/')
        size--;
    return strncmp(path, wanted, size) == 0 && (size == 0 || path[size] == 0 || path[size] == '/');
}

static bool matches(const struct target_query *q, const struct target *t)
{
    bool named = q->name_count == 0;
    for (size_t i = 0; i < q->name_count && !named; i++)
        named = target_is_called(t, q->names[i]);
    if (!named || (q->container && !container_matches(q->container, t)) ||
        (q->cgroup && !cgroup_matches(q->cgroup, t)))
        return false;
    return q->name_count || q->container || q->cgroup || !t->sdk_tool;
}

/* `: 4711 (Shop.Api), 4712 (Worker)` */
static void append_list(struct error *err, const struct target_list *list)
{
    size_t used = strlen(err->what);
    for (size_t i = 0; i < list->count && used < sizeof err->what - 1; i++) {
        size_t room = sizeof err->what - used;
        int size = snprintf(err->what + used, room, "%s%d (%s)", i ? ", " : ": ", (int)list->items[i].pid,
                            target_label(&list->items[i]));
        if (size < 0 || (size_t)size >= room) {
            snprintf(err->what + used, room, ", ...");
            break;
        }
        used += (size_t)size;
    }
}

static bool nothing_found(const struct target_query *q, struct error *err)
{
    if (q->name_count && (q->container || q->cgroup))
        error_set(err, ERROR_TARGET, "no .NET process in the %s '%s' is called '%s'",
                  q->container ? "container" : "cgroup", q->container ? q->container : q->cgroup,
                  q->names[0]);
    else if (q->name_count)
        error_set(err, ERROR_TARGET, "no .NET process is called '%s'", q->names[0]);
    else if (q->container)
        error_set(err, ERROR_TARGET, "no .NET process runs in a container '%s'", q->container);
    else if (q->cgroup)
        error_set(err, ERROR_TARGET, "no .NET process runs in the cgroup '%s'", q->cgroup);
    else
        error_set(err, ERROR_TARGET, "no .NET process is visible");
    return error_hint(err, "clrperf ps lists what there is; -p PID takes any process");
}

static bool several_found(const struct target_query *q, const struct target_list *list, struct error *err)
{
    error_set(err, ERROR_TARGET, "%zu processes fit%s", list->count,
              target_query_is_empty(q) ? "" : " this choice");
    if (err)
        append_list(err, list);
    return error_hint(err, "choose one with -p PID%s", q->one ? "" : ", or all with -a");
}

bool target_select(const struct target_query *q, struct target_list *out, struct error *err)
{
    struct target_list chosen = { 0 }, seen = { 0 };
    bool ok = target_query_check(q, err);
    for (size_t i = 0; ok && i < q->pid_count; i++)
        ok = add_pids(q->pids[i], q->begun, &chosen, err);
    if (ok && !q->pid_count)
        ok = target_list_read(&seen, err);
    for (size_t i = 0; ok && i < seen.count; i++) {
        if (matches(q, &seen.items[i]))
            target_list_add(&chosen, &seen.items[i]);
    }
    target_list_done(&seen);
    if (ok && chosen.count == 0)
        ok = nothing_found(q, err);
    else if (ok && chosen.count > 1 && (q->one || target_query_is_empty(q)))
        ok = several_found(q, &chosen, err);
    if (!ok) {
        target_list_done(&chosen);
        return false;
    }
    *out = chosen;
    return true;
}

bool target_select_able(const struct target_query *q, enum target_ability ability, struct target_list *out,
                        struct error *err)
{
    struct target_list list;
    if (!target_select(q, &list, err))
        return false;
    for (size_t i = 0; i < list.count; i++) {
        if (target_require(&list.items[i], ability, err))
            continue;
        target_list_done(&list);
        return false;
    }
    *out = list;
    return true;
}
