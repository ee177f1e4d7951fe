using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Samples;

namespace Positions
{
    /// <summary>
    /// Two hundred threads that rest where stacks are of many kinds. A thread's name says where: `sleep-0` to `sleep-24` and so on.
    /// </summary>
    public static class Program
    {
        private const int Each = 25;
        private static readonly ManualResetEvent never = new ManualResetEvent(false);
        private static readonly TaskCompletionSource<int> unanswered = new TaskCompletionSource<int>();
        private static int resting;

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int Compare(IntPtr a, IntPtr b);

        [DllImport("libc", EntryPoint = "qsort")]
        private static extern void Sort([In, Out] int[] items, IntPtr count, IntPtr size, Compare compare);

        [DllImport("libc", EntryPoint = "poll")]
        private static extern int Poll(IntPtr files, IntPtr count, int timeout);

        public static void Main(string[] args)
        {
            using (var run = new Run("positions", args))
            {
                Start("sleep", Sleep);
                Start("monitor", WaitInMonitor);
                Start("native", WaitInNative);
                Start("callback", WaitInCallback);
                Start("filter", WaitInFilter);
                Start("finally", WaitInFinally);
                Start("deep", () => WaitDeep(new Leaf<string>(), 20));
                Start("task", WaitForTask);
                while (Volatile.Read(ref resting) < 8 * Each)
                    Thread.Sleep(20);
                Thread.Sleep(500);
                run.Ready();
                run.WaitOver();
            }
            Environment.Exit(0);
        }

        private static void Start(string name, ThreadStart body)
        {
            for (int i = 0; i < Each; i++)
                new Thread(body, 256 << 10) { IsBackground = true, Name = name + "-" + i }.Start();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Rest()
        {
            Interlocked.Increment(ref resting);
            never.WaitOne();
        }

        private static void Sleep()
        {
            Interlocked.Increment(ref resting);
            Thread.Sleep(Timeout.Infinite);
        }

        private static void WaitInMonitor()
        {
            object gate = new object();
            lock (gate)
            {
                Interlocked.Increment(ref resting);
                Monitor.Wait(gate);
            }
        }

        private static void WaitInNative()
        {
            Interlocked.Increment(ref resting);
            while (true)
                Poll(IntPtr.Zero, IntPtr.Zero, -1);
        }

        private static void WaitInCallback()
        {
            Sort(new[] { 2, 1 }, (IntPtr)2, (IntPtr)sizeof(int), (a, b) => { Rest(); return 0; });
        }

        private static void WaitInFilter()
        {
            try
            {
                Throw();
            }
            catch (InvalidOperationException) when (RestInFilter())
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static bool RestInFilter()
        {
            Rest();
            return true;
        }

        private static void WaitInFinally()
        {
            try
            {
                ThrowAndClean();
            }
            catch (InvalidOperationException)
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void ThrowAndClean()
        {
            try
            {
                Throw();
            }
            finally
            {
                Rest();
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Throw() => throw new InvalidOperationException("on purpose");

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void WaitDeep<T>(Node<T> node, int depth)
        {
            if (depth > 0)
                node.Visit(() => WaitDeep(node, depth - 1));
            else
                Rest();
        }

        private static void WaitForTask()
        {
            Interlocked.Increment(ref resting);
            WaitAsync().GetAwaiter().GetResult();
        }

        private static async Task<int> WaitAsync() => await unanswered.Task;

        private abstract class Node<T>
        {
            public abstract void Visit(Action next);
        }

        private sealed class Leaf<T> : Node<T>
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public override void Visit(Action next) => next();
        }
    }
}
