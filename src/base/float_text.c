#include "base/float_text.h"

#include <stdio.h>
#include <stdlib.h>

struct float_text float_text(float value)
{
    struct float_text t;
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
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(t.text, sizeof t.text, "%.*g", digits, value);
        if (strtod(t.text, NULL) == value)
            break;
    }
    return t;
}
