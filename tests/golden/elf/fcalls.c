/* The source of fcalls.so: a stripped image with tables of the functions that implement methods, as
 * libcoreclr.so. */
typedef int function(int);

__attribute__((noinline)) static int enter(int value)
{
    return value + 7;
}
__attribute__((noinline)) static int leave(int value)
{
    return value * 9;
}
__attribute__((noinline)) static int spin(int value)
{
    return value ^ 0x55;
}
__attribute__((noinline)) static int unlisted(int value)
{
    return value - 3;
}

struct method {
    unsigned long flags;
    function *implementation;
    const char *name;
};
struct method_with_signature {
    struct method method;
    const void *signature;
};

static const int signature = 5;
static const struct {
    struct method enter;
    struct method_with_signature leave;
    struct method dynamic, end;
} monitor = { { 0xffffffffff000000, enter, "Enter" },
              { { 0xffffffffff000002, leave, ".leave" }, &signature },
              { 0x1000000, 0, "Dynamic" },
              { 0xffffffffff000001, 0, 0 } };
static const struct method thread[] = { { 0, spin, "SpinWaitInternal" }, { 1, 0, 0 } };
/* with a flag that nobody knows */
static const struct method strange[] = { { 4, unlisted, "Strange" }, { 1, 0, 0 } };

struct type {
    const char *name, *space;
    const void *methods;
};
static const struct type types[] = { { "Monitor", "System.Threading", &monitor },
                                     { "Strange", "System", strange },
                                     { "Thread", "System.Threading", thread } };

int g_dacTable = 1;

int look_up(int index)
{
    const struct type *volatile all = types;
    const struct method *methods = all[index].methods;
    return methods->implementation(index) + unlisted(index) + enter(index) + leave(index) + spin(index);
}
