using System;
using System.Diagnostics;
using System.Globalization;
using Microsoft.Diagnostics.Tracing;

namespace Decode
{
    /// <summary>
    /// decode FILE.nettrace [PASSES]: reads all events with TraceEvent and counts them, again and again in one process.
    /// Prints a line a pass: how many events, and the CPU seconds it took. The benchmark's peer.
    /// </summary>
    public static class Program
    {
        public static int Main(string[] args)
        {
            if (args.Length < 1)
            {
                Console.Error.WriteLine("usage: decode FILE.nettrace [PASSES]");
                return 2;
            }

            int passes = args.Length > 1 ? int.Parse(args[1], CultureInfo.InvariantCulture) : 4;
            for (int pass = 0; pass < passes; pass++)
            {
                TimeSpan before = Process.GetCurrentProcess().TotalProcessorTime;
                long events = 0;
                using (var source = new EventPipeEventSource(args[0]))
                {
                    source.AllEvents += e => events++;
                    source.Process();
                }

                TimeSpan took = Process.GetCurrentProcess().TotalProcessorTime - before;
                Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{events} {took.TotalSeconds:F3}"));
            }

            return 0;
        }
    }
}
