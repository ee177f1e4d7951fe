using System;
using System.Globalization;
using System.IO;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

namespace Methods
{
    /// <summary>
    /// methods FILE.nettrace: prints each method the runtime told about, at its load or in the rundown, one per line:
    /// START TAB SIZE TAB NAMESPACE TAB NAME TAB SIGNATURE TAB FLAGS TAB TIME_NS TAB EVENT, numbers but the size and the
    /// time in hex. The time counts from the start of the session. The last line on stderr says how many there were.
    /// </summary>
    public static class Program
    {
        private static long printed;

        public static int Main(string[] args)
        {
            if (args.Length != 1)
            {
                Console.Error.WriteLine("usage: methods FILE.nettrace");
                return 2;
            }

            using var source = new EventPipeEventSource(args[0]);
            using var output = new StreamWriter(Console.OpenStandardOutput());
            var rundown = new ClrRundownTraceEventParser(source);
            source.Clr.MethodLoadVerbose += method => Print(output, "load", method);
            source.Clr.MethodUnloadVerbose += method => Print(output, "unload", method);
            rundown.MethodDCStartVerbose += method => Print(output, "rundown_start", method);
            rundown.MethodDCStopVerbose += method => Print(output, "rundown", method);
            source.Process();

            Console.Error.WriteLine($"{printed} methods, {source.EventsLost} events lost");
            return 0;
        }

        private static void Print(TextWriter output, string kind, MethodLoadUnloadVerboseTraceData method)
        {
            long timeNs = (long)(method.TimeStampRelativeMSec * 1e6);
            output.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{method.MethodStartAddress:x}\t{method.MethodSize}\t{method.MethodNamespace}\t{method.MethodName}\t" +
                $"{method.MethodSignature}\t{Flags(method):x}\t{timeNs}\t{kind}"));
            printed++;
        }

        /// <summary>The flags as the event holds them, with the tier in bits 7 to 9; TraceEvent's own property drops those.</summary>
        private static uint Flags(MethodLoadUnloadVerboseTraceData method)
        {
            const int FlagsOffset = 32; // after three addresses of 8 bytes, the size and the token

            return BitConverter.ToUInt32(method.EventData(), FlagsOffset);
        }
    }
}
