#include "clr/method_code.h"

enum code_tier method_code_tier(const struct runtime_method_event *m)
{
    if (m->flags & RUNTIME_METHOD_HELPER)
        return TIER_NONE;
    if (!(m->flags & RUNTIME_METHOD_JITTED))
        return TIER_R2R;
    switch (runtime_method_tier(m)) {
    case RUNTIME_TIER_MINOPTS: /* no optimization, as tier 0, but for good */
    case RUNTIME_TIER_QUICK:
        return TIER_0;
    case RUNTIME_TIER_QUICK_INSTRUMENTED:
    case RUNTIME_TIER_1_INSTRUMENTED: /* of precompiled code: on its way to tier 1 as well */
        return TIER_0_INSTRUMENTED;
    case RUNTIME_TIER_1:
        return TIER_1;
    case RUNTIME_TIER_1_OSR:
        return TIER_OSR;
    case RUNTIME_TIER_OPTIMIZED:
        return TIER_OPTIMIZED;
    case RUNTIME_TIER_UNKNOWN:
        break;
    }
    return TIER_NONE;
}
