#include "lib/twice.h"

__attribute__((noinline)) int sum(const int *numbers, int count)
{
    int all = 0;
    for (int i = 0; i < count; i++) {
        if (numbers[i] > 1000)
            all += twice(numbers[i]);
        else
            all -= numbers[i];
    }
    return all;
}

#line 70000 "/generated/table.c"
__attribute__((noinline)) int table(int i)
{
    switch (i) {
    case 1: return 7;
    case 2: return twice(i) + 3;
    default: return i * i;
    }
}

int unused(int i)
{
    return i - 1;
}

void _start(void)
{
    static volatile int numbers[] = { 1, 2000 }, out;
    out = sum((const int *)numbers, table(numbers[0]));
}
