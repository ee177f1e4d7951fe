using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using Samples;

namespace RuntimeWork
{
    /// <summary>
    /// Makes the runtime work, and knows how much: each phase is work of one kind, apart from Spin, which is the program's own.
    /// The second argument chooses phases: "Collect,Spin"; without one all take turns.
    /// </summary>
    public static class Program
    {
        private const int ThrowDepth = 10;

        private static readonly Random Dice = new Random(1);
        private static Node? alive;
        private static byte[]? latest;
        private static long checksum;

        private sealed class Node
        {
            public Node? Next;
            public Node? Other;
        }

        public static void Main(string[] args)
        {
            using var run = new Run("runtimework", args);
            var bodies = new Dictionary<string, Action<long>>
            {
                ["Spin"] = PhaseSpin,
                ["Collect"] = PhaseCollect,
                ["Allocate"] = PhaseAllocate,
                ["Compile"] = PhaseCompile,
                ["Throw"] = PhaseThrow,
            };
            string[] chosen = args.Length > 1 ? args[1].Split(',') : new List<string>(bodies.Keys).ToArray();
            var phases = new List<(Phase, Action<long>)>();
            foreach (string name in chosen)
                phases.Add((run.Truth.AddPhase(name, "RuntimeWork.Program.Phase" + name), bodies[name]));
            if (Array.IndexOf(chosen, "Collect") >= 0)
                alive = Graph(300_000);
            foreach ((Phase _, Action<long> body) in phases)
                body(Stopwatch.GetTimestamp()); // once, so that its own code is compiled
#if !NETCOREAPP3_1
            for (int i = 0; i <= GC.MaxGeneration; i++)
            {
                int generation = i;
                run.Truth.Ask("collected_gen" + generation, () => GC.CollectionCount(generation));
            }
            run.Truth.Ask("now_ns", Stopwatch.GetTimestamp);
            run.Truth.Ask("paused_us", () => GC.GetTotalPauseDuration().Ticks / 10);
#endif
            run.AnswerInput();
            run.Ready();

            while (!run.Over)
            {
                foreach ((Phase phase, Action<long> body) in phases)
                    run.Slice(phase, body);
            }
            run.Truth.Count("checksum_low", checksum & 0xffff);
            GC.KeepAlive(alive);
            GC.KeepAlive(latest);
        }

        private static Node Graph(int count)
        {
            var nodes = new Node[count];
            for (int i = 0; i < count; i++)
                nodes[i] = new Node();
            foreach (Node node in nodes)
            {
                node.Next = nodes[Dice.Next(count)];
                node.Other = nodes[Dice.Next(count)];
            }
            for (int i = 1; i < count; i++)
                nodes[i - 1].Next = nodes[i];
            return nodes[0];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseSpin(long until)
        {
            do
                Spin();
            while (Stopwatch.GetTimestamp() < until);
        }

        /// <summary>Full and blocking, and nobody waits: what the collection costs is on the caller's clock.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseCollect(long until)
        {
            do
                GC.Collect(2, GCCollectionMode.Forced, true, false);
            while (Stopwatch.GetTimestamp() < until);
        }

        /// <summary>Nearly all of it is memory to be found, cleared and collected.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseAllocate(long until)
        {
            do
                latest = new byte[60_000];
            while (Stopwatch.GetTimestamp() < until);
        }

        /// <summary>One large method at a time; its IL was made before.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseCompile(long until)
        {
            do
                Compile(Emit());
            while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseThrow(long until)
        {
            do
            {
                try
                {
                    ThrowBelow(ThrowDepth);
                }
                catch (InvalidOperationException)
                {
                    checksum++;
                }
            }
            while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Spin()
        {
            long x = checksum;
            for (int i = 0; i < 100_000; i++)
                x = x * 31 + i;
            checksum = x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Compile(DynamicMethod method)
        {
            var function = (Func<long, long>)method.CreateDelegate(typeof(Func<long, long>));
            checksum += function(1); // the first call compiles it
        }

        private static DynamicMethod Emit()
        {
            var method = new DynamicMethod("Large", typeof(long), new[] { typeof(long) }, typeof(Program).Module, true);
            ILGenerator il = method.GetILGenerator(8192);
            for (int i = 0; i < 800; i++)
            {
                Label over = il.DefineLabel();
                il.Emit(OpCodes.Ldarg_0);
                il.Emit(OpCodes.Ldc_I8, (long)Dice.Next());
                il.Emit(OpCodes.Bge, over);
                il.Emit(OpCodes.Ldarg_0);
                il.Emit(OpCodes.Ldc_I8, (long)i);
                il.Emit(OpCodes.Mul);
                il.Emit(OpCodes.Starg_S, (byte)0);
                il.MarkLabel(over);
            }
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ret);
            return method;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void ThrowBelow(int depth)
        {
            if (depth == 0)
                throw new InvalidOperationException("thrown"); // its own text: the runtime would look for one
            ThrowBelow(depth - 1);
            checksum++;
        }
    }
}
