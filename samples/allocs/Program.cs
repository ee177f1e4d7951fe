using System;
using System.Runtime.CompilerServices;
using Samples;

namespace Allocs
{
    /// <summary>48 bytes: header, type, four longs.</summary>
    public sealed class Small
    {
        public long A, B, C, D;
    }

    /// <summary>
    /// Allocates known types in known methods. How many bytes each method allocated is what the runtime counts for the
    /// thread; a method allocates one type, but for Mixed.
    /// </summary>
    public static class Program
    {
        private const long Share = 100L << 20;

        private static object? sink;
        private static Truth truth = null!;

        public static void Main(string[] args)
        {
            using var run = new Run("allocs", args);
            truth = run.Truth;
            run.Ready();
            run.Rounds(args, Round);
        }

        private static void Round()
        {
            Measure("Allocs.Small", "Allocs.Program.AllocateSmall", AllocateSmall);
            Measure("byte[]", "Allocs.Program.AllocateBytes", AllocateBytes);
            Measure("string", "Allocs.Program.AllocateStrings", AllocateStrings);
            Measure("double[]", "Allocs.Program.AllocateLarge", AllocateLarge);
            Measure("short[]", "Allocs.Program.AllocatePinned", AllocatePinned);
            Mixed();
        }

        /// <summary>Books what the thread allocated meanwhile, by type and by method.</summary>
        private static void Measure(string type, string method, Action allocate)
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            allocate();
            long bytes = GC.GetAllocatedBytesForCurrentThread() - before;
            truth.Count("type " + type, bytes);
            truth.Count("method " + method, bytes);
            truth.Count("bytes", bytes);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateSmall()
        {
            for (long made = 0; made < Share; made += 48)
                sink = new Small();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateBytes()
        {
            for (long made = 0; made < Share; made += 1024)
                sink = new byte[1000];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateStrings()
        {
            for (long made = 0; made < Share; made += 224)
                sink = new string('x', 100);
        }

        /// <summary>800 kB each: on the large object heap.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateLarge()
        {
            for (long made = 0; made < Share; made += 800_024)
                sink = new double[100_000];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocatePinned()
        {
            for (long made = 0; made < Share / 4; made += 20_024)
                sink = GC.AllocateUninitializedArray<short>(10_000, pinned: true);
        }

        /// <summary>Two types by turns, a large share and a small one.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Mixed()
        {
            const int Turns = (int)(Share / (1024 + 4096));
            for (int i = 0; i < Turns; i++)
            {
                sink = new int[250];
                sink = new char[2036];
            }
            truth.Count("type int[]", Turns * 1024L);
            truth.Count("type char[]", Turns * 4096L);
            truth.Count("method Allocs.Program.Mixed", Turns * 5120L);
            truth.Count("bytes", Turns * 5120L);
        }
    }
}
