#include "cli/process_table.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/text_fit.h"
#include "cli/text_table.h"

struct process_access *process_access_read(const struct target_list *list)
{
    struct process_access *access = mem_alloc(list->count + 1, sizeof *access);
    for (size_t i = 0; i < list->count; i++) {
        for (int ability = 0; ability < TARGET_ABILITIES; ability++)
            access[i].can[ability] = target_try(&list->items[i], ability);
    }
    return access;
}

const char *process_user_name(uid_t uid)
{
    struct passwd *entry = getpwuid(uid);
    return entry ? entry->pw_name : NULL;
}

static void add_runtime(struct text_table *table, const struct target *t)
{
    char text[80];
    static const char *const kinds[] = { "", ".NET", "Native AOT", "Mono" };
    snprintf(text, sizeof text, "%s%s%s%s", kinds[t->runtime], t->version.text[0] ? " " : "", t->version.text,
             t->single_file ? " (single file)" : "");
    text_table_add(table, text);
}

/* Compilers and build servers are marked, so that the application is found among them. */
static void add_name(struct text_table *table, const struct target *t)
{
    AUTO_FREE char *text = mem_format("%s%s", target_label(t), t->sdk_tool ? " (sdk)" : "");
    text_table_add(table, text);
}

static void add_user(struct text_table *table, uid_t uid)
{
    char number[16];
    const char *name = process_user_name(uid);
    snprintf(number, sizeof number, "%u", uid);
    text_table_add(table, name ? name : number);
}

static void add_container(struct text_table *table, const struct target *t)
{
    char text[64];
    if (t->container_name || !t->container_id) {
        text_table_add(table, t->container_name);
        return;
    }
    snprintf(text, sizeof text, "%.12s", t->container_id);
    text_table_add(table, text);
}

static void add_abilities(struct text_table *table, const struct process_access *access)
{
    char text[64] = "";
    size_t used = 0;
    for (int ability = 0; ability < TARGET_ABILITIES; ability++) {
        if (access->can[ability].ok)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                                     target_ability_name(ability));
    }
    text_table_add(table, text);
}

static void add_row(struct text_table *table, const struct target *t, const struct process_access *access)
{
    char pid[32];
    snprintf(pid, sizeof pid, t->ns_pid == t->pid ? "%d" : "%d (%d)", (int)t->pid, (int)t->ns_pid);
    uint64_t now_ns = clock_realtime_ns();
    text_table_add(table, pid);
    add_name(table, t);
    add_runtime(table, t);
    add_user(table, t->uid);
    text_table_add(table, units_duration(now_ns > t->started_ns ? now_ns - t->started_ns : 0).text);
    text_table_add(table, units_duration(t->cpu_ns).text);
    add_container(table, t);
    add_abilities(table, access);
    text_table_add(table, t->command_line);
}

/* `4711: no sample, memory: REASON; fix: FIX`, one line for all that have the same cure. */
static void print_refusals(const struct target *t, const struct process_access *access, struct buffer *out)
{
    bool told[TARGET_ABILITIES] = { 0 };
    for (int first = 0; first < TARGET_ABILITIES && !t->sdk_tool; first++) {
        const struct target_access *can = &access->can[first];
        if (can->ok || told[first])
            continue;
        buffer_format(out, "%d: no", (int)t->pid);
        for (int other = first; other < TARGET_ABILITIES; other++) {
            if (access->can[other].ok || strcmp(access->can[other].fix, can->fix) != 0)
                continue;
            buffer_format(out, "%s %s", other > first ? "," : "", target_ability_name(other));
            told[other] = true;
        }
        buffer_format(out, ": %s; fix: %s\n", can->reason, can->fix);
    }
}

void process_table_print(const struct target_list *list, const struct process_access *access,
                         size_t width_max, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "PID", TEXT_RIGHT }, { "NAME", TEXT_LEFT },    { "RUNTIME", TEXT_LEFT },
        { "USER", TEXT_LEFT }, { "UP", TEXT_RIGHT, 2 },  { "CPU", TEXT_RIGHT, 1 },
        { "IN", TEXT_LEFT },   { "CAN SEE", TEXT_LEFT }, { "COMMAND", TEXT_LEFT },
    };
    struct text_table table;
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < list->count; i++)
        add_row(&table, &list->items[i], &access[i]);
    text_table_print(&table, width_max, out);
    text_table_done(&table);
    size_t refusals = out->size;
    for (size_t i = 0; i < list->count; i++)
        print_refusals(&list->items[i], &access[i], out);
    text_wrap(out, refusals, 2, width_max);
}
