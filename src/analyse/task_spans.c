#include "analyse/task_spans.h"

#include <string.h>

#include "analyse/activity_spans.h"
#include "analyse/span_account.h"
#include "analyse/told_events.h"
#include "clr/provider_names.h"

enum { TASK_KEYWORD = 0x2, TASK_LEVEL = 4 };

enum task_event_id {
    TASK_SCHEDULED = 7,
    TASK_STARTED = 8,
    TASK_COMPLETED = 9,
    TASK_WAIT_BEGIN = 10,
    TASK_WAIT_END = 11,
};

static const uint16_t task_ids[] = {
    TASK_SCHEDULED, TASK_STARTED, TASK_COMPLETED, TASK_WAIT_BEGIN, TASK_WAIT_END, 0,
};

enum task_span { SPAN_QUEUED, SPAN_RUN, SPAN_WAIT, SPAN_AWAIT, TASK_SPANS };

enum { WAITS_ON_THREAD = 1 }; /* what a wait's "Behavior" is; else it is awaited */

struct task_reading {
    struct task_spans *spans;
    struct told_events *told;
    uint32_t kinds[TASK_SPANS];
};

bool task_spans_wants(const char *provider, uint32_t event_id)
{
    return (strcmp(provider, TASKS_PROVIDER) == 0 && told_ids_have(task_ids, event_id)) ||
           activity_spans_wants(provider, event_id) || span_accounts_wants(provider, event_id);
}

bool task_spans_asked(const struct trace *t)
{
    return told_was_asked(t, TASKS_PROVIDER, TASK_KEYWORD, TASK_LEVEL);
}

/* A process's task, and what of it; threads can wait for it, each for itself: `thread`, else 0. */
static uint32_t key_of(const struct told_event *e, uint64_t task, enum task_span what, uint32_t thread,
                       uint8_t key[16])
{
    uint32_t words[4] = { (uint32_t)task, (uint32_t)(task >> 32), what, thread };
    memcpy(key, words, sizeof words);
    return e->process;
}

static uint32_t name_of(struct task_reading *r, const struct told_event *e)
{
    uint32_t node = event_stacks_node(&r->spans->stacks, told_row(r->told, e)->stack);
    const struct profile_frame *leaf = event_stacks_leaf(&r->spans->stacks, node);
    uint32_t id = leaf ? intern_cstr(&r->spans->table.texts, leaf->name) : 0;
    r->spans->table.is_full |= leaf && !id;
    return id;
}

static struct span_row span_of_event(struct task_reading *r, const struct told_event *e, enum task_span kind,
                                     uint32_t name)
{
    const struct trace_event *row = told_row(r->told, e);
    return (struct span_row){ .start_ns = e->time_ns,
                              .process = e->process,
                              .thread = row->thread,
                              .stack = row->stack,
                              .kind = r->kinds[kind],
                              .name = name,
                              .on_one_thread = row->thread && (kind == SPAN_RUN || kind == SPAN_WAIT),
                              .status = SPAN_STATUS_NONE };
}

static void on_started(struct task_reading *r, const struct told_event *e, uint64_t task)
{
    struct span_table *table = &r->spans->table;
    uint8_t key[16];
    uint32_t scope = key_of(e, task, SPAN_QUEUED, 0, key);
    const struct span_row *queued = span_table_find(table, key, scope);
    uint32_t name = queued ? queued->name : name_of(r, e);
    if (queued)
        span_table_end(table, key, scope, e->time_ns);
    key_of(e, task, SPAN_RUN, 0, key);
    struct span_row row = span_of_event(r, e, SPAN_RUN, name);
    span_table_begin(table, key, scope, &row);
}

static void on_completed(struct task_reading *r, const struct told_event *e, uint64_t task)
{
    uint8_t key[16];
    uint32_t scope = key_of(e, task, SPAN_RUN, 0, key);
    struct span_row *run = span_table_find(&r->spans->table, key, scope);
    if (run)
        run->failed = told_number(r->told, e, "IsExceptional", 0) != 0;
    span_table_end(&r->spans->table, key, scope, e->time_ns);
}

static void on_wait_begin(struct task_reading *r, const struct told_event *e, uint64_t task)
{
    bool is_thread = told_number(r->told, e, "Behavior", 0) == WAITS_ON_THREAD;
    enum task_span what = is_thread ? SPAN_WAIT : SPAN_AWAIT;
    struct span_row row = span_of_event(r, e, what, name_of(r, e));
    uint8_t key[16];
    uint32_t scope = key_of(e, task, what, is_thread ? row.thread : 0, key);
    span_table_begin(&r->spans->table, key, scope, &row);
}

/* It does not say which kind ends: a thread that waits for the task ends its own wait. */
static void on_wait_end(struct task_reading *r, const struct told_event *e, uint64_t task)
{
    uint8_t key[16];
    uint32_t scope = key_of(e, task, SPAN_WAIT, told_row(r->told, e)->thread, key);
    if (!span_table_find(&r->spans->table, key, scope))
        key_of(e, task, SPAN_AWAIT, 0, key);
    span_table_end(&r->spans->table, key, scope, e->time_ns);
}

static void on_scheduled(struct task_reading *r, const struct told_event *e, uint64_t task)
{
    struct span_row row = span_of_event(r, e, SPAN_QUEUED, name_of(r, e));
    uint8_t key[16];
    uint32_t scope = key_of(e, task, SPAN_QUEUED, 0, key);
    span_table_begin(&r->spans->table, key, scope, &row);
}

static void read_event(struct task_reading *r, const struct told_event *e)
{
    uint64_t task = told_number(r->told, e, "TaskID", 0);
    if (!task) {
        r->spans->malformed++;
        return;
    }
    switch ((enum task_event_id)e->id) {
    case TASK_SCHEDULED:
        on_scheduled(r, e, task);
        break;
    case TASK_STARTED:
        on_started(r, e, task);
        break;
    case TASK_COMPLETED:
        on_completed(r, e, task);
        break;
    case TASK_WAIT_BEGIN:
        on_wait_begin(r, e, task);
        break;
    case TASK_WAIT_END:
        on_wait_end(r, e, task);
        break;
    }
}

void task_spans_init(struct task_spans *spans, const struct trace *t, bool raw_names, uint64_t from_ns,
                     uint64_t to_ns)
{
    static const char *const kinds[TASK_SPANS] = { "queued", "run", "wait", "await" };
    *spans = (struct task_spans){ 0 };
    struct told_events told;
    event_stacks_init(&spans->stacks, t, raw_names, EVENT_CUT_TASK);
    span_table_init(&spans->table);
    told_events_init(&told, t,
                     &(struct told_choice){
                         .provider = TASKS_PROVIDER, .ids = task_ids, .from_ns = from_ns, .to_ns = to_ns });
    struct task_reading r = { .spans = spans, .told = &told };
    for (unsigned i = 0; i < TASK_SPANS; i++)
        r.kinds[i] = intern_cstr(&spans->table.texts, kinds[i]);
    for (size_t i = 0; i < told.count; i++)
        read_event(&r, &told.rows[i]);
    spans->any = told.count != 0;
    told_events_done(&told);
    spans->any |= activity_spans_add(&spans->table, t, from_ns, to_ns, &spans->by_thread);
    span_table_seal(&spans->table, t);
}

void task_spans_done(struct task_spans *spans)
{
    span_table_done(&spans->table);
    event_stacks_done(&spans->stacks);
}
