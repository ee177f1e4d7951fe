#include <stdio.h>
#include <string.h>

#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "cli/verb.h"
#include "clr/event_profiles.h"

enum { TEXT_MAX = 1 << 16, CELL_BYTES = 64 };

/* The providers of a profile, without their arguments, which fill pages. */
static bool add_providers(struct text_table *table, const struct event_profile *profile, struct error *err)
{
    struct event_providers p;
    struct buffer cell;
    event_providers_init(&p);
    buffer_init(&cell, TEXT_MAX);
    bool ok = event_providers_parse(&p, profile->providers, err);
    for (size_t i = 0; ok && i < p.count; i++)
        buffer_format(&cell, "%s%s:0x%llX:%s", i ? ", " : "", p.items[i].name,
                      (unsigned long long)p.items[i].keywords, event_level_name(p.items[i].level));
    buffer_u8(&cell, 0);
    text_table_add(table, profile->name);
    text_table_add(table, profile->summary);
    text_table_add(table, (const char *)cell.data);
    buffer_done(&cell);
    event_providers_done(&p);
    return ok;
}

static bool add_profiles(struct buffer *out, struct error *err)
{
    static const struct text_column columns[] = { { "--profile", TEXT_LEFT },
                                                  { "records", TEXT_LEFT },
                                                  { "which is --providers", TEXT_LEFT } };
    struct text_table table;
    bool ok = true;
    text_table_init(&table, columns, 3);
    for (const struct event_profile *p = event_profiles; ok && p->name; p++)
        ok = add_providers(&table, p, err);
    text_table_print(&table, 0, out);
    text_table_done(&table);
    return ok;
}

static void add_topics(struct buffer *out)
{
    static const struct text_column columns[] = { { "-e", TEXT_LEFT }, { "records", TEXT_LEFT } };
    struct text_table table;
    text_table_init(&table, columns, 2);
    text_table_add(&table, "cpu");
    text_table_add(&table, "where threads run (the default)");
    text_table_add(&table, "context-switches");
    text_table_add(&table, "where threads leave a CPU");
    for (const struct event_topic *t = event_topics; t->name; t++) {
        text_table_add(&table, t->name);
        text_table_add(&table, t->summary);
    }
    text_table_print(&table, 0, out);
    text_table_done(&table);
}

static bool profiles_run(struct verb_call *call, struct error *err)
{
    struct buffer out;
    (void)call;
    buffer_init(&out, TEXT_MAX);
    add_topics(&out);
    buffer_string(&out, "\n");
    bool ok = add_profiles(&out, err) && stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

const struct verb verb_profiles = {
    .name = "profiles",
    .summary = "list what record -e and record --profile can record",
    .run = profiles_run,
};
