using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using Samples;

namespace Jitty
{
    /// <summary>
    /// Emits methods all the time, runs each for a moment and lets go of it, so that the runtime jits, frees and reuses
    /// code addresses under a profiler's eyes.
    /// </summary>
    public static class Program
    {
        private const int KeptAlive = 16;
        private const long LoopsPerMethod = 500_000;

        private static readonly Queue<Func<long, long>> Alive = new Queue<Func<long, long>>();
        private static readonly List<WeakReference> Emitted = new List<WeakReference>();
        private static long freed;
        private static long checksum;

        public static void Main(string[] args)
        {
            using var run = new Run("jitty", args);
            Truth truth = run.Truth;
            Phase emitDynamic = truth.AddPhase("EmitDynamicMethod", "Jitty.Emitter.DynamicMethod");
            Phase runDynamic = truth.AddPhase("RunDynamicMethod", "Jitty.Program.RunOne", "Dyn_NNNNNN");
            Phase emitType = truth.AddPhase("EmitCollectibleType", "Jitty.Emitter.CollectibleType");
            Phase runType = truth.AddPhase("RunCollectibleType", "Jitty.Program.RunOne", "Gen_NNNNNN.Spin");
            Phase loadPlugin = truth.AddPhase("LoadPlugin", "Jitty.Emitter.Plugin");
            Phase runPlugin = truth.AddPhase("RunPlugin", "Jitty.Program.RunOne", "Jitty.Plugin.Spin");
            run.AnswerInput();
            run.Ready();

            for (int number = 0; !run.Over; number++)
            {
                Once(number, Emitter.DynamicMethod, emitDynamic, runDynamic);
                truth.Count("dynamic_methods");
                if (number % 8 == 0)
                {
                    Once(number, Emitter.CollectibleType, emitType, runType);
                    truth.Count("collectible_types");
                }
                if (number % 32 == 0 && Emitter.CanLoadPlugin)
                {
                    Once(number, Emitter.Plugin, loadPlugin, runPlugin);
                    truth.Count("plugins");
                }
                if (number % 256 == 255)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                    CountFreed();
                    truth.Count("collections");
                }
            }
            truth.Count("freed", freed);
            truth.Count("checksum_low", checksum & 0xffff);
        }

        /// <summary>Not inlined: no stack slot of Main may keep the code alive.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Once(int number, Func<int, Func<long, long>> emit, Phase emitting, Phase running)
        {
            double start = ThreadClock.Seconds();
            Func<long, long> method = emit(number);
            method(1); // jitted here, so that the second phase is the method alone
            double emitted = ThreadClock.Seconds();
            RunOne(method);
            double ran = ThreadClock.Seconds();

            emitting.Add(emitted - start);
            running.Add(ran - emitted);
            Emitted.Add(new WeakReference(method));
            Alive.Enqueue(method);
            if (Alive.Count > KeptAlive)
                Alive.Dequeue();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void RunOne(Func<long, long> method)
        {
            checksum += method(LoopsPerMethod);
        }

        private static void CountFreed()
        {
            freed += Emitted.RemoveAll(reference => !reference.IsAlive);
        }
    }
}
