using System;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Samples;

namespace Deadlock
{
    public sealed class LockA { }
    public sealed class LockB { }

    /// <summary>
    /// Threads that wait for each other, and threads that only look like it. The second argument chooses: `two`, `three`
    /// (cycles of monitors), `lock` (of System.Threading.Lock, from .NET 9 on), `busy` (locks at full speed, no cycle);
    /// `task`, `async`, `all`, `each`, `ring` (cycles of locks and tasks), `join` (of a lock and the end of a thread), `free` (such that
    /// somebody can end), `abandoned` (locks whose owners have ended), `hasty`, `joins` (locks and tasks, or threads, at full speed, no cycle).
    /// </summary>
    public static class Program
    {
        private static readonly LockA a = new LockA();
        private static readonly LockB b = new LockB();
        private static readonly int[,] c = new int[2, 2];
        private static readonly object hashed = new object(), thin = new object(), signalled = new object();
        private static CountdownEvent holding = new CountdownEvent(0);
        private static Run? run;
        private static int visits;

        public static void Main(string[] args)
        {
            string mode = args.Length > 1 ? args[1] : "two";
            using (run = new Run("deadlock", args))
            {
                StartBystanders();
                if (mode == "busy")
                    StartBusy();
                else if (mode == "lock")
                    StartLocks();
                else if (mode == "three")
                    StartCycle(new object[] { a, b, c });
                else if (mode == "task")
                    Start("task-0", () => HoldAndAwait(a, () => Task.Run(() => Want(a))));
                else if (mode == "async")
                    Start("task-0", () => HoldAndAwait(a, () => Outer(a)));
                else if (mode == "all")
                    Start("task-0", () => HoldAndAwait(a, () => Task.WhenAll(Task.Delay(Timeout.Infinite), Outer(a))));
                else if (mode == "each")
                    Start("task-0", () => WaitForEach(a));
                else if (mode == "ring")
                    StartRing();
                else if (mode == "join")
                    Start("join-0", () => HoldAndJoin(a, "join-1", sleeperFirst: true));
                else if (mode == "hasty" || mode == "joins")
                    StartHasty(joins: mode == "joins");
                else if (mode == "free")
                    StartFree();
                else if (mode == "abandoned")
                    StartAbandoned();
                else
                    StartCycle(new object[] { a, b });
                run.Ready();
                run.AnswerInput();
                run.WaitOver();
            }
            Environment.Exit(0);
        }

        private static void Start(string name, ThreadStart body) => StartOne(name, body);

        private static Thread StartOne(string name, ThreadStart body)
        {
            var thread = new Thread(body) { IsBackground = true, Name = name };
            thread.Start();
            return thread;
        }

        /// <summary>Waits that are no deadlock: for a signal, for a time, for a lock whose owner sleeps.</summary>
        private static void StartBystanders()
        {
            hashed.GetHashCode();
            using var held = new CountdownEvent(2);
            Start("by-signal-that-never-comes", () => { lock (signalled) Monitor.Wait(signalled); });
            Start("by-holder", () => { lock (hashed) { held.Signal(); Thread.Sleep(Timeout.Infinite); } });
            Start("by-thin", () => { lock (thin) { held.Signal(); Thread.Sleep(Timeout.Infinite); } });
            held.Wait();
            Start("by-waiter", () => { lock (hashed) { } });
        }

        /// <summary>Threads that enter and end; of one of them nobody wants the lock while it lives.</summary>
        private static void StartAbandoned()
        {
            Thread first = StartOne("gone", () => Monitor.Enter(a));
            first.Join();
            Start("waits-for-one-that-was-gone", () => Want(a));
            Thread second = StartOne("gone", () =>
            {
                Monitor.Enter(b);
                Thread wanting = StartOne("waits-for-one-that-went", () => Want(b));
                SpinWait.SpinUntil(() => (wanting.ThreadState & ThreadState.WaitSleepJoin) != 0);
                Thread.Sleep(50);
            });
            second.Join();
        }

