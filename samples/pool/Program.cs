using System;
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Threading;
using Samples;

namespace Pool
{
    /// <summary>
    /// A starving thread pool: more work items that sleep than there are threads, so that it adds threads one by one.
    /// How many threads there were, and how long items waited, is noted by a thread of its own.
    /// </summary>
    public static class Program
    {
        private const int Items = 24;
        private static readonly TimeSpan ItemSleeps = TimeSpan.FromMilliseconds(700);

        private static readonly Stopwatch Clock = Stopwatch.StartNew();
        private static Truth truth = null!;
        private static int mostThreads;
        private static long longestWait;

        public static void Main(string[] args)
        {
            using var run = new Run("pool", args);
            truth = run.Truth;
            ThreadPool.GetMinThreads(out int workers, out int _);
            truth.Count("min_threads", workers);
            truth.Ask("most_threads", () => mostThreads);
            truth.Ask("longest_wait_ms", () => longestWait);
            run.Ready();
            run.Rounds(args, Round);
        }

        private static void Round()
        {
            var done = new CountdownEvent(Items);
            for (int i = 0; i < Items; i++)
            {
                long queued = Stopwatch.GetTimestamp();
                ThreadPool.QueueUserWorkItem(_ =>
                {
                    Started(queued);
                    SleepInPool();
                    done.Signal();
                });
                truth.Count("items");
            }
            Watch(done);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void SleepInPool() => Thread.Sleep(ItemSleeps);

        private static void Started(long queued)
        {
            long waited = (Stopwatch.GetTimestamp() - queued) * 1000 / Stopwatch.Frequency;
            long before;
            while ((before = Interlocked.Read(ref longestWait)) < waited)
                Interlocked.CompareExchange(ref longestWait, waited, before);
        }

        private static void Watch(CountdownEvent done)
        {
            int last = -1;
            while (!done.Wait(5))
            {
                int now = ThreadPool.ThreadCount;
                if (now != last)
                    truth.Add("threads", string.Format(CultureInfo.InvariantCulture, "{{\"ms\":{0},\"count\":{1}}}",
                                                       Clock.ElapsedMilliseconds, now));
                last = now;
                mostThreads = Math.Max(mostThreads, now);
            }
        }
    }
}
