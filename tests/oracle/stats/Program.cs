using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Analysis.GC;
using Microsoft.Diagnostics.Tracing.Analysis.JIT;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

namespace Stats
{
    /// <summary>
    /// stats FILE.nettrace: what TraceEvent's GCStats and JITStats, which PerfView shows, say of each process: one JSON
    /// document {"processes":[{"pid","gcs":[...],"jits":[...]}]}. Sizes are in bytes.
    /// </summary>
    public static class Program
    {
        private const int Generations = 5;

        public static int Main(string[] args)
        {
            if (args.Length != 1)
            {
                Console.Error.WriteLine("usage: stats FILE.nettrace");
                return 2;
            }

            using var source = new EventPipeEventSource(args[0]);
            source.NeedLoadedDotNetRuntimes();
            source.Process();
            using Stream output = Console.OpenStandardOutput();
            using var json = new Utf8JsonWriter(output);
            json.WriteStartObject();
            json.WriteStartArray("processes");
            foreach (TraceProcess process in source.Processes())
            {
                TraceLoadedDotNetRuntime? runtime = process.LoadedDotNetRuntime();
                if (runtime == null)
                    continue;
                json.WriteStartObject();
                json.WriteNumber("pid", process.ProcessID);
                WriteGcs(json, runtime.GC.GCs);
                WriteJits(json, runtime.JIT.Methods);
                json.WriteEndObject();
            }
            json.WriteEndArray();
            json.WriteEndObject();
            return 0;
        }

        private static void Number(Utf8JsonWriter json, string name, double value)
        {
            if (double.IsFinite(value))
                json.WriteNumber(name, value);
            else
                json.WriteNull(name);
        }

        private static void Bytes(Utf8JsonWriter json, string name, double megabytes) =>
            Number(json, name, Math.Round(megabytes * 1e6));

        private static void WriteGcs(Utf8JsonWriter json, IEnumerable<TraceGC> gcs)
        {
            json.WriteStartArray("gcs");
            foreach (TraceGC gc in gcs.Where(one => one.IsComplete))
            {
                json.WriteStartObject();
                json.WriteNumber("number", gc.Number);
                json.WriteNumber("generation", gc.Generation);
                json.WriteString("type", gc.Type.ToString());
                json.WriteString("reason", gc.Reason.ToString());
                Number(json, "pause_ms", gc.PauseDurationMSec);
                Number(json, "suspend_ms", gc.SuspendDurationMSec);
                Number(json, "duration_ms", gc.DurationMSec);
                Bytes(json, "before", gc.HeapSizeBeforeMB);
                Bytes(json, "after", gc.HeapSizeAfterMB);
                Bytes(json, "peak", gc.HeapSizePeakMB);
                Bytes(json, "promoted", gc.PromotedMB);
                Bytes(json, "allocated", gc.AllocedSinceLastGCMB);
                json.WriteNumber("heaps", gc.HeapCount);
                json.WriteNumber("pinned", gc.HeapStats?.PinnedObjectCount ?? -1);
                WriteGenerations(json, gc);
                json.WriteEndObject();
            }
            json.WriteEndArray();
        }

        private static void WriteGenerations(Utf8JsonWriter json, TraceGC gc)
        {
            json.WriteStartArray("gen");
            for (int i = 0; i < Generations && gc.PerHeapHistories.Count > 0; i++)
            {
                var generation = (Gens)i;
                json.WriteStartObject();
                Bytes(json, "before", gc.GenSizeBeforeMB[i]);
                Bytes(json, "after", gc.GenSizeAfterMB(generation));
                Bytes(json, "in", gc.GenInMB(generation));
                Bytes(json, "out", gc.GenOutMB(generation));
                Bytes(json, "fragmentation", gc.GenFragmentationMB(generation));
                Bytes(json, "budget", gc.GenBudgetMB(generation));
                Number(json, "survival_percent", gc.SurvivalPercent(generation));
                json.WriteEndObject();
            }
            json.WriteEndArray();
        }

        private static void WriteJits(Utf8JsonWriter json, IEnumerable<TraceJittedMethod> methods)
        {
            json.WriteStartArray("jits");
            foreach (TraceJittedMethod method in methods)
            {
                json.WriteStartObject();
                json.WriteString("method", method.MethodName);
                json.WriteString("module", method.ModuleILPath);
                json.WriteString("tier", method.OptimizationTier.ToString());
                json.WriteString("kind", method.CompilationThreadKind.ToString());
                json.WriteNumber("il", method.ILSize);
                json.WriteNumber("native", method.NativeSize);
                Number(json, "time_ms", method.CompileCpuTimeMSec);
                json.WriteNumber("thread", method.ThreadID);
                json.WriteEndObject();
            }
            json.WriteEndArray();
        }
    }
}
