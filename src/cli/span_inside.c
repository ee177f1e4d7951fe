#include "cli/span_inside.h"

#include <math.h>
#include <stdio.h>

#include "base/own.h"
#include "base/units.h"
#include "cli/json_put.h"

enum { CELL_MAX = 32 };

enum figure_unit { UNIT_NS, UNIT_COUNT, UNIT_BYTES };

/* One thing that is known of a span, or not. */
struct figure {
    const char *key, *title;
    enum figure_unit unit;
    enum thread_state state;                         /* whose time it is */
    double (*value)(const struct span_account *row); /* of what is no thread's state; else NULL */
    bool (*known)(const struct span_accounts *a, const struct span_account *row);
    unsigned char spare; /* text_column.spare */
};

static double away(const struct span_account *row)
{
    return (double)row->away_ns;
}

static double unknown(const struct span_account *row)
{
    return (double)row->unknown_ns + (double)row->times.ns[THREAD_UNKNOWN];
}

static double exceptions(const struct span_account *row)
{
    return (double)row->times.exceptions;
}

static double allocated(const struct span_account *row)
{
    return row->times.allocated_bytes;
}

static double collections(const struct span_account *row)
{
    return (double)row->collections;
}

static double value_of(const struct figure *f, const struct span_account *row)
{
    return f->value ? f->value(row) : (double)row->times.ns[f->state];
}

static bool has_threads(const struct span_account *row)
{
    return row->known[SPAN_THREADS_TOLD] || row->known[SPAN_THREADS_ASSUMED];
}

static bool knows_running(const struct span_accounts *a, const struct span_account *row)
{
    return (a->has_cpu || a->has_switches) && has_threads(row);
}

static bool knows_switches(const struct span_accounts *a, const struct span_account *row)
{
    return a->has_switches && has_threads(row);
}

static bool knows_locks(const struct span_accounts *a, const struct span_account *row)
{
    return a->has_locks && has_threads(row);
}

static bool knows_pauses(const struct span_accounts *a, const struct span_account *row)
{
    return a->has_collections && has_threads(row);
}

static bool knows_away(const struct span_accounts *a, const struct span_account *row)
{
    (void)a;
    return row->known[SPAN_THREADS_TOLD] != 0;
}

static bool knows_always(const struct span_accounts *a, const struct span_account *row)
{
    (void)a;
    (void)row;
    return true;
}

static bool knows_exceptions(const struct span_accounts *a, const struct span_account *row)
{
    return a->has_exceptions && has_threads(row);
}

static bool knows_allocations(const struct span_accounts *a, const struct span_account *row)
{
    return a->has_allocations && has_threads(row);
}

static bool knows_collections(const struct span_accounts *a, const struct span_account *row)
{
    (void)row;
    return a->has_collections;
}

static const struct figure figures[] = {
    { "ran_ms", "ran", UNIT_NS, THREAD_RAN, NULL, knows_running },
    { "blocked_ms", "blocked", UNIT_NS, THREAD_BLOCKED, NULL, knows_switches },
    { "ready_ms", "ready", UNIT_NS, THREAD_READY, NULL, knows_switches, 1 },
    { "off_cpu_ms", "off CPU", UNIT_NS, THREAD_OFF, NULL, knows_switches },
    { "lock_ms", "lock", UNIT_NS, THREAD_LOCK, NULL, knows_locks },
    { "gc_ms", "in GC", UNIT_NS, THREAD_GC, NULL, knows_pauses },
    { "away_ms", "away", UNIT_NS, 0, away, knows_away },
    { "unknown_ms", "unknown", UNIT_NS, 0, unknown, knows_always, 2 },
    { "exceptions", "thrown", UNIT_COUNT, 0, exceptions, knows_exceptions },
    { "allocated_bytes", "allocated", UNIT_BYTES, 0, allocated, knows_allocations, 3 },
    { "collections", "GCs", UNIT_COUNT, 0, collections, knows_collections, 4 },
};

_Static_assert(ARRAY_LEN(figures) <= SPAN_INSIDE_COLUMNS, "columns");

const char span_inside_titles[] = ",threads_known,ran_ms,blocked_ms,ready_ms,off_cpu_ms,lock_ms,inside_gc_ms,"
                                  "away_ms,unknown_ms,exceptions,allocated_bytes,collections";

bool span_inside_known(const struct span_accounts *accounts)
{
    return has_threads(&accounts->total);
}

/* A column of nothing but "-" is left out. */
static bool is_shown(const struct span_accounts *a, const struct figure *f)
{
    return f->known(a, &a->total) && value_of(f, &a->total) > 0;
}

size_t span_inside_columns(const struct span_accounts *accounts, struct text_column *out)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        if (is_shown(accounts, &figures[i]))
            out[count++] = (struct text_column){ figures[i].title, TEXT_RIGHT, figures[i].spare };
    return count;
}

static void cell_text(const struct figure *f, double value, char out[CELL_MAX])
{
    switch (f->unit) {
    case UNIT_NS:
        snprintf(out, CELL_MAX, "%s", units_duration((uint64_t)llround(value)).text);
        break;
    case UNIT_BYTES:
        snprintf(out, CELL_MAX, "%s", units_size((uint64_t)llround(value)).text);
        break;
    case UNIT_COUNT:
        if (value == floor(value))
            snprintf(out, CELL_MAX, "%s", units_count((uint64_t)value).text);
        else
            snprintf(out, CELL_MAX, "%.2f", value);
        break;
    }
}

void span_inside_cells(const struct span_accounts *accounts, const struct span_account *row, uint64_t count,
                       struct text_table *table)
{
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        char cell[CELL_MAX];
        if (!is_shown(accounts, f))
            continue;
        double value = f->known(accounts, row) ? value_of(f, row) / (double)count : 0;
        cell_text(f, value, cell);
        text_table_add(table, value > 0 ? cell : NULL);
    }
}

static double shown_value(const struct figure *f, const struct span_account *row)
{
    return f->unit == UNIT_NS ? value_of(f, row) / 1e6 : value_of(f, row);
}

void span_inside_json(const struct span_accounts *accounts, const struct span_account *row,
                      struct json_writer *j)
{
    json_put_object(j, "inside");
    json_put_object(j, "threads");
    json_put_u64(j, "told", row->known[SPAN_THREADS_TOLD]);
    json_put_u64(j, "assumed", row->known[SPAN_THREADS_ASSUMED]);
    json_put_u64(j, "unknown", row->known[SPAN_THREADS_UNKNOWN]);
    json_end_object(j);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        bool known = f->known(accounts, row);
        if (f->unit == UNIT_NS)
            json_put_known_double(j, f->key, known, shown_value(f, row));
        else
            json_put_known_u64(j, f->key, known, (uint64_t)llround(value_of(f, row)));
    }
    json_end_object(j);
}

static const char *threads_known(const struct span_account *row)
{
    return row->known[SPAN_THREADS_TOLD] ? "told" : row->known[SPAN_THREADS_ASSUMED] ? "assumed" : "unknown";
}

void span_inside_csv(const struct span_accounts *accounts, const struct span_account *row,
                     struct csv_text *csv)
{
    csv_string(csv, threads_known(row));
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        bool known = f->known(accounts, row);
        if (f->unit == UNIT_NS)
            csv_known_double(csv, known, shown_value(f, row));
        else
            csv_known_u64(csv, known, (uint64_t)llround(value_of(f, row)));
    }
}
