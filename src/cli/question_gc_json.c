#include "cli/question_gc.h"

#include <stdio.h>

#include "cli/csv_text.h"
#include "cli/json_put.h"
#include "cli/standard_output.h"

enum { CONDITION_BITS = 32 };

static void put_sum(struct json_writer *j, const struct gc_sum *sum)
{
    json_put_u64(j, "count", sum->count);
    json_put_u64(j, "induced", sum->induced);
    json_put_u64(j, "background", sum->background);
    json_put_double(j, "pause_ms", question_ms(sum->pause_ns));
    json_put_known_double(j, "pause_mean_ms", sum->count,
                          sum->count ? question_ms(sum->pause_ns) / (double)sum->count : 0);
    json_put_double(j, "pause_max_ms", question_ms(sum->pause_max_ns));
    json_put_double(j, "suspend_ms", question_ms(sum->suspend_ns));
    json_put_double(j, "suspend_max_ms", question_ms(sum->suspend_max_ns));
    json_put_known_u64(j, "peak_bytes", sum->peak_max != 0, sum->peak_max);
    json_put_known_u64(j, "allocated_bytes", sum->with_allocated != 0, sum->allocated);
    json_put_known_u64(j, "promoted_bytes", sum->with_stats != 0, sum->promoted);
    json_put_known_double(j, "allocated_max_bytes_per_s", sum->allocated_per_s_max > 0,
                          sum->allocated_per_s_max);
    json_put_known_u64(j, "pinned", sum->with_stats != 0, sum->pinned);
}

