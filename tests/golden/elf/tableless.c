/* A stripped library without unwind tables: functions that are called, pointed to, and neither. */
static __attribute__((noinline, noipa)) int called(int x)
{
    return x * 3 + 1;
}
static __attribute__((noinline, noipa)) int pointed_to(int x)
{
    return x ^ 5;
}
static __attribute__((noinline, noipa)) int taken(int x)
{
    return x - 9;
}
int (*table[])(int) = { pointed_to };
int exported(int x)
{
    return called(x) + table[0](x);
}
void *address(void)
{
    return (void *)taken;
}
static __attribute__((used, noipa)) int alone(int x)
{
    return x + 77;
}
