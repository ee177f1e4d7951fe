#include "cli/event_choice.h"

#include <string.h>

enum { CHOICE_TEXT_MAX = 1 << 20 };

const struct option_spec event_choice_specs[] = {
    { NULL, 0, OPTION_HEADING, 0, "of the question events", NULL, NULL },
    { "counts", 0, OPTION_FLAG, offsetof(struct event_choice, counts), "how many there are of each kind",
      NULL, NULL },
    { "samples", 0, OPTION_FLAG, offsetof(struct event_choice, samples),
      "with samples and context switches among them, as events of the provider Linux", NULL, NULL },
    { "provider", 0, OPTION_STRING, offsetof(struct event_choice, provider), "only of this provider", "GLOB",
      NULL },
    { "text", 0, OPTION_STRING, offsetof(struct event_choice, text),
      "only with this in their name or a field; with ! in front: without", "TEXT", NULL },
    { "where", 0, OPTION_STRING_LIST, offsetof(struct event_choice, where),
      "only with a field that holds that; also != < > <= >=, and globs", "FIELD=VALUE", NULL },
    { "columns", 0, OPTION_STRING, offsetof(struct event_choice, columns),
      "show these fields; A.B: one inside another", "A,B,...", NULL },
    { "stacks", 0, OPTION_FLAG, offsetof(struct event_choice, stacks), "show their stacks, too", NULL, NULL },
    { 0 },
};

static const struct {
    const char *sign;
    enum event_relation relation;
} relations[] = {
    /* the longer ones first */
    { "!=", EVENT_IS_NOT }, { "==", EVENT_IS },  { "<=", EVENT_AT_MOST }, { ">=", EVENT_AT_LEAST },
    { "=", EVENT_IS },      { "<", EVENT_LESS }, { ">", EVENT_MORE },
};

static const char *keep(struct event_wanted *w, const char *text, size_t size)
{
    const char *kept = arena_string(&w->texts, span_of(text, size));
    return kept ? kept : "";
}

static bool read_condition(struct event_wanted *w, const char *text, struct error *err)
{
    size_t name = strcspn(text, "!=<>");
    for (size_t i = 0; name && i < sizeof relations / sizeof *relations; i++) {
        size_t size = strlen(relations[i].sign);
        if (strncmp(text + name, relations[i].sign, size) != 0)
            continue;
        struct event_condition *c = &w->conditions[w->condition_count++];
        c->field = keep(w, text, name);
        c->relation = relations[i].relation;
        c->value = keep(w, text + name + size, strlen(text + name + size));
        return true;
    }
    error_set(err, ERROR_USAGE, "--where wants a field, a relation and a value, not '%s'", text);
    return error_hint(err, "as in: --where Reason=Induced, --where 'ObjectSize>100000'");
}

static bool read_columns(struct event_wanted *w, const char *text, struct error *err)
{
    while (*text) {
        size_t size = strcspn(text, ",");
        if (w->column_count == EVENT_COLUMNS_MAX)
            return error_set(err, ERROR_USAGE, "--columns takes %d fields at most", EVENT_COLUMNS_MAX);
        if (size)
            w->columns[w->column_count++] = keep(w, text, size);
        text += size + (text[size] != 0);
    }
    return true;
}

static bool read_all(const struct event_choice *choice, struct event_wanted *w, struct error *err)
{
    if (choice->where.count > EVENT_CONDITIONS_MAX)
        return error_set(err, ERROR_USAGE, "--where can be given %d times at most", EVENT_CONDITIONS_MAX);
    for (size_t i = 0; i < choice->where.count; i++)
        if (!read_condition(w, choice->where.items[i], err))
            return false;
    return !choice->columns || read_columns(w, choice->columns, err);
}

bool event_wanted_read(const struct event_choice *choice, struct event_wanted *out, struct error *err)
{
    struct event_wanted w = { 0 };
    arena_init(&w.texts, CHOICE_TEXT_MAX);
    if (!read_all(choice, &w, err)) {
        arena_done(&w.texts);
        return false;
    }
    *out = w;
    return true;
}

void event_wanted_done(struct event_wanted *w)
{
    arena_done(&w->texts);
}
