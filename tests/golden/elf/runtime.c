/* The source of runtime.so: a stripped image with a table of names as libcoreclr.so has it. */
typedef int function(int);

__attribute__((noinline)) static int first(int value)
{
    return value + 7;
}
__attribute__((noinline)) static int second(int value)
{
    return value * 9;
}
__attribute__((noinline)) static int unlisted(int value)
{
    return value ^ 0x55;
}

struct entry {
    const char *name;
    function *implementation;
};
static const struct entry table[] = { { "Thing_GetFirst", first }, { "Thing_GetSecond", second } };

int g_dacTable = 1;

int look_up(int index)
{
    const struct entry *volatile entries = table;
    return entries[index].implementation(index) + unlisted(index);
}
