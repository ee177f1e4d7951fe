using System;
using System.Collections.Generic;
using System.Globalization;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using Samples;

namespace GcStorm
{
    /// <summary>
    /// Collections of every kind: asked for and natural, of each generation, in the background, compacting, with pinned
    /// objects and large ones. Counts are the runtime's own, since the first round began.
    /// </summary>
    public static class Program
    {
        private const int Megabyte = 1 << 20;

        private static readonly List<byte[]> Kept = new List<byte[]>();
        private static readonly long[] First = new long[3];
        private static TimeSpan firstPause;
        private static long firstIndex;
        private static bool begun;
        private static Truth truth = null!;

        public static void Main(string[] args)
        {
            using var run = new Run("gcstorm", args);
            truth = run.Truth;
            run.Ready();
            run.Rounds(args, Round);
        }

        private static void Round()
        {
            if (!begun)
                Begin();
            for (int i = 0; i < 10; i++)
                InduceGen0();
            for (int i = 0; i < 6; i++)
                InduceGen1();
            for (int i = 0; i < 3; i++)
                InduceGen2();
            InduceCompacting();
            InduceAggressive();
            for (int i = 0; i < 3; i++)
                InduceBackground();
            AllocateSmall();
            AllocateLarge();
            CollectWithPinned();
            CollectFinalizable();
            Told();
        }

        private static void Begin()
        {
            begun = true;
            for (int generation = 0; generation < First.Length; generation++)
                First[generation] = GC.CollectionCount(generation);
            firstPause = GC.GetTotalPauseDuration();
            firstIndex = GC.GetGCMemoryInfo(GCKind.Any).Index;
            // Asked for when nothing collects: at the end of a round.
            truth.Ask("gen0", () => told[0]);
            truth.Ask("gen1", () => told[1]);
            truth.Ask("gen2", () => told[2]);
            truth.Ask("collections", () => told[3]);
            truth.Ask("pause_ns", () => told[4]);
        }

        private static readonly long[] told = new long[5];

        /// <summary>CollectionCount counts a collection for each generation below its own, too.</summary>
        private static void Told()
        {
            WaitQuiet();
            long[] counts = new long[3];
            for (int generation = 0; generation < counts.Length; generation++)
                counts[generation] = GC.CollectionCount(generation) - First[generation];
            told[0] = counts[0] - counts[1];
            told[1] = counts[1] - counts[2];
            told[2] = counts[2];
            told[3] = counts[0];
            told[4] = (GC.GetTotalPauseDuration() - firstPause).Ticks * 100;
        }

        /// <summary>No collection is under way, nor is one in the background.</summary>
        private static void WaitQuiet()
        {
            for (int quiet = 0, last = -1; quiet < 10; Thread.Sleep(20))
            {
                int now = (int)GC.GetTotalPauseDuration().Ticks;
                quiet = now == last ? quiet + 1 : 0;
                last = now;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceGen0()
        {
            Litter(Megabyte / 4);
            GC.Collect(0, GCCollectionMode.Forced, blocking: true);
            Note("InduceGen0");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceGen1()
        {
            Litter(Megabyte / 2);
            GC.Collect(1, GCCollectionMode.Forced, blocking: true);
            Note("InduceGen1");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceGen2()
        {
            Litter(Megabyte);
            GC.Collect(2, GCCollectionMode.Forced, blocking: true);
            Note("InduceGen2");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceCompacting()
        {
            Litter(Megabyte);
            GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
            GC.Collect(2, GCCollectionMode.Forced, blocking: true, compacting: true);
            Note("InduceCompacting");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceAggressive()
        {
            Litter(Megabyte);
            GC.Collect(2, GCCollectionMode.Aggressive, blocking: true, compacting: true);
            Note("InduceAggressive");
        }

        /// <summary>The runtime may decide to block all the same.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void InduceBackground()
        {
            for (int i = 0; i < 16; i++)
                Kept.Add(new byte[Megabyte / 2]);
            GC.Collect(2, GCCollectionMode.Forced, blocking: false);
            WaitQuiet();
            truth.Count("asked_InduceBackground");
        }

        /// <summary>Nothing survives but a little: collections of the youngest generation.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateSmall()
        {
            object[] few = new object[1000];
            for (int i = 0; i < 2_000_000; i++)
                few[i % few.Length] = new byte[200];
            GC.KeepAlive(few);
        }

        /// <summary>Large objects, some of which stay a while.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AllocateLarge()
        {
            for (int i = 0; i < 200; i++)
            {
                Kept.Add(new byte[Megabyte]);
                if (Kept.Count > 40)
                    Kept.RemoveRange(0, 20);
            }
            WaitQuiet();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void CollectWithPinned()
        {
            var handles = new GCHandle[50];
            for (int i = 0; i < handles.Length; i++)
                handles[i] = GCHandle.Alloc(new byte[500 + i], GCHandleType.Pinned);
            byte[] onPinnedHeap = GC.AllocateArray<byte>(Megabyte, pinned: true);
            GC.Collect(0, GCCollectionMode.Forced, blocking: true);
            Note("CollectWithPinned");
            foreach (GCHandle handle in handles)
                handle.Free();
            GC.KeepAlive(onPinnedHeap);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void CollectFinalizable()
        {
            for (int i = 0; i < 100; i++)
                _ = new Finalizable();
            GC.Collect(1, GCCollectionMode.Forced, blocking: true);
            Note("CollectFinalizable");
            GC.WaitForPendingFinalizers();
            truth.Count("finalizable", 100);
        }

        private static void Litter(int bytes)
        {
            for (int made = 0; made < bytes; made += 1000)
                Kept.Add(new byte[1000]);
            if (Kept.Count > 5000)
                Kept.RemoveRange(0, Kept.Count - 2000);
        }

        /// <summary>What the runtime says of the collection that was asked for just now.</summary>
        private static void Note(string method)
        {
            GCMemoryInfo info = GC.GetGCMemoryInfo(GCKind.Any);
            truth.Count("asked_" + method);
            truth.Add("collections_asked", string.Format(CultureInfo.InvariantCulture,
                "{{\"method\":\"{0}\",\"number\":{1},\"generation\":{2},\"pause_ns\":{3},\"heap_bytes\":{4},\"promoted_bytes\":{5}," +
                "\"pinned\":{6},\"fragmented_bytes\":{7},\"compacted\":{8},\"concurrent\":{9}}}",
                method, info.Index, info.Generation, info.PauseDurations[0].Ticks * 100, info.HeapSizeBytes,
                info.PromotedBytes, info.PinnedObjectsCount, info.FragmentedBytes, info.Compacted ? "true" : "false",
                info.Concurrent ? "true" : "false"));
        }

        private sealed class Finalizable
        {
            ~Finalizable()
            {
            }
        }
    }
}
