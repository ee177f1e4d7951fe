using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Threading;
using Samples;

namespace Flood
{
    [EventSource(Name = "Clrperf-Flood")]
    public sealed class FloodSource : EventSource
    {
        public static readonly FloodSource Log = new FloodSource();

        [Event(1, Level = EventLevel.Informational)]
        public void Tick(long thread, long number)
        {
            WriteEvent(1, thread, number);
        }
    }

    /// <summary>
    /// Writes events as fast as asked: `flood SECONDS [EVENTS_A_SECOND [THREADS]]`, 0 for as fast as it can. Counts those it
    /// wrote while its provider was switched on. Each thread numbers its events, so that one that is missing leaves a gap;
    /// only those from after a session has ended, before the provider hears of it, are told to nobody.
    /// </summary>
    public static class Program
    {
        private static long written;

        public static void Main(string[] args)
        {
            using var run = new Run("flood", args);
            long rate = args.Length > 1 ? long.Parse(args[1], CultureInfo.InvariantCulture) : 100000;
            int threads = args.Length > 2 ? int.Parse(args[2], CultureInfo.InvariantCulture) : 1;
            var all = new Thread[threads];
            run.Truth.Ask("written", () => Interlocked.Read(ref written));
            run.Ready();
            for (int i = 0; i < threads; i++)
            {
                int thread = i;
                all[i] = new Thread(() => Pour(run, rate / threads, thread));
                all[i].Start();
            }
            foreach (Thread thread in all)
                thread.Join();
        }

        private static void Pour(Run run, long rate, int thread)
        {
            long number = 0;
            var clock = Stopwatch.StartNew();
            for (long done = 0; !run.Over;)
            {
                long due = rate == 0 ? done + 1000 : (long)(clock.Elapsed.TotalSeconds * rate);
                if (due - done > 100000)
                    done = due - 100000; // it cannot keep up: what was missed is not made up for
                Burst(thread, due - done, ref number);
                done = due;
                if (rate != 0)
                    Thread.Sleep(1);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Burst(int thread, long count, ref long number)
        {
            long before = number;
            for (long i = 0; i < count; i++)
            {
                if (FloodSource.Log.IsEnabled())
                    FloodSource.Log.Tick(thread, number++);
            }
            Interlocked.Add(ref written, number - before);
        }
    }
}
