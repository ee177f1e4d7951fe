/*
 * nettrace_labels: what events of a nettrace 6 stream belong to, as lists that events refer to by number.
 *
 * Activity ids are kept; other labels (trace and span ids, keys and values) are passed over.
 */
#ifndef CLRPERF_READ_NETTRACE_LABELS_H
#define CLRPERF_READ_NETTRACE_LABELS_H

#include "base/cursor.h"
#include "base/error.h"

struct nettrace_label_list {
    uint8_t activity[16], related_activity[16];
    bool has_activity, has_related;
};

struct nettrace_labels {
    struct nettrace_label_list *by_id; /* [0] has none */
    size_t count, capacity;
};

void nettrace_labels_done(struct nettrace_labels *l);
/* Forgets all: numbers mean nothing beyond a sequence point. */
void nettrace_labels_clear(struct nettrace_labels *l);
/* Reads a LabelList block. *refused grows by the lists beyond our bounds. */
bool nettrace_labels_read(struct nettrace_labels *l, struct span content, uint64_t *refused,
                          struct error *err);
/* NULL when there is none of this number. Valid until the next change. */
const struct nettrace_label_list *nettrace_labels_find(const struct nettrace_labels *l, uint32_t id);

#endif
