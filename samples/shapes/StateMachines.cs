using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using Samples;

namespace Shapes
{
    /// <summary>
    /// Async methods and iterators. The async ones burn on the caller's thread, are suspended, and burn again on a pool
    /// thread, where they book what they use themselves.
    /// </summary>
    internal static class StateMachines
    {
        public static void AddTo(Catalogue catalogue)
        {
            catalogue.AddAsync("Async", SpinAsync, "Shapes.StateMachines.SpinAsync (async)");
            catalogue.AddAsync("AsyncNested", OuterAsync, "Shapes.StateMachines.OuterAsync (async)",
                               "Shapes.StateMachines.SpinAsync (async)");
            catalogue.AddAsync("AsyncValueTask", (loops, phase) => SpinValueAsync(loops, phase).AsTask(),
                               "Shapes.StateMachines.SpinValueAsync (async)");
            catalogue.AddAsync("AsyncGeneric", (loops, phase) => SpinGenericAsync("text", loops, phase),
                               "Shapes.StateMachines.SpinGenericAsync<T> (async)");
            catalogue.AddAsync("AsyncLambda", LambdaAsync, "Shapes.StateMachines.LambdaAsync lambda (async)");
            catalogue.AddAsync("AsyncIterator", SumAsync, "Shapes.StateMachines.SumAsync (async)",
                               "Shapes.StateMachines.StepsAsync (async)");
            catalogue.Add("Iterator", Sum, "Shapes.StateMachines.Sum", "Shapes.StateMachines.Steps (iterator)");
            catalogue.Add("IteratorFinally", SumFinally, "Shapes.StateMachines.SumFinally",
                          "Shapes.StateMachines.StepsFinally (iterator)");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async Task<ulong> SpinAsync(int loops, Phase phase)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            await Task.Delay(1).ConfigureAwait(false);
            double before = ThreadClock.Seconds();
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            phase.Add(ThreadClock.Seconds() - before);
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async Task<ulong> OuterAsync(int loops, Phase phase)
        {
            return await SpinAsync(loops, phase).ConfigureAwait(false) + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async ValueTask<ulong> SpinValueAsync(int loops, Phase phase)
        {
            await Task.Delay(1).ConfigureAwait(false);
            double before = ThreadClock.Seconds();
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            phase.Add(ThreadClock.Seconds() - before);
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async Task<ulong> SpinGenericAsync<T>(T seed, int loops, Phase phase)
        {
            await Task.Delay(1).ConfigureAwait(false);
            double before = ThreadClock.Seconds();
            ulong x = seed is null ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            phase.Add(ThreadClock.Seconds() - before);
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static Task<ulong> LambdaAsync(int loops, Phase phase)
        {
            Func<Task<ulong>> spin = async () =>
            {
                await Task.Delay(1).ConfigureAwait(false);
                double before = ThreadClock.Seconds();
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                phase.Add(ThreadClock.Seconds() - before);
                return x;
            };
            return spin();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async Task<ulong> SumAsync(int loops, Phase phase)
        {
            ulong sum = 0;
            await foreach (ulong step in StepsAsync(loops, phase).ConfigureAwait(false))
                sum += step;
            return sum;
        }

        private static async IAsyncEnumerable<ulong> StepsAsync(int loops, Phase phase)
        {
            for (int step = 0; step < 2; step++)
            {
                await Task.Delay(1).ConfigureAwait(false);
                double before = ThreadClock.Seconds();
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                phase.Add(ThreadClock.Seconds() - before);
                yield return x;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Sum(int loops)
        {
            ulong sum = 0;
            foreach (ulong step in Steps(loops))
                sum += step;
            return sum;
        }

        private static IEnumerable<ulong> Steps(int loops)
        {
            for (int step = 0; step < 2; step++)
            {
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                yield return x;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SumFinally(int loops)
        {
            finallySpun = 0;
            foreach (ulong step in StepsFinally(loops))
            {
                if (step != 0)
                    break;
            }
            return finallySpun;
        }

        [ThreadStatic]
        private static ulong finallySpun;

        /// <summary>Burns in the finally block, which a break in the loop over it runs.</summary>
        private static IEnumerable<ulong> StepsFinally(int loops)
        {
            try
            {
                yield return 1;
                yield return 2;
            }
            finally
            {
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                finallySpun = x;
            }
        }
    }
}
