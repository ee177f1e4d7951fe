#include "cli/groups_print.h"

#include "cli/json_put.h"
#include "cli/standard_output.h"
#include "cli/text_fit.h"

enum { HEAD_INDENT = 9 };

static const struct event_stacks *stacks_of(const struct groups_answer *a)
{
    return a->groups->tally->stacks;
}

static void put_place(struct json_writer *j, const struct groups_form *form, const struct groups_answer *a,
                      const struct tally_row *row)
{
    json_begin_object(j);
    json_put_string(j, form->text, question_groups_text(a->groups, row));
    form->json_place(j, a, row);
    question_json_stack(j, stacks_of(a), row->node);
    json_end_object(j);
}

static void put_row(struct json_writer *j, const struct groups_form *form, const struct groups_answer *a,
                    const struct tally_group *group)
{
    json_begin_object(j);
    question_groups_json_key(j, a->scope, a->groups, group, form->text);
    form->json_row(j, a, group);
    question_json_stack(j, stacks_of(a), event_group_row(a->groups, group, 0)->node);
    json_put_array(j, form->places);
    for (size_t i = 0; i < question_groups_places(a->scope->call->values, group); i++)
        put_place(j, form, a, event_group_row(a->groups, group, i));
    json_end_array(j);
    json_end_object(j);
}

static bool put_json(const struct groups_form *form, const struct groups_answer *a, size_t rows,
                     struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, a->scope, form->schema);
    json_put_object(&j, "totals");
    form->json_totals(&j, a);
    json_end_object(&j);
    question_groups_json_by(&j, a->groups, form->text);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows; i++)
        put_row(&j, form, a, &a->groups->rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static void put_csv_row(struct csv_text *csv, const struct groups_form *form, const struct groups_answer *a,
                        const struct tally_group *group, const struct tally_row *row, struct buffer *stack)
{
    buffer_clear(stack);
    question_stack_csv(stacks_of(a), row->node, stack);
    buffer_u8(stack, 0);
    csv_u64(csv, a->scope->trace->processes.rows[row->process].pid);
    csv_string(csv, question_groups_text(a->groups, row));
    form->csv_cells(csv, a, group, row);
    csv_string(csv, (const char *)stack->data);
    csv_end_row(csv);
}

static bool put_csv(const struct groups_form *form, const struct groups_answer *a, size_t rows,
                    struct error *err)
{
    struct buffer out, stack;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&stack, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, form->csv_titles);
    for (size_t i = 0; i < rows; i++) {
        const struct tally_group *group = &a->groups->rows[i];
        size_t count = form->csv_groups ? 1 : group->count;
        for (size_t k = 0; k < count; k++)
            put_csv_row(&csv, form, a, group, event_group_row(a->groups, group, k), &stack);
    }
    buffer_done(&stack);
    return question_print(&out, err);
}

static bool has_stacks(const struct event_tally *tally)
{
    for (size_t i = 1; i < tally->row_count; i++)
        if (tally->rows[i].node)
            return true;
    return false;
}

static bool put_text(const struct groups_form *form, const struct groups_answer *a, size_t rows,
                     struct text_table *table, struct error *err)
{
    struct buffer out, cell;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&cell, OUTPUT_BYTES_MAX);
    form->head(a, &out);
    text_wrap(&out, 0, HEAD_INDENT, stdout_width());
    for (size_t i = 0; i < rows; i++)
        form->add_row(a, &a->groups->rows[i], table, &cell);
    if (rows)
        text_table_print(table, stdout_width(), &out);
    question_groups_more(a->groups, rows, &out);
    if (rows && !has_stacks(a->groups->tally))
        buffer_string(&out, "no stacks: the runtime told none with these events, as that of Native AOT "
                            "programs never does\n");
    buffer_done(&cell);
    return question_print(&out, err);
}

bool groups_print(const struct groups_form *form, const struct groups_answer *a,
                  const struct text_column *columns, size_t column_count, struct error *err)
{
    const struct report_values *v = a->scope->call->values;
    size_t rows = question_groups_rows(v, a->groups);
    if (v->json)
        return put_json(form, a, rows, err);
    if (v->csv)
        return put_csv(form, a, rows, err);
    struct text_table table;
    text_table_init(&table, columns, column_count);
    bool ok = put_text(form, a, rows, &table, err);
    text_table_done(&table);
    return ok;
}
