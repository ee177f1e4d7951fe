using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using Microsoft.Diagnostics.Runtime;

namespace Names
{
    /// <summary>
    /// names PID|CORE: reads code addresses in hex from stdin, one per line, and prints for each
    /// ADDRESS TAB TYPE TAB METHOD TAB SIGNATURE, or ADDRESS TAB ? when it is no managed code. A process stands still from
    /// the first to the last line. With --threads it prints the managed stacks instead: TID TAB IP TAB TYPE.METHOD. With --machines it prints the
    /// state machines of async methods on the heap: TYPE TAB STATE TAB COUNT.
    /// </summary>
    public static class Program
    {
        public static int Main(string[] args)
        {
            List<string> rest = args.ToList();
            bool threads = rest.Remove("--threads");
            bool machines = rest.Remove("--machines");
            if (rest.Count != 1)
            {
                Console.Error.WriteLine("usage: names PID|CORE [--threads|--machines] <ADDRESSES");
                return 2;
            }

            // Read first: the process should not stand still while somebody types.
            List<string> addresses = threads || machines ? new List<string>() : ReadAddresses();
            using DataTarget target = int.TryParse(rest[0], NumberStyles.None, CultureInfo.InvariantCulture, out int pid)
                                          ? DataTarget.AttachToProcess(pid, suspend: true)
                                          : DataTarget.LoadDump(rest[0]);
            if (target.ClrVersions.Length == 0)
            {
                Console.Error.WriteLine($"no .NET runtime in '{rest[0]}'");
                return 1;
            }
            using ClrRuntime runtime = target.ClrVersions[0].CreateRuntime();
            using var output = new StreamWriter(Console.OpenStandardOutput());
            if (threads)
                PrintThreads(runtime, output);
            else if (machines)
                PrintMachines(runtime, output);
            else
                PrintNames(runtime, addresses, output);
            return 0;
        }

        private static void PrintNames(ClrRuntime runtime, List<string> addresses, TextWriter output)
        {
            foreach (string address in addresses)
            {
                string digits = address.StartsWith("0x", StringComparison.Ordinal) ? address.Substring(2) : address;
                ClrMethod? method =
                    ulong.TryParse(digits, NumberStyles.HexNumber, CultureInfo.InvariantCulture, out ulong ip)
                        ? runtime.GetMethodByInstructionPointer(ip)
                        : null;
                output.Write(address);
                if (method is null)
                    output.WriteLine("\t?");
                else
                    output.WriteLine($"\t{method.Type?.Name ?? "?"}\t{method.Name ?? "?"}\t{method.Signature ?? "?"}");
            }
        }

        private static void PrintThreads(ClrRuntime runtime, TextWriter output)
        {
            foreach (ClrThread thread in runtime.Threads.Where(thread => thread.IsAlive))
            {
                foreach (ClrStackFrame frame in thread.EnumerateStackTrace())
                {
                    if (frame.Method is ClrMethod method)
                        output.WriteLine($"{thread.OSThreadId}\t{frame.InstructionPointer:x}\t{method.Type?.Name ?? "?"}.{method.Name}");
                }
            }
        }

        private static void PrintMachines(ClrRuntime runtime, TextWriter output)
        {
            var counts = new Dictionary<string, int>();
            foreach (ClrObject box in runtime.Heap.EnumerateObjects())
            {
                ClrInstanceField? field = box.Type?.Name?.Contains("StateMachineBox<") == true ? box.Type.GetFieldByName("StateMachine") : null;
                if (field is null)
                    continue;
                string state = "?";
                string type = field.Type?.Name ?? "?";
                if (field.IsValueType)
                {
                    state = $"{box.ReadValueTypeField("StateMachine").ReadField<int>("<>1__state")}";
                }
                else
                {
                    ClrObject machine = box.ReadObjectField("StateMachine");
                    type = machine.Type?.Name ?? "?";
                    if (machine.IsValid)
                        state = $"{machine.ReadField<int>("<>1__state")}";
                }
                const int TaskDone = 0x1600000; // the state machine is cleared then
                if (box.Type!.GetFieldByName("m_stateFlags") != null && (box.ReadField<int>("m_stateFlags") & TaskDone) != 0)
                    state = "-2";
                string key = $"{type}\t{state}";
                counts[key] = counts.GetValueOrDefault(key) + 1;
            }
            foreach (KeyValuePair<string, int> count in counts)
                output.WriteLine($"{count.Key}\t{count.Value}");
        }

        private static List<string> ReadAddresses()
        {
            var addresses = new List<string>();
            string? line;
            while ((line = Console.In.ReadLine()) != null)
            {
                if (line.Trim().Length > 0)
                    addresses.Add(line.Trim());
            }
            return addresses;
        }
    }
}
