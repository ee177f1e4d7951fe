/* The source of sample.so, stripped.so, sample.debug and mini.so; see build.sh. */
extern int imported(int);

__attribute__((noinline)) static int hidden_helper(int value)
{
    return value * 3 + imported(value);
}

int exported_function(int value)
{
    return hidden_helper(value) + 1;
}

int __underscored(int value)
{
    return value - imported(value + 1);
}
int plain_alias(int value) __attribute__((alias("__underscored")));

/* demangles to Sample::Counter::add, with a parameter to strip */
int _ZN6Sample7Counter3addEi(int value)
{
    return hidden_helper(value) + 2;
}

__asm__(".text\n.global without_size\n.type without_size, @function\nwithout_size:\n nop\n nop\n ret\n");
