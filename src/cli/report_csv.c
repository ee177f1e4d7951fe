#include "cli/report_csv.h"

#include <string.h>

#include "base/own.h"
#include "cli/csv_text.h"
#include "cli/report_threads.h"

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void csv_rows(const struct profile *p, const struct hot_table *table, bool is_code, bool self_known,
                     size_t top, struct buffer *out)
{
    struct csv_text csv;
    csv_init(&csv, out);
    csv_titles(&csv, "name,module,kind,tier,file,line,self,total,unit,samples,self_share,total_share");
    for (size_t i = 0; i < table->count && (!top || i < top); i++) {
        const struct hot_row *row = &table->rows[i];
        bool known = is_code && row->kind != CODE_UNKNOWN;
        csv_string(&csv, row->name);
        csv_string(&csv, row->module);
        csv_string(&csv, known ? code_kind_name((enum code_kind)row->kind) : NULL);
        csv_string(&csv, code_tier_name((enum code_tier)row->tier));
        csv_string(&csv, row->file);
        csv_known_u64(&csv, row->line != 0, row->line);
        csv_known_u64(&csv, self_known, row->self);
        csv_u64(&csv, row->total);
        csv_string(&csv, p->weight_unit);
        csv_u64(&csv, row->samples);
        csv_known_double(&csv, self_known, share(row->self, p->counts.weight));
        csv_double(&csv, share(row->total, p->counts.weight));
        csv_end_row(&csv);
    }
}

void report_csv_hot(const struct profile *p, const struct hot_table *table, enum hot_by by, size_t top,
                    struct buffer *out)
{
    csv_rows(p, table, by != HOT_BY_THREAD && by != HOT_BY_PROCESS, true, top, out);
}

void report_csv_neighbours(const struct profile *p, const struct call_neighbours *n, size_t top,
                           struct buffer *out)
{
    csv_rows(p, &n->table, true, false, top, out);
}

void report_csv_threads(const struct profile *p, size_t top, struct buffer *out)
{
    struct csv_text csv;
    size_t count;
    AUTO_FREE const struct profile_thread **rows = report_threads(p, top, &count);
    bool is_time = strcmp(p->weight_unit, "ns") == 0;
    csv_init(&csv, out);
    csv_titles(&csv, "pid,tid,name,samples,cpu_s,wall_s");
    for (size_t i = 0; i < count; i++) {
        double seconds = (double)rows[i]->weight / 1e9;
        csv_u64(&csv, rows[i]->pid);
        csv_u64(&csv, rows[i]->tid);
        csv_string(&csv, rows[i]->name);
        csv_u64(&csv, rows[i]->samples);
        csv_known_double(&csv, is_time && !p->is_wall, seconds);
        csv_known_double(&csv, is_time && p->is_wall, seconds);
        csv_end_row(&csv);
    }
}
