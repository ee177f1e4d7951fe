#include "cli/question_groups.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/json_put.h"

enum { STACK_FRAMES_SHOWN = 4, SHARE_TEXT = 32 };

static const char *const by_words[TALLY_BYS] = { NULL, "stack", "function", "process" };

static bool by_find(const char *word, const char *text, enum tally_by *out)
{
    *out = TALLY_BY_TEXT;
    for (unsigned i = 0; i < TALLY_BYS; i++)
        if (strcmp(word, by_words[i] ? by_words[i] : text) == 0) {
            *out = (enum tally_by)i;
            return true;
        }
    return false;
}

bool question_groups_check(const struct report_values *v, const char *text, struct error *err)
{
    enum tally_by by;
    if (by_find(report_by_word(v, text), text, &by))
        return true;
    error_set(err, ERROR_USAGE, "--by does not know '%s'", v->by);
    return error_hint(err, "one of: %s, stack, function, process", text);
}

enum tally_by question_groups_by(const struct report_values *v, const char *text)
{
    enum tally_by by;
    by_find(report_by_word(v, text), text, &by);
    return by;
}

size_t question_groups_rows(const struct report_values *v, const struct event_groups *groups)
{
    size_t top = report_top(v, v->json || v->csv ? 0 : GROUPS_ROWS_SHOWN);
    return top && top < groups->count ? top : groups->count;
}

size_t question_groups_places(const struct report_values *v, const struct tally_group *group)
{
    size_t most = v->top == 0 ? SIZE_MAX : GROUPS_PLACES;
    return group->count < most ? group->count : most;
}

const char *question_groups_text(const struct event_groups *groups, const struct tally_row *row)
{
    const char *text = intern_text(&groups->tally->texts, row->text);
    return *text ? text : NULL;
}

const char *question_groups_detail(const struct event_groups *groups, const struct tally_row *row)
{
    const char *text = intern_text(&groups->tally->texts, row->detail);
    return *text ? text : NULL;
}

void question_groups_json_by(struct json_writer *j, const struct event_groups *groups, const char *text)
{
    json_put_string(j, "by", groups->by == TALLY_BY_TEXT ? text : by_words[groups->by]);
}

void question_groups_json_key(struct json_writer *j, const struct question_scope *scope,
                              const struct event_groups *groups, const struct tally_group *group,
                              const char *text)
{
    const struct tally_row *row = event_group_row(groups, group, 0);
    const struct profile_frame *leaf = event_stacks_leaf(groups->tally->stacks, row->node);
    json_put_string(j, text, question_groups_text(groups, row));
    json_put_string(j, "function", leaf ? leaf->name : NULL);
    json_put_string(j, "module", leaf && *leaf->module ? leaf->module : NULL);
    question_json_process(j, scope, row->process);
}

void question_groups_name(const struct question_scope *scope, const struct event_groups *groups,
                          const struct tally_group *group, struct buffer *out)
{
    const struct tally_row *row = event_group_row(groups, group, 0);
    const char *text = question_groups_text(groups, row);
    unsigned frames = groups->by == TALLY_BY_STACK ? STACK_FRAMES_SHOWN : 1;
    buffer_clear(out);
    switch (groups->by) {
    case TALLY_BY_STACK:
    case TALLY_BY_FUNCTION:
        question_stack_text(groups->tally->stacks, row->node, frames, out);
        if (!row->node)
            buffer_string(out, "[no stack]");
        break;
    case TALLY_BY_PROCESS:
        question_process(scope, row->process, out);
        break;
    case TALLY_BY_TEXT:
    case TALLY_BYS:
        buffer_string(out, text ? text : "[unknown]");
        break;
    }
    buffer_u8(out, 0);
}

void question_groups_add_share(struct text_table *table, double part, double whole)
{
    char text[SHARE_TEXT];
    snprintf(text, sizeof text, "%.1f", whole > 0 ? part * 100 / whole : 0);
    text_table_add(table, text);
}

void question_groups_more(const struct event_groups *groups, size_t shown, struct buffer *out)
{
    if (shown < groups->count)
        buffer_format(out, "... %zu more (--top 0 shows all)\n", groups->count - shown);
}
