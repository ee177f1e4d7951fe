/*
 * float_text: the shortest decimal of a floating-point number that reads back the same; NaN, Infinity and
 * -Infinity as .NET writes them.
 */
#ifndef CLRPERF_BASE_FLOAT_TEXT_H
#define CLRPERF_BASE_FLOAT_TEXT_H

struct float_text {
    char text[40];
};

struct float_text float_text(float value);
struct float_text double_text(double value);

#endif
