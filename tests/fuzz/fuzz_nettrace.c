#include <stdint.h>
#include <stdlib.h>

#include "read/nettrace.h"

static bool touch_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    uint64_t *sum = user;
    *sum += event->time_ns + event->type->event_id;
    const struct span spans[] = { event->payload, event->stack, event->activity, event->related_activity };
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        for (size_t at = 0; at < spans[i].size; at++)
            *sum += spans[i].data[at];
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes in one piece and in pieces must tell the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sums[2] = { 0 };
    bool oks[2];
    for (unsigned way = 0; way < 2; way++) {
        const struct nettrace_sink sink = { .user = &sums[way], .on_event = touch_event };
        struct nettrace_reader *r = nettrace_reader_new(&sink);
        bool ok = true;
        for (size_t at = 0, piece; ok && at < size; at += piece) {
            piece = way == 0 || size - at < 7 ? size - at : 7;
            ok = nettrace_reader_feed(r, span_of(data + at, piece), NULL);
        }
        oks[way] = ok;
        nettrace_reader_free(r);
    }
    if (sums[0] != sums[1] || oks[0] != oks[1])
        abort();
    return 0;
}
