using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using Samples;

namespace Crashes
{
    /// <summary>
    /// Faults. The second argument chooses: `null` (references that are null, caught, for all the time), or what ends the
    /// program once a line comes on standard input: `overflow` (the stack of a thread), `native` (the C library reads nothing).
    /// </summary>
    public static class Program
    {
        private const int StackBytes = 256 << 10; // createdump looks at each frame on it

        private sealed class Node
        {
            public int Value = 1;
        }

        private static Node? nothing = Environment.GetEnvironmentVariable("CRASHES_NOTHING") == null ? null : new Node();

        public static void Main(string[] args)
        {
            string mode = args.Length > 1 ? args[1] : "null";
            using var run = new Run("crashes", args);
            run.Ready();
            if (mode == "null")
            {
                while (!run.Over)
                    Catch();
                return;
            }
            Console.ReadLine();
            var thread = new Thread(() => Crash(mode), StackBytes) { Name = "crashing" };
            thread.Start();
            thread.Join();
        }

        private static void Crash(string mode)
        {
            if (mode == "throw")
                throw new InvalidOperationException("the order is broken", new ArgumentException("no such customer"));
            if (mode == "overflow")
                Recurse(1);
            else
                AskNative();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Catch()
        {
            try
            {
                Touch(nothing!);
            }
            catch (NullReferenceException)
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Touch(Node node) => Dereference(node) + 1;

        /// <summary>Faults at its first instruction, once compiled well.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Dereference(Node node) => node.Value;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Recurse(int depth) => Recurse(depth + 1) + depth;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AskNative()
        {
            GetLength(IntPtr.Zero);
            GC.KeepAlive(nothing);
        }

        [DllImport("libc", EntryPoint = "strlen")]
        private static extern nint GetLength(IntPtr text);
    }
}
