namespace Jitty
{
    /// <summary>Code that is loaded many times and freed again.</summary>
    public static class Plugin
    {
        public static long Spin(long loops)
        {
            long x = 0;
            while (--loops >= 0)
                x = x * 31 + loops;
            return x;
        }
    }
}
