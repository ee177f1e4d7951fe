using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace AsyncChain
{
    /// <summary>Methods that await methods, in each way that leads from one to the next.</summary>
    internal static class Chains
    {
        private static readonly TaskCompletionSource<int> never = new TaskCompletionSource<int>();
        private static readonly TaskCompletionSource<int> closed =
            new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);
        private static readonly CancellationTokenSource cancel = new CancellationTokenSource();
        private static readonly List<Task> started = new List<Task>(); // nothing may be garbage
        private static Task circleA = Task.CompletedTask, circleB = Task.CompletedTask;

        public static void Start()
        {
            started.Add(OuterAsync());
            started.Add(SharedAsync());
            started.Add(SharedAsync());
            started.Add(UsesValueAsync());
            started.Add(SumAsync());
            started.Add(GenericAsync("text"));
            started.Add(DeepAsync(40));
            started.Add(Task.Run(UnwrappedAsync));
            started.Add(ContinuedAsync());
            Func<Task> lambda = async () => await Lines.At("lambda", never.Task);
            started.Add(lambda());
            started.Add(ClassBasedAsync<object>(new object()));
            started.Add(DirectAsync());
            started.Add(LoopAsync());
            circleA = CircleAAsync();
            circleB = CircleBAsync();
            closed.SetResult(1);
        }

        /// <summary>Eight at once: one chain for each, all alike.</summary>
        private static async Task OuterAsync()
        {
            await Task.Yield();
            await Lines.At("OuterAsync", Task.WhenAll(Enumerable.Range(0, 8).Select(i => MidAsync(i))));
        }

        private static async Task<int> MidAsync(int i)
        {
            for (int k = 0; k < i % 3; k++)
                await Task.CompletedTask;
            await Task.Yield();
            if (i < 0)
                await Task.Delay(1);
            return await Lines.At("MidAsync", InnerAsync());
        }

        private static async Task<int> InnerAsync()
        {
            await Lines.At("InnerAsync", Task.Delay(Timeout.Infinite, cancel.Token)).ConfigureAwait(false);
            return 1;
        }

        /// <summary>Two wait for one task: it has a list of continuations.</summary>
        private static async Task SharedAsync()
        {
            await Lines.At("SharedAsync", never.Task);
        }

        private static async Task UsesValueAsync()
        {
            await Lines.At("UsesValueAsync", ValueAsync());
        }

        private static async ValueTask<int> ValueAsync()
        {
            return await Lines.At("ValueAsync", PooledAsync());
        }

        [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
        private static async ValueTask<int> PooledAsync()
        {
            await Lines.At("PooledAsync", Task.Delay(Timeout.Infinite, cancel.Token));
            return 1;
        }

        private static async Task SumAsync()
        {
            int sum = 0;
            await foreach (int step in Lines.At("SumAsync", StepsAsync()))
                sum += step;
        }

        private static async IAsyncEnumerable<int> StepsAsync()
        {
            yield return 1;
            await Task.Yield();
            yield return await Lines.At("StepsAsync", never.Task);
        }

        private static async Task<T> GenericAsync<T>(T value)
        {
            await Lines.At("GenericAsync", never.Task);
            return value;
        }

        /// <summary>A generic state machine whose code is shared.</summary>
        private static async Task<T> ClassBasedAsync<T>(T value) where T : class
        {
            try
            {
                return await Lines.At("ClassBasedAsync", GenericAsync(value));
            }
            finally
            {
                await Task.Yield();
            }
        }

        private static async Task DeepAsync(int depth)
        {
            if (depth == 0)
                await never.Task;
            else
                await Lines.At("DeepAsync", DeepAsync(depth - 1));
        }

        private static async Task UnwrappedAsync()
        {
            await Lines.At("UnwrappedAsync", never.Task);
        }

        private static async Task ContinuedAsync()
        {
            Task continued = SharedAsync().ContinueWith(task => 1, TaskScheduler.Default);
            await Lines.At("ContinuedAsync", continued);
        }

        /// <summary>Awaits of calls, with no task in between where the runtime suspends methods itself.</summary>
        private static async Task DirectAsync()
        {
            int sum = Lines.Here("DirectAsync") + await DirectMidAsync(1);
            GC.KeepAlive(sum);
        }

        private static async Task<int> DirectMidAsync(int n)
        {
            if (n == 0)
                n += await DirectInnerAsync();
            int sum = Lines.Here("DirectMidAsync") + await DirectInnerAsync();
            return sum + n;
        }

        private static async ValueTask<int> DirectInnerAsync()
        {
            int value = Lines.Here("DirectInnerAsync") + await never.Task;
            return value + 1;
        }

        /// <summary>A loop: nobody awaits its workers.</summary>
        private static async Task LoopAsync()
        {
            var options = new ParallelOptions { MaxDegreeOfParallelism = 2 };
            await Lines.At("LoopAsync", Parallel.ForEachAsync(new[] { 1, 2 }, options, EachAsync));
        }

        private static async ValueTask EachAsync(int item, CancellationToken token)
        {
            await Lines.At("EachAsync", never.Task);
        }

        /// <summary>Two that await each other.</summary>
        private static async Task CircleAAsync()
        {
            await closed.Task;
            await Lines.At("CircleAAsync", circleB);
        }

        private static async Task CircleBAsync()
        {
            await closed.Task;
            await Lines.At("CircleBAsync", circleA);
        }
    }
}
