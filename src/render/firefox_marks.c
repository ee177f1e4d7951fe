#include "render/firefox_marks.h"

#include <stdlib.h>

#include "base/mem.h"
#include "render/json_text.h"

static void write_ms(struct output *out, uint64_t ns)
{
    output_fixed(out, ns / 1000, 3);
}

static bool has_samples(const struct profile_thread *thread)
{
    return thread->samples > 0;
}

/* The thread that a mark is shown at: its own, or the first one of its process. 0: none has samples. */
static uint32_t thread_of_mark(const struct profile *p, const struct timeline_mark *mark)
{
    uint32_t any = 0;
    for (uint32_t id = p->thread_count; id-- > 1;) {
        const struct profile_thread *thread = &p->threads[id];
        if (thread->pid != mark->pid || !has_samples(thread))
            continue;
        if (thread->tid == mark->tid)
            return id;
        any = id;
    }
    return any;
}

void firefox_marks_init(struct firefox_marks *w, const struct profile *p, struct intern *strings,
                        unsigned category, struct output *out)
{
    *w = (struct firefox_marks){ .profile = p, .strings = strings, .category = category, .out = out };
    for (unsigned kind = 0; kind < TIMELINE_KINDS; kind++)
        intern_cstr(strings, timeline_kind_name((enum timeline_kind)kind));
    w->thread_of = mem_alloc(p->timeline.mark_count + 1, sizeof *w->thread_of);
    for (size_t i = 0; i < p->timeline.mark_count; i++)
        w->thread_of[i] = thread_of_mark(p, &p->timeline.marks[i]);
}

void firefox_marks_done(struct firefox_marks *w)
{
    free(w->thread_of);
}

enum mark_column { MARK_DATA, MARK_NAME, MARK_START, MARK_END, MARK_PHASE, MARK_CATEGORY, MARK_COLUMNS };

static void write_mark(const struct firefox_marks *w, const struct timeline_mark *mark,
                       enum mark_column column)
{
    enum { PHASE_INSTANT, PHASE_INTERVAL };
    struct output *out = w->out;
    bool instant = mark->from_ns == mark->to_ns;
    switch (column) {
    case MARK_DATA:
        output_text(out, "{\"type\":\"dotnet\"");
        json_member(out, false, "what", mark->text);
        output_char(out, '}');
        break;
    case MARK_NAME:
        output_u64(out, intern_cstr(w->strings, timeline_kind_name((enum timeline_kind)mark->kind)));
        break;
    case MARK_START:
        write_ms(out, mark->from_ns);
        break;
    case MARK_END:
        if (instant)
            output_text(out, "null");
        else
            write_ms(out, mark->to_ns);
        break;
    case MARK_PHASE:
        output_u64(out, instant ? PHASE_INSTANT : PHASE_INTERVAL);
        break;
    case MARK_CATEGORY:
    case MARK_COLUMNS:
        output_u64(out, w->category);
        break;
    }
}

void firefox_marks_write(const struct firefox_marks *w, uint32_t thread)
{
    static const char *const columns[MARK_COLUMNS] = { "data",    "name",  "startTime",
                                                       "endTime", "phase", "category" };
    const struct timeline *told = &w->profile->timeline;
    size_t count = 0;
    for (size_t i = 0; i < told->mark_count; i++)
        count += w->thread_of[i] == thread;
    output_text(w->out, ",\"markers\":{\"length\":");
    output_u64(w->out, count);
    for (unsigned column = 0; column < MARK_COLUMNS; column++) {
        output_text(w->out, ",\"");
        output_text(w->out, columns[column]);
        output_text(w->out, "\":[");
        for (size_t i = 0, written = 0; count && i < told->mark_count; i++) {
            if (w->thread_of[i] != thread)
                continue;
            json_comma(w->out, written++);
            write_mark(w, &told->marks[i], (enum mark_column)column);
        }
        output_char(w->out, ']');
    }
    output_char(w->out, '}');
}

/* The heap of one process, as differences from the size before. */
static void write_counter(const struct firefox_marks *w, const struct timeline_size *sizes, size_t count)
{
    struct output *out = w->out;
    output_text(
        out, "{\"name\":\"GC heap\",\"category\":\"Memory\",\"description\":\"bytes on the heap of .NET\"");
    output_text(out, ",\"pid\":\"");
    output_u64(out, sizes->pid);
    output_text(out, "\",\"mainThreadIndex\":0,\"samples\":{\"length\":");
    output_u64(out, count);
    output_text(out, ",\"time\":[");
    for (size_t i = 0; i < count; i++) {
        json_comma(out, i);
        write_ms(out, sizes[i].time_ns);
    }
    output_text(out, "],\"count\":[");
    for (size_t i = 0; i < count; i++) {
        uint64_t before = i ? sizes[i - 1].bytes : 0, bytes = sizes[i].bytes;
        json_comma(out, i);
        if (bytes < before)
            output_char(out, '-');
        output_u64(out, bytes < before ? before - bytes : bytes - before);
    }
    output_text(out, "]}}");
}

void firefox_marks_write_sizes(const struct firefox_marks *w)
{
    const struct timeline *told = &w->profile->timeline;
    if (!told->size_count)
        return;
    output_text(w->out, ",\n\"counters\":[");
    for (size_t from = 0, to; from < told->size_count; from = to) {
        for (to = from; to < told->size_count && told->sizes[to].pid == told->sizes[from].pid;)
            to++;
        json_comma(w->out, from);
        write_counter(w, told->sizes + from, to - from);
    }
    output_char(w->out, ']');
}
