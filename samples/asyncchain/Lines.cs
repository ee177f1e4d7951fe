using System.Runtime.CompilerServices;
using Samples;

namespace AsyncChain
{
    /// <summary>Books at which line a method awaits.</summary>
    internal static class Lines
    {
        public static Truth? Truth;
        private static readonly System.Collections.Generic.HashSet<string> known = new System.Collections.Generic.HashSet<string>();

        /// <summary>How many awaits were begun.</summary>
        public static int Begun;

        public static T At<T>(string method, T awaited, [CallerLineNumber] int line = 0)
        {
            Here(method, line);
            return awaited;
        }

        /// <summary>For an await in the same line. Returns 0.</summary>
        public static int Here(string method, [CallerLineNumber] int line = 0)
        {
            lock (known)
            {
                if (known.Add(method))
                    Truth!.Count("line " + method, line);
            }
            System.Threading.Interlocked.Increment(ref Begun);
            return 0;
        }
    }
}
