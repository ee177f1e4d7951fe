static inline int twice(int i)
{
    return i * 2;
}
