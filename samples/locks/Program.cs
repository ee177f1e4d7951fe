using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;
using Samples;

namespace Locks
{
    /// <summary>
    /// Threads that wait for locks: each that must wait takes the time itself. A turn: the main thread holds the lock
    /// while the others come for it, which they then hold one after the other.
    /// </summary>
    public static class Program
    {
        private const int Waiters = 3;
        private const int Turns = 10;
        private static readonly TimeSpan Held = TimeSpan.FromMilliseconds(20);
        private static readonly TimeSpan HeldByWaiter = TimeSpan.FromMilliseconds(5);

        private static readonly object Gate = new object();
#if NET9_0_OR_GREATER
        private static readonly Lock NewGate = new Lock();
#endif
        private static Truth truth = null!;

        public static void Main(string[] args)
        {
            using var run = new Run("locks", args);
            truth = run.Truth;
            run.Ready();
            run.Rounds(args, Round);
        }

        private static void Round()
        {
            for (int turn = 0; turn < Turns; turn++)
            {
                OneTurn(() => Monitor.Enter(Gate), () => Monitor.Exit(Gate), WaitForMonitor);
#if NET9_0_OR_GREATER
                OneTurn(() => NewGate.Enter(), () => NewGate.Exit(), WaitForLock);
#endif
            }
        }

        private static void OneTurn(Action enter, Action exit, Action wait)
        {
            var there = new CountdownEvent(Waiters);
            var threads = new List<Thread>();
            enter();
            for (int i = 0; i < Waiters; i++)
            {
                var thread = new Thread(() =>
                {
                    there.Signal();
                    wait();
                });
                thread.Start();
                threads.Add(thread);
            }
            there.Wait();
            Thread.Sleep(Held);
            exit();
            foreach (Thread thread in threads)
                thread.Join();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void WaitForMonitor()
        {
            long start = Stopwatch.GetTimestamp();
            lock (Gate)
            {
                Waited("Monitor", start);
                Thread.Sleep(HeldByWaiter);
            }
        }

#if NET9_0_OR_GREATER
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void WaitForLock()
        {
            long start = Stopwatch.GetTimestamp();
            lock (NewGate)
            {
                Waited("Lock", start);
                Thread.Sleep(HeldByWaiter);
            }
        }
#endif

        private static void Waited(string kind, long start)
        {
            long ticks = Stopwatch.GetTimestamp() - start;
            truth.Count("waits " + kind);
            truth.Count("waited_ns " + kind, (long)(ticks * (1e9 / Stopwatch.Frequency)));
        }
    }
}
