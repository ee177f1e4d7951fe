/*
 * verb_ps: `clrperf ps`, which .NET processes there are and what can be seen of them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/process_table.h"
#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "cli/verb.h"
#include "collect/stale_socket.h"

struct ps_values {
    bool json;
    bool stale;
};

static const struct option_spec ps_options[] = {
    { "json", 0, OPTION_FLAG, offsetof(struct ps_values, json), "print JSON instead of a table" },
    { "stale", 0, OPTION_FLAG, offsetof(struct ps_values, stale),
      "also list the diagnostics sockets that crashed processes left in /tmp" },
    { 0 },
};

static void write_ability(struct json_writer *w, const struct target_access *can)
{
    json_begin_object(w);
    json_put_bool(w, "ok", can->ok);
    if (!can->ok) {
        json_put_string(w, "reason", can->reason);
        json_put_string(w, "fix", can->fix);
    }
    json_end_object(w);
}

static void write_runtime(struct json_writer *w, const struct target *t)
{
    json_begin_object(w);
    json_put_string(w, "kind", runtime_kind_name(t->runtime));
    json_put_string(w, "version", t->version.text[0] ? t->version.text : NULL);
    json_put_bool(w, "single_file", t->single_file);
    json_put_string(w, "image", t->image);
    json_end_object(w);
}

static void write_container(struct json_writer *w, const struct target *t)
{
    if (!t->container_id) {
        json_absent(w);
        return;
    }
    json_begin_object(w);
    json_put_string(w, "id", t->container_id);
    json_put_string(w, "name", t->container_name);
    json_end_object(w);
}

/* In seconds, cut to milliseconds. */
static double whole_ms_s(uint64_t ns)
{
    uint64_t ms = ns / 1000000;
    return (double)ms / 1e3;
}

static void write_process(struct json_writer *w, const struct target *t, const struct process_access *access)
{
    json_begin_object(w);
    json_put_i64(w, "pid", t->pid);
    json_put_i64(w, "ns_pid", t->ns_pid);
    json_put_i64(w, "parent_pid", t->parent);
    json_put_u64(w, "uid", t->uid);
    json_put_string(w, "user", process_user_name(t->uid));
    json_put_string(w, "name", t->name);
    json_put_string(w, "command_line", t->command_line);
    json_put_string(w, "entry_assembly", t->entry_assembly);
    json_put_bool(w, "sdk_tool", t->sdk_tool);
    json_key(w, "runtime");
    write_runtime(w, t);
    json_key(w, "container");
    write_container(w, t);
    json_put_double(w, "started_s", whole_ms_s(t->started_ns));
    json_put_double(w, "cpu_s", whole_ms_s(t->cpu_ns));
    json_put_u64(w, "threads", t->threads);
    json_put_string(w, "socket", t->socket);
    json_put_object(w, "can");
    for (int ability = 0; ability < TARGET_ABILITIES; ability++) {
        json_key(w, target_ability_name(ability));
        write_ability(w, &access->can[ability]);
    }
    json_end_object(w);
    json_end_object(w);
}

static void write_stale(struct json_writer *w, const struct stale_socket_list *stale)
{
    json_put_array(w, "stale");
    for (size_t i = 0; i < stale->count; i++) {
        json_begin_object(w);
        json_put_string(w, "socket", stale->items[i].path);
        json_put_i64(w, "pid", stale->items[i].pid);
        json_put_u64(w, "uid", stale->items[i].owner);
        json_put_bool(w, "pid_reused", stale->items[i].pid_reused);
        json_end_object(w);
    }
    json_end_array(w);
}

static bool print_json(const struct target_list *list, const struct process_access *access,
                       const struct stale_socket_list *stale, struct error *err)
{
    struct json_writer w;
    struct buffer buffer;
    stdout_json(&w, &buffer);
    json_begin_object(&w);
    json_put_string(&w, "schema", "clrperf.ps/1");
    json_put_array(&w, "processes");
    for (size_t i = 0; i < list->count; i++)
        write_process(&w, &list->items[i], &access[i]);
    json_end_array(&w);
    if (stale)
        write_stale(&w, stale);
    json_end_object(&w);
    return stdout_json_end(&w, err);
}

static void print_stale(const struct stale_socket_list *stale, struct buffer *out)
{
    uint64_t now_ns = clock_realtime_ns();
    buffer_format(out, "\n%zu stale diagnostics socket%s\n", stale->count, stale->count == 1 ? "" : "s");
    for (size_t i = 0; i < stale->count; i++) {
        const struct stale_socket *s = &stale->items[i];
        uint64_t age_ns = now_ns > s->modified_ns ? now_ns - s->modified_ns : 0;
        buffer_string(out, "  ");
        utf8_escape(out, span_of(s->path, strlen(s->path)));
        buffer_format(out, "  uid %u, made %s ago, process %d %s\n", s->owner, units_duration(age_ns).text,
                      (int)s->pid, s->pid_reused ? "is another one now" : "is gone");
    }
}

static bool print_table(const struct target_list *list, const struct process_access *access,
                        const struct stale_socket_list *stale, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    if (list->count)
        process_table_print(list, access, stdout_width(), &out);
    else
        message_note("no .NET process is visible%s",
                     geteuid() ? "; sudo shows those of other users too" : "");
    if (stale)
        print_stale(stale, &out);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

static bool ps_run(struct verb_call *call, struct error *err)
{
    const struct ps_values *values = call->values;
    struct target_list list;
    struct stale_socket_list stale = { 0 };
    if (!target_list_read(&list, err))
        return false;
    bool ok = !values->stale || stale_socket_list_read("/tmp", &stale, err);
    AUTO_FREE struct process_access *access = process_access_read(&list);
    if (ok)
        ok = (values->json ? print_json : print_table)(&list, access, values->stale ? &stale : NULL, err);
    stale_socket_list_done(&stale);
    target_list_done(&list);
    return ok;
}

const struct verb verb_ps = {
    .name = "ps",
    .summary = "list the .NET processes and what can be seen of them",
    .details =
        "  Processes of containers are listed too, with the pid they see themselves as in parentheses.\n"
        "  CAN SEE says what this user may do: sample its CPU, get the runtime's events, read its memory.",
    .options = ps_options,
    .values_size = sizeof(struct ps_values),
    .run = ps_run,
};
