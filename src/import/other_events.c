#include "import/other_events.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "import/import_note.h"
#include "trace/facts.h"

enum {
    NAME_BYTES_MAX = 64,
    NAMES_BYTES_MAX = OTHER_EVENTS_MAX * (NAME_BYTES_MAX + 1),
    TOLD_BYTES_MAX = 2 * NAMES_BYTES_MAX,
};

void other_events_init(struct other_events *others)
{
    *others = (struct other_events){ 0 };
    intern_init(&others->names, NAMES_BYTES_MAX);
}

void other_events_done(struct other_events *others)
{
    intern_done(&others->names);
}

void other_events_add(struct other_events *others, struct span name, uint64_t samples)
{
    if (name.size > NAME_BYTES_MAX)
        name.size = NAME_BYTES_MAX;
    uint32_t id = intern_add(&others->names, name);
    others->counts[id < OTHER_EVENTS_MAX ? id : 0] += samples;
}

static void put_event(struct buffer *out, const char *name, uint64_t count)
{
    if (count)
        buffer_format(out, "%s%s (%" PRIu64 ")", out->size ? ", " : "", name, count);
}

void other_events_tell(const struct other_events *others, const char *taken, struct trace *t)
{
    struct buffer told;
    buffer_init(&told, TOLD_BYTES_MAX);
    for (uint32_t id = 1; id < others->names.count && id < OTHER_EVENTS_MAX; id++)
        put_event(&told, intern_text(&others->names, id), others->counts[id]);
    put_event(&told, "more", others->counts[0]);
    if (told.size) {
        buffer_u8(&told, 0);
        trace_set_fact(t, FACT_EVENTS_LEFT_OUT, (const char *)told.data);
        import_note(t, "samples of other events than %s are left out: %s", taken, (const char *)told.data);
    }
    buffer_done(&told);
}