static void put_process(struct json_writer *j, const struct gc_answer *a, const struct gc_process_stats *p)
{
    uint64_t told_ns = gc_answer_told_ns(a, p->process), pause_ns = p->all.pause_ns + p->other_pause_ns;
    json_begin_object(j);
    question_json_process(j, &a->scope, p->process);
    const struct trace_process *row = &a->scope.trace->processes.rows[p->process];
    const char *version = trace_string(a->scope.trace, row->runtime_version);
    const char *command_line = trace_string(a->scope.trace, row->command_line);
    uint32_t heaps = 0;
    for (size_t i = 0; i < p->count; i++)
        heaps = a->stats.rows[p->first + i].heaps > heaps ? a->stats.rows[p->first + i].heaps : heaps;
    json_put_string(j, "runtime_version", *version ? version : NULL);
    json_put_string(j, "command_line", *command_line ? command_line : NULL);
    json_put_known_u64(j, "heap_count", heaps != 0, heaps);
    json_put_double(j, "told_s", (double)told_ns / 1e9);
    json_put_known_double(j, "paused_share", told_ns, told_ns ? (double)pause_ns / (double)told_ns : 0);
    put_sum(j, &p->all);
    json_put_u64(j, "incomplete", p->incomplete);
    json_put_u64(j, "other_pauses", p->other_pauses);
    json_put_double(j, "other_pause_ms", question_ms(p->other_pause_ns));
    json_put_known_u64(j, "finalized", p->finalized != 0, p->finalized);
    json_put_array(j, "finalized_types");
    for (size_t i = 0; i < a->finalized.count; i++) {
        if (a->finalized.rows[i].process != p->process)
            continue;
        json_begin_object(j);
        json_put_string(j, "type", a->finalized.rows[i].name);
        json_put_u64(j, "count", a->finalized.rows[i].count);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_array(j, "generations");
    for (unsigned gen = 0; gen < 3; gen++) {
        json_begin_object(j);
        json_put_u64(j, "generation", gen);
        put_sum(j, &p->by_generation[gen]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void add_sum(struct gc_sum *to, const struct gc_sum *sum)
{
    to->count += sum->count;
    to->induced += sum->induced;
    to->background += sum->background;
    to->with_stats += sum->with_stats;
    to->with_allocated += sum->with_allocated;
    to->pause_ns += sum->pause_ns;
    to->suspend_ns += sum->suspend_ns;
    to->promoted += sum->promoted;
    to->allocated += sum->allocated;
    to->pinned += sum->pinned;
    to->pause_max_ns = sum->pause_max_ns > to->pause_max_ns ? sum->pause_max_ns : to->pause_max_ns;
    to->suspend_max_ns = sum->suspend_max_ns > to->suspend_max_ns ? sum->suspend_max_ns : to->suspend_max_ns;
    to->peak_max = sum->peak_max > to->peak_max ? sum->peak_max : to->peak_max;
    if (sum->allocated_per_s_max > to->allocated_per_s_max)
        to->allocated_per_s_max = sum->allocated_per_s_max;
}

static void put_reason_count(void *user, const char *reason, uint64_t count)
{
    json_put_u64(user, reason, count);
}

static void put_triggers(struct json_writer *j, const struct gc_answer *a)
{
    json_put_array(j, "triggers");
    for (size_t i = 0; i < a->by_trigger.count; i++) {
        const struct tally_group *group = &a->by_trigger.rows[i];
        const struct tally_row *row = event_group_row(&a->by_trigger, group, 0);
        const struct profile_frame *leaf = event_stacks_leaf(&a->callers, row->node);
        json_begin_object(j);
        json_put_string(j, "function", leaf ? leaf->name : NULL);
        json_put_string(j, "module", leaf && *leaf->module ? leaf->module : NULL);
        json_put_string(j, "reason", intern_text(&a->triggers.texts, row->text));
        json_put_object(j, "by_reason");
        gc_answer_reasons(a, group, put_reason_count, j);
        json_end_object(j);
        json_put_u64(j, "count", group->sum.count);
        json_put_double(j, "pause_ms", group->sum.weight / 1e6);
        json_put_double(j, "pause_max_ms", group->sum.most / 1e6);
        question_json_stack(j, &a->callers, row->node);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_totals(struct json_writer *j, const struct gc_answer *a)
{
    static const char *const keys[] = { "gen0", "gen1", "gen2" };
    struct gc_sum all = { 0 };
    uint64_t by_generation[3] = { 0 }, told_ns = 0, other_ns = 0, other = 0, incomplete = 0;
    for (size_t i = 0; i < a->stats.process_count; i++) {
        const struct gc_process_stats *p = &a->stats.processes[i];
        add_sum(&all, &p->all);
        for (unsigned gen = 0; gen < 3; gen++)
            by_generation[gen] += p->by_generation[gen].count;
        told_ns += gc_answer_told_ns(a, p->process);
        other_ns += p->other_pause_ns;
        other += p->other_pauses;
        incomplete += p->incomplete;
    }
    json_put_object(j, "totals");
    put_sum(j, &all);
    for (unsigned gen = 0; gen < 3; gen++)
        json_put_u64(j, keys[gen], by_generation[gen]);
    json_put_known_double(j, "paused_share", told_ns,
                          told_ns ? (double)(all.pause_ns + other_ns) / (double)told_ns : 0);
    json_put_u64(j, "incomplete", incomplete);
    json_put_u64(j, "other_pauses", other);
    json_put_double(j, "other_pause_ms", question_ms(other_ns));
    json_put_known_double(j, "cpu_ms", a->cpu_ns, question_ms(a->cpu_ns));
    json_put_known_double(j, "gc_cpu_ms", a->cpu_ns, question_ms(a->gc_cpu_ns));
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", a->stats.malformed);
    put_triggers(j, a);
    json_put_array(j, "processes");
    for (size_t i = 0; i < a->stats.process_count; i++)
        put_process(j, a, &a->stats.processes[i]);
    json_end_array(j);
    json_end_object(j);
}

static void put_gens(struct json_writer *j, const struct gc_record *row)
{
    json_put_array(j, "gen");
    for (unsigned gen = 0; gen < GC_EVENT_GENS; gen++) {
        const struct gc_gen_record *g = &row->gen[gen];
        json_begin_object(j);
        json_put_string(j, "name", gc_gen_name(gen));
        json_put_known_u64(j, "before", row->has_before, g->before);
        json_put_known_u64(j, "after", row->has_stats || row->has_before, g->after);
        json_put_known_u64(j, "in", row->has_before, g->in);
        json_put_known_u64(j, "out", row->has_before, g->out);
        json_put_known_u64(j, "fragmentation", row->has_before, g->fragmentation);
        json_put_known_u64(j, "budget", row->has_before, g->budget);
        json_put_known_u64(j, "promoted", row->has_stats, row->stats.promoted_bytes[gen]);
        json_put_known_u64(j, "allocated",
                           row->has_allocated && (gen == 0 || gen >= GC_EVENT_LARGE) && row->has_before,
                           g->allocated);
        json_put_known_double(j, "survival_share", g->has_survival, g->survival_share);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_condemned(struct json_writer *j, uint32_t reasons, uint32_t conditions)
{
    static const char *const keys[] = { "initial", "final", "budget", "time" };
    json_put_object(j, "condemned");
    for (unsigned i = 0; i < 4; i++)
        json_put_u64(j, keys[i], reasons >> (2 * i) & 3);
    json_put_array(j, "because");
    for (unsigned bit = 0; bit < CONDITION_BITS; bit++)
        if (conditions >> bit & 1 && gc_condition_name(bit))
            json_quoted(j, gc_condition_name(bit));
    json_end_array(j);
    json_end_object(j);
}

static void put_heaps(struct json_writer *j, const struct gc_answer *a, const struct gc_record *row)
{
    json_put_array(j, "heaps");
    for (uint32_t at = row->first_heap; at; at = a->stats.heaps[at].next) {
        const struct gc_heap_history_event *heap = &a->stats.heaps[at].told;
        json_begin_object(j);
        json_put_u64(j, "heap", heap->heap);
        put_condemned(j, heap->condemn_reasons, heap->condemn_conditions);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_history(struct json_writer *j, const struct gc_record *row)
{
    const struct gc_global_history_event *h = &row->history;
    json_put_known_u64(j, "heap_count", row->has_history || row->heaps,
                       row->has_history ? h->heaps : row->heaps);
    json_key(j, "compacting");
    if (row->has_history)
        json_bool(j, h->mechanisms & GC_MECHANISM_COMPACTION);
    else
        json_absent(j);
    json_put_known_u64(j, "memory_load_percent", row->has_history && h->has_load, h->memory_load_percent);
    json_put_object(j, "phases_us");
    for (unsigned i = 0; row->has_history && i < h->phases; i++)
        if (h->phase_us[i] <= (row->end_ns - row->start_ns) / 1000 + 1000) /* .NET 8 sends no time there */
            json_put_u64(j, gc_phase_name(i, h->mechanisms), h->phase_us[i]);
    json_end_object(j);
    json_put_object(j, "kept_bytes");
    for (unsigned i = 0; row->has_roots && i < GC_EVENT_ROOTS; i++)
        if (row->root_bytes[i])
            json_put_u64(j, gc_root_kind_name(i), row->root_bytes[i]);
    json_end_object(j);
}

static void put_reason(struct json_writer *j, uint32_t reason)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)reason);
    json_put_string(j, "reason", gc_reason_key(reason) ? gc_reason_key(reason) : number);
    json_put_bool(j, "induced", gc_reason_is_induced(reason));
}

static void put_pauses(struct json_writer *j, const struct gc_answer *a, const struct gc_record *row)
{
    double paused = 0;
    bool known = gc_record_pause_share(row, &paused);
    json_put_double(j, "start_s", capture_time_s(&a->scope.time, row->pause_from_ns));
    json_put_double(j, "pause_ms", question_ms(row->pause_ns));
    json_put_double(j, "suspend_ms", question_ms(row->suspend_ns));
    json_put_double(j, "duration_ms", question_ms(row->end_ns - row->start_ns));
    json_put_u64(j, "pauses", row->pauses);
    json_put_known_double(j, "final_pause_ms", row->final_pause_ns, question_ms(row->final_pause_ns));
    json_put_known_double(j, "paused_share", known, paused);
}

static void put_row(struct json_writer *j, struct gc_answer *a, const struct gc_record *row)
{
    char label[8];
    gc_record_label(row, label);
    json_begin_object(j);
    question_json_process(j, &a->scope, row->process);
    json_put_u64(j, "number", row->number);
    json_put_u64(j, "generation", row->generation);
    json_put_string(j, "label", label);
    put_reason(j, row->reason);
    json_put_string(j, "type", gc_kind_names[row->kind]);
    json_put_bool(j, "turned_blocking", row->turned_blocking);
    put_pauses(j, a, row);
    json_put_known_u64(j, "heap_before_bytes", row->has_before, row->heap_before);
    json_put_known_u64(j, "heap_after_bytes", row->has_stats, row->heap_after);
    json_put_known_u64(j, "peak_bytes", row->has_before, row->peak);
    json_put_known_u64(j, "promoted_bytes", row->has_stats, row->promoted);
    json_put_known_u64(j, "allocated_bytes", row->has_allocated, row->allocated);
    put_gens(j, row);
    json_put_known_u64(j, "pinned", row->has_stats, row->stats.pinned_count);
    json_put_known_u64(j, "pinned_bytes", row->has_pins, row->pinned_bytes);
    json_put_known_u64(j, "handles", row->has_stats, row->stats.handles);
    json_put_known_u64(j, "finalizable_bytes", row->has_stats, row->stats.finalizable_bytes);
    json_put_known_u64(j, "finalizable_count", row->has_stats, row->stats.finalizable_count);
    put_history(j, row);
    put_heaps(j, a, row);
    json_put_object(j, "trigger");
    question_json_thread(j, &a->scope, "thread", row->trigger_thread);
    question_json_stack(j, &a->stacks, event_stacks_node(&a->stacks, row->trigger_stack));
    json_end_object(j);
    json_end_object(j);
}

bool question_gc_json(struct gc_answer *a, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.gc/1");
    put_totals(&j, a);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < a->row_count; i++)
        put_row(&j, a, a->rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static void csv_row(struct csv_text *csv, struct gc_answer *a, const struct gc_record *row,
                    struct buffer *stack)
{
    double paused = 0;
    bool known = gc_record_pause_share(row, &paused);
    csv_u64(csv, a->scope.trace->processes.rows[row->process].pid);
    csv_u64(csv, row->number);
    csv_u64(csv, row->generation);
    csv_string(csv, gc_kind_names[row->kind]);
    csv_string(csv, gc_reason_key(row->reason));
    csv_double(csv, capture_time_s(&a->scope.time, row->pause_from_ns));
    csv_double(csv, question_ms(row->pause_ns));
    csv_double(csv, question_ms(row->suspend_ns));
    csv_double(csv, question_ms(row->end_ns - row->start_ns));
    csv_known_double(csv, known, paused);
    csv_known_u64(csv, row->has_before, row->heap_before);
    csv_known_u64(csv, row->has_stats, row->heap_after);
    csv_known_u64(csv, row->has_before, row->peak);
    csv_known_u64(csv, row->has_stats, row->promoted);
    csv_known_u64(csv, row->has_allocated, row->allocated);
    for (unsigned gen = 0; gen < GC_EVENT_GENS; gen++) {
        const struct gc_gen_record *g = &row->gen[gen];
        csv_known_u64(csv, row->has_before, g->before);
        csv_known_u64(csv, row->has_before || row->has_stats, g->after);
        csv_known_double(csv, g->has_survival, g->survival_share);
        csv_known_u64(csv, row->has_before, g->fragmentation);
    }
    csv_known_u64(csv, row->has_stats, row->stats.finalizable_bytes);
    csv_known_u64(csv, row->has_stats, row->stats.pinned_count);
    csv_known_u64(csv, row->trigger_thread != 0, a->scope.trace->threads.rows[row->trigger_thread].tid);
    buffer_clear(stack);
    question_stack_csv(&a->stacks, event_stacks_node(&a->stacks, row->trigger_stack), stack);
    buffer_u8(stack, 0);
    csv_string(csv, (const char *)stack->data);
    csv_end_row(csv);
}

bool question_gc_csv(struct gc_answer *a, struct error *err)
{
    struct buffer out, stack;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&stack, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "pid,number,generation,type,reason,start_s,pause_ms,suspend_ms,duration_ms,paused_share,"
                     "heap_before_bytes,heap_after_bytes,peak_bytes,promoted_bytes,allocated_bytes,"
                     "gen0_before,gen0_after,gen0_survival,gen0_fragmentation,"
                     "gen1_before,gen1_after,gen1_survival,gen1_fragmentation,"
                     "gen2_before,gen2_after,gen2_survival,gen2_fragmentation,"
                     "large_before,large_after,large_survival,large_fragmentation,"
                     "pinned_before,pinned_after,pinned_survival,pinned_fragmentation,"
                     "finalizable_bytes,pinned,trigger_thread,trigger_stack");
    for (size_t i = 0; i < a->row_count; i++)
        csv_row(&csv, a, a->rows[i], &stack);
    buffer_done(&stack);
    return question_print(&out, err);
}
