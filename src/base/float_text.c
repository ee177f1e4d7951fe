#include "base/float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The sign of a NaN says nothing: what a processor makes of 0.0 / 0.0 has one. */
static bool name_special(double value, struct float_text *out)
{
    if (isfinite(value))
        return false;
    snprintf(out->text, sizeof out->text, "%s", isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    return true;
}

struct float_text float_text(float value)
{
    struct float_text t;
    if (name_special((double)value, &t))
        return t;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(t.text, sizeof t.text, "%.*g", digits, (double)value);
        if (strtof(t.text, NULL) == value)
            break;
    }
    return t;
}

struct float_text double_text(double value)
{
    struct float_text t;
    if (name_special(value, &t))
        return t;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(t.text, sizeof t.text, "%.*g", digits, value);
        if (strtod(t.text, NULL) == value)
            break;
    }
    return t;
}
