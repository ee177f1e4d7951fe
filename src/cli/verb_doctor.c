/*
 * verb_doctor: `clrperf doctor`, what works here and how to fix the rest.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/utf8.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/symbol_images.h"
#include "cli/symbol_store.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "collect/host_check.h"

struct doctor_values {
    struct target_options target;
    bool json;
};

static const struct option_spec doctor_options[] = {
    { .kind = OPTION_GROUP,
      .offset = offsetof(struct doctor_values, target),
      .group = one_target_option_specs },
    { .kind = OPTION_HEADING, .help = "output" },
    { "json", 0, OPTION_FLAG, offsetof(struct doctor_values, json), "print JSON instead of text" },
    { 0 },
};

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static void put_walk(struct json_writer *w, const struct target_walk *walk)
{
    json_put_object(w, "walk");
    json_put_string(w, "way", layout_way_name(walk->way));
    json_put_string(w, "layout", or_null(walk->version.text));
    json_put_u64(w, "checked", walk->checked);
    json_put_u64(w, "agreed", walk->agreed);
    json_put_u64(w, "methods", walk->methods);
    json_put_u64(w, "dynamic_methods", walk->dynamic);
    json_put_u64(w, "unnamed", walk->unnamed);
    json_end_object(w);
}

static bool print_json(const struct host_check_list *list, struct error *err)
{
    struct json_writer w;
    struct buffer buffer;
    stdout_json(&w, &buffer);
    json_begin_object(&w);
    json_put_string(&w, "schema", "clrperf.doctor/1");
    json_put_array(&w, "checks");
    for (size_t i = 0; i < list->count; i++) {
        const struct host_check *c = &list->items[i];
        json_begin_object(&w);
        json_put_string(&w, "name", c->name);
        json_put_bool(&w, "ok", c->ok);
        json_put_string(&w, "detail", or_null(c->detail));
        json_put_string(&w, "lost", c->ok ? NULL : c->lost);
        json_put_string(&w, "fix", c->ok ? NULL : or_null(c->fix));
        json_end_object(&w);
    }
    json_end_array(&w);
    if (list->walked)
        put_walk(&w, &list->walk);
    else
        json_put_string(&w, "walk", NULL);
    json_end_object(&w);
    return stdout_json_end(&w, err);
}

static void append(struct buffer *out, const char *before, const char *text)
{
    if (!text || !*text)
        return;
    buffer_string(out, before);
    utf8_escape(out, span_of(text, strlen(text)));
}

/* `no   WHAT - CAUSE - WHAT IS LOST - fix: COMMAND` */
static void append_check(struct buffer *out, const struct host_check *c, bool colour)
{
    if (colour)
        buffer_format(out, "%s%s\x1b[0m", c->ok ? "\x1b[32m" : "\x1b[31m", c->ok ? "yes" : "no ");
    else
        buffer_string(out, c->ok ? "yes" : "no ");
    append(out, "  ", c->title);
    if (c->ok) {
        append(out, " (", c->detail);
        buffer_string(out, *c->detail ? ")\n" : "\n");
        return;
    }
    append(out, " \xe2\x80\x94 ", c->detail);
    append(out, " \xe2\x80\x94 ", c->lost);
    append(out, " \xe2\x80\x94 fix: ", c->fix);
    buffer_u8(out, '\n');
}

static bool print_text(const struct host_check_list *list, const struct target *t, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    bool colour = message_colour(STDOUT_FILENO);
    for (size_t i = 0; i < list->count; i++) {
        if (t && strcmp(list->items[i].name, "target_sample") == 0) {
            buffer_format(&out, "\nprocess %d", (int)t->pid);
            append(&out, ", ", target_label(t));
            append(&out, ", .NET ", t->version.text);
            buffer_u8(&out, '\n');
        }
        append_check(&out, &list->items[i], colour);
    }
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

/* Nothing asked for: the only .NET process when there is just one, else the machine alone. */
static bool choose(const struct doctor_values *values, struct target_list *out, struct error *err)
{
    struct target_query query = target_options_query(&values->target);
    struct error none_or_many;
    query.one = true;
    if (target_query_is_empty(&query)) {
        if (!target_select(&query, out, &none_or_many))
            *out = (struct target_list){ 0 };
        return true;
    }
    return target_select(&query, out, err);
}

/* Microsoft's builds are stripped; their symbols come as a file beside, or from a server. */
static void check_runtime_symbols(const struct target *t, struct host_check_list *list)
{
    struct symbol_cache cache;
    struct symbol_images images;
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)t->pid);
    const char *pids[] = { pid }, *names[] = { t->image };
    struct symbol_subject subject = {
        .target = { .pids = pids, .pid_count = 1 }, .names = names, .name_count = 1, .native = true
    };
    struct host_check *c = host_check_add(list, "target_symbols", "symbols of its runtime",
                                          "functions inside it are told apart, but not named");
    symbol_store_open(&cache);
    if (symbol_images_find(&subject, &cache, &images, NULL)) {
        AUTO_FREE char *found = images.count ? symbol_images_found(&images, &images.rows[0]) : NULL;
        c->ok = found && *found;
        symbol_images_done(&images);
    }
    symbol_cache_close(&cache);
    if (c->ok)
        return;
    snprintf(c->detail, sizeof c->detail, "they are neither beside '%s' nor were they fetched", t->image);
    snprintf(c->fix, sizeof c->fix, "clrperf symbols fetch -p %d --native --server URL (of a symbol server)",
             (int)t->pid);
}

static bool doctor_run(struct verb_call *call, struct error *err)
{
    const struct doctor_values *values = call->values;
    struct target_list list = { 0 };
    if (!choose(values, &list, err))
        return false;
    const struct target *t = list.count ? &list.items[0] : NULL;
    struct host_check_list checks;
    host_check_run(t, &checks);
    if (t && t->image && t->runtime == RUNTIME_CORECLR)
        check_runtime_symbols(t, &checks);
    bool ok = values->json ? print_json(&checks, err) : print_text(&checks, t, err);
    const struct host_check *essential = host_check_essential(&checks);
    if (!essential->ok)
        call->exit_code = essential->denied ? EXIT_PERMISSION : EXIT_UNSUPPORTED;
    target_list_done(&list);
    return ok;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "say what works here and how to fix the rest",
    .details = "  Everything is found out by trying; nothing is changed. Ends with 0 when CPU sampling works "
               "(of the\n"
               "  chosen process, where there is one), with 4 when rights are missing and 5 when the machine "
               "cannot.",
    .options = doctor_options,
    .values_size = sizeof(struct doctor_values),
    .run = doctor_run,
};
