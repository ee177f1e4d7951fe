/*
 * frame_rule_check: what unwind information should say of a frame, compared with what was made of it.
 */
#ifndef CLRPERF_TESTS_FRAME_RULE_CHECK_H
#define CLRPERF_TESTS_FRAME_RULE_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/own.h"
#include "read/frame_rule.h"

struct frame_rule_case {
    const char *name;
    uint8_t info[24];
    size_t size;
    uint32_t off; /* of the code */
    bool ok;
    struct frame_rule rule;
};

typedef bool frame_rule_fn(struct span info, uint32_t code_off, struct frame_rule *out);

static inline void frame_rule_check(const struct frame_rule_case *c, frame_rule_fn *read)
{
    struct frame_rule rule = { 0 };
    const struct frame_rule *wanted = &c->rule;
    bool ok = read(span_of(c->info, c->size), c->off, &rule);
    if (ok != c->ok || rule.cfa != wanted->cfa || rule.cfa_register != wanted->cfa_register ||
        rule.fp != wanted->fp || rule.ra != wanted->ra || rule.cfa_off != wanted->cfa_off ||
        rule.fp_off != wanted->fp_off || rule.ra_off != wanted->ra_off)
        fail_msg("%s: %d, cfa %d+%d, fp %d at %d, ra %d at %d", c->name, ok, rule.cfa_register, rule.cfa_off,
                 rule.fp, rule.fp_off, rule.ra, rule.ra_off);
}

/* Cut short, it is no information: at every byte. */
static inline void frame_rule_check_cut(const struct frame_rule_case *c, frame_rule_fn *read)
{
    for (size_t size = 0; c->ok && size < c->size; size++) {
        struct frame_rule rule;
        AUTO_FREE uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, c->info, size);
        assert_false(read(span_of(exact, size), c->off, &rule));
    }
}

#endif