        private static void StartCycle(object[] locks)
        {
            holding = new CountdownEvent(locks.Length);
            for (int i = 0; i < locks.Length; i++)
            {
                object own = locks[i], next = locks[(i + 1) % locks.Length];
                Start("cycle-" + i, () => HoldAndWait(own, next));
            }
            holding.Wait();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void HoldAndWait(object own, object next)
        {
            lock (own)
            {
                lock (own) // held twice
                {
                    holding.Signal();
                    holding.Wait();
                    WaitForNext(next);
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void WaitForNext(object next)
        {
            lock (next)
                run!.Truth.Count("impossible");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void HoldAndAwait(object own, Func<Task> work)
        {
            lock (own)
                work().GetAwaiter().GetResult();
        }

        /// <summary>Of two threads that it started, one of which wants what it holds, it waits for the last.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void HoldAndJoin(object own, string name, bool sleeperFirst)
        {
            lock (own)
            {
                StartOne(name, sleeperFirst ? Sleep : () => Want(own));
                StartOne(name, sleeperFirst ? () => Want(own) : Sleep).Join();
            }
        }

        private static void Sleep() => Thread.Sleep(Timeout.Infinite);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void WaitForEach(object own)
        {
            lock (own)
                Task.WaitAll(Task.Run(() => Sleep()), Task.Run(() => Want(own)));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Want(object wanted)
        {
            lock (wanted)
                run!.Truth.Count("impossible");
            return 1;
        }

        private static async Task<int> Outer(object wanted) => 1 + await Inner(wanted);

        private static async Task<int> Inner(object wanted)
        {
            await Task.Yield();
            return Want(wanted);
        }

        /// <summary>Two threads, each of which waits for a task that wants what the other one holds.</summary>
        private static void StartRing()
        {
            holding = new CountdownEvent(2);
            Func<object, Task> work = async wanted =>
            {
                await Task.Yield();
                holding.Signal();
                holding.Wait();
                Want(wanted);
            };
            Start("task-0", () => HoldAndAwait(a, () => Task.Run(() => work(b))));
            Start("task-1", () => HoldAndAwait(b, () => Task.Run(() => work(a))));
            holding.Wait();
        }

        /// <summary>Who waits gives up when somebody says so, or is waited for by whoever waits for its lock, in vain.</summary>
        private static void StartFree()
        {
            var source = new TaskCompletionSource<int>();
            Start("cancelled", () => HoldAndAwait(a, () =>
            {
                Task.Run(() => Want(a)).Wait(new CancellationTokenSource().Token);
                return Task.CompletedTask;
            }));
            Start("any", () => HoldAndAwait(b, () => Task.WhenAny(source.Task, Task.Run(() => Want(b)))));
            Start("by-source", () => HoldAndAwait(c, () =>
            {
                Task.Run(() => source.SetResult(Want(c)));
                return source.Task;
            }));
            Start("joins", () => HoldAndJoin(new object(), "joined", sleeperFirst: false));
        }

        private static void StartLocks()
        {
#if NET9_0_OR_GREATER
            Lock first = new Lock(), second = new Lock();
            holding = new CountdownEvent(2);
            Start("lock-0", () => HoldAndEnter(first, second));
            Start("lock-1", () => HoldAndEnter(second, first));
            holding.Wait();
#else
            throw new NotSupportedException("System.Threading.Lock came with .NET 9");
#endif
        }

#if NET9_0_OR_GREATER
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void HoldAndEnter(Lock own, Lock next)
        {
            lock (own)
            {
                holding.Signal();
                holding.Wait();
                EnterNext(next);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void EnterNext(Lock next)
        {
            lock (next)
                run!.Truth.Count("impossible");
        }
#endif

        /// <summary>Who holds a lock waits for tasks, or for threads, that want others only.</summary>
        private static void StartHasty(bool joins)
        {
            for (int i = 0; i < 4; i++)
            {
                object own = i % 2 == 0 ? (object)a : b;
                bool direct = i < 2;
                Start("hasty-" + i, () =>
                {
                    while (!run!.Over)
                    {
                        if (joins)
                            HoldAndVisitBy(own);
                        else
                            HoldAndAwait(own, () => direct ? Task.Run(() => Visit(c)) : VisitLater(c));
                        run.Truth.Count("rounds");
                    }
                });
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Visit(object wanted)
        {
            lock (wanted)
            {
                if (visits++ % 4 == 0)
                    Thread.Sleep(20);
                else
                    Thread.SpinWait(20000);
            }
        }

        private static void HoldAndVisitBy(object own)
        {
            lock (own)
                StartOne("visitor", () => Visit(c)).Join();
        }

        private static async Task VisitLater(object wanted)
        {
            await Task.Yield();
            Visit(wanted);
        }

        /// <summary>Everybody wants the same locks, always in the same order.</summary>
        private static void StartBusy()
        {
            for (int i = 0; i < 4; i++)
            {
                int number = i;
                Start("busy-" + i, () =>
                {
                    while (!run!.Over)
                    {
                        object outer = number % 2 == 0 ? (object)a : b;
                        lock (outer)
                        {
                            lock (c)
                                Thread.SpinWait(50);
                        }
                        run.Truth.Count("rounds");
                    }
                });
            }
        }
    }
}
