using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Samples;

namespace PInvoke
{
    /// <summary>
    /// Managed code that calls the C library, which calls managed code back. The phases take turns in slices of 20 ms.
    /// </summary>
    public static unsafe class Program
    {
        private const int Items = 4096;

        private static readonly int[] Shuffled = MakeShuffled();
        private static readonly byte[] From = new byte[64 * 1024];
        private static readonly byte[] To = new byte[64 * 1024];
        private static readonly Libc.Comparer ByDelegate = CompareByDelegate; // kept alive: native code holds its thunk
        private static readonly Libc.Comparer Nested = CompareNested;
        private static long compares;
        private static long calls;

        public static void Main(string[] args)
        {
            using var run = new Run("pinvoke", args);
            Truth truth = run.Truth;
            var phases = new (Phase Phase, Action<long> Body)[]
            {
                (truth.AddPhase("QsortDelegate", "PInvoke.Program.PhaseQsortDelegate", "qsort",
                                "PInvoke.Program.CompareByDelegate"), PhaseQsortDelegate),
#if !NETCOREAPP3_1
                (truth.AddPhase("QsortFunctionPointer", "PInvoke.Program.PhaseQsortFunctionPointer", "qsort",
                                "PInvoke.Program.CompareUnmanagedCallersOnly"), PhaseQsortFunctionPointer),
                (truth.AddPhase("GetParentPid", "PInvoke.Program.PhaseGetParentPid", "getppid"), PhaseGetParentPid),
#endif
                (truth.AddPhase("Nested", "PInvoke.Program.PhaseNested", "qsort", "PInvoke.Program.CompareNested", "memcmp"),
                 PhaseNested),
                (truth.AddPhase("Bsearch", "PInvoke.Program.PhaseBsearch", "bsearch", "PInvoke.Program.CompareByDelegate"),
                 PhaseBsearch),
                (truth.AddPhase("GetPid", "PInvoke.Program.PhaseGetPid", "getpid"), PhaseGetPid),
                (truth.AddPhase("GetEnvironment", "PInvoke.Program.PhaseGetEnvironment", "getenv"), PhaseGetEnvironment),
                (truth.AddPhase("Access", "PInvoke.Program.PhaseAccess", "access"), PhaseAccess),
                (truth.AddPhase("Memcpy", "PInvoke.Program.PhaseMemcpy", "memcpy"), PhaseMemcpy),
            };
            run.AnswerInput();
            run.Ready();

            while (!run.Over)
            {
                foreach ((Phase phase, Action<long> body) in phases)
                    run.Slice(phase, body);
            }
            truth.Count("compares", compares);
            truth.Count("calls", calls);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseQsortDelegate(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                fixed (int* items = (int[])Shuffled.Clone())
                    Libc.Sort(items, (UIntPtr)Items, (UIntPtr)sizeof(int), ByDelegate);
                calls++;
            }
        }

        private static int CompareByDelegate(int* a, int* b)
        {
            compares++;
            return Slow(*a).CompareTo(Slow(*b));
        }

#if !NETCOREAPP3_1
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseQsortFunctionPointer(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                fixed (int* items = (int[])Shuffled.Clone())
                    Libc.SortPointer(items, (UIntPtr)Items, (UIntPtr)sizeof(int), &CompareUnmanagedCallersOnly);
                calls++;
            }
        }

        [UnmanagedCallersOnly]
        private static int CompareUnmanagedCallersOnly(int* a, int* b)
        {
            compares++;
            return Slow(*a).CompareTo(Slow(*b));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseGetParentPid(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                for (int i = 0; i < 1000; i++)
                    Libc.GetParentPid();
                calls += 1000;
            }
        }
#endif

        /// <summary>managed, native, managed, native: the comparer calls the C library itself.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseNested(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                fixed (int* items = (int[])Shuffled.Clone())
                    Libc.Sort(items, (UIntPtr)Items, (UIntPtr)sizeof(int), Nested);
                calls++;
            }
        }

        private static int CompareNested(int* a, int* b)
        {
            compares++;
            return Libc.Compare(a, b, (UIntPtr)sizeof(int));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseBsearch(long until)
        {
            var sorted = (int[])Shuffled.Clone();
            Array.Sort(sorted, (a, b) => Slow(a).CompareTo(Slow(b)));
            fixed (int* items = sorted)
            {
                while (Stopwatch.GetTimestamp() < until)
                {
                    foreach (int item in Shuffled)
                    {
                        int key = item;
                        if (Libc.Search(&key, items, (UIntPtr)Items, (UIntPtr)sizeof(int), ByDelegate) == null)
                            throw new InvalidOperationException("an item got lost");
                    }
                    calls += Items;
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseGetPid(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                for (int i = 0; i < 1000; i++)
                    Libc.GetPid();
                calls += 1000;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseGetEnvironment(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                for (int i = 0; i < 1000; i++)
                    Libc.GetEnvironment("NO_SUCH_VARIABLE");
                calls += 1000;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseAccess(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                for (int i = 0; i < 100; i++)
                {
                    if (Libc.Access("/no/such/file", 0) == 0 || Marshal.GetLastWin32Error() == 0)
                        throw new InvalidOperationException("/no/such/file exists");
                }
                calls += 100;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseMemcpy(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                for (int i = 0; i < 100; i++)
                    Libc.Copy(To, From, (UIntPtr)From.Length);
                calls += 100;
            }
        }

        /// <summary>A little work, so that the callback itself shows.</summary>
        private static int Slow(int value)
        {
            uint state = (uint)value;
            for (int i = 0; i < 20; i++)
                state = (state << 1) ^ (state >> 31);
            return (int)state;
        }

        private static int[] MakeShuffled()
        {
            var items = new int[Items];
            uint state = 1;
            for (int i = 0; i < Items; i++)
            {
                state = state * 1664525 + 1013904223;
                items[i] = (int)(state >> 4);
            }
            return items;
        }
    }
}
