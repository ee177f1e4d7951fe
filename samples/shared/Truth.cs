using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;

namespace Samples
{
    /// <summary>One named part of a program: what it cost, and the frames a profiler should show for it.</summary>
    public sealed class Phase
    {
        private readonly object gate = new object();
        private double cpuSeconds;
        private long slices;

        internal Phase(string name, string[] expected)
        {
            Name = name;
            Expected = expected;
        }

        public string Name { get; }

        /// <summary>Frames as people write them in C#, the innermost last.</summary>
        public IReadOnlyList<string> Expected { get; }

        /// <summary>Adds one slice. Any thread may call it.</summary>
        public void Add(double seconds)
        {
            lock (gate)
            {
                cpuSeconds += seconds;
                slices++;
            }
        }

        internal (double CpuSeconds, long Slices) Total()
        {
            lock (gate)
                return (cpuSeconds, slices);
        }
    }

    /// <summary>What a program knows about itself, printed as one line of JSON when it ends.</summary>
    public sealed class Truth
    {
        private readonly string sample;
        private readonly Stopwatch wall = Stopwatch.StartNew();
        private readonly List<Phase> phases = new List<Phase>();
        private readonly SortedDictionary<string, long> counts = new SortedDictionary<string, long>(StringComparer.Ordinal);
        private readonly SortedDictionary<string, Func<long>> asked = new SortedDictionary<string, Func<long>>(StringComparer.Ordinal);
        private readonly List<KeyValuePair<string, string>> lists = new List<KeyValuePair<string, string>>();
        private int printed;

        public Truth(string sample)
        {
            this.sample = sample;
        }

        public Phase AddPhase(string name, params string[] expected)
        {
            var phase = new Phase(name, expected);
            lock (phases)
                phases.Add(phase);
            return phase;
        }

        public void Count(string name, long more = 1)
        {
            lock (counts)
            {
                counts.TryGetValue(name, out long soFar);
                counts[name] = soFar + more;
            }
        }

        /// <summary>A count that is asked for whenever the truth is told.</summary>
        public void Ask(string name, Func<long> value)
        {
            lock (counts)
                asked[name] = value;
        }

        /// <summary>Adds a row, an object of JSON, to the list of this name.</summary>
        public void Add(string list, string row)
        {
            lock (lists)
                lists.Add(new KeyValuePair<string, string>(list, row));
        }

        public string ToJson()
        {
            var json = new StringBuilder();
            json.Append("{\"sample\":").Append(Quoted(sample));
            json.Append(",\"runtime\":").Append(Quoted(Environment.Version.ToString()));
            json.Append(",\"wall_s\":").Append(Number(wall.Elapsed.TotalSeconds));
            json.Append(",\"process_cpu_s\":").Append(Number(ThreadClock.ProcessSeconds()));
            json.Append(",\"phases\":[");
            lock (phases)
            {
                for (int i = 0; i < phases.Count; i++)
                    AppendPhase(json.Append(i == 0 ? "" : ","), phases[i]);
            }
            json.Append("],\"counts\":{");
            lock (counts)
            {
                foreach (KeyValuePair<string, Func<long>> one in asked)
                    counts[one.Key] = one.Value();
                string separator = "";
                foreach (KeyValuePair<string, long> count in counts)
                {
                    json.Append(separator).Append(Quoted(count.Key)).Append(':').Append(count.Value);
                    separator = ",";
                }
            }
            json.Append('}');
            AppendLists(json);
            return json.Append('}').ToString();
        }

        /// <summary>Prints the truth, the first time it is called.</summary>
        public void Print()
        {
            if (Interlocked.Exchange(ref printed, 1) == 0)
                WriteLine(ToJson());
        }

        public void PrintSoFar() => WriteLine(ToJson());

        /// <summary>Past System.Console, whose lock a thread blocked in ReadLine may hold.</summary>
        public static void WriteLine(string line)
        {
            byte[] bytes = Encoding.UTF8.GetBytes(line + "\n");
            using (Stream stdout = Console.OpenStandardOutput())
            {
                stdout.Write(bytes, 0, bytes.Length);
                stdout.Flush();
            }
        }

        private static void AppendPhase(StringBuilder json, Phase phase)
        {
            (double cpuSeconds, long slices) = phase.Total();
            json.Append("{\"name\":").Append(Quoted(phase.Name));
            json.Append(",\"cpu_s\":").Append(Number(cpuSeconds));
            json.Append(",\"slices\":").Append(slices);
            json.Append(",\"expected\":[");
            for (int i = 0; i < phase.Expected.Count; i++)
                json.Append(i == 0 ? "" : ",").Append(Quoted(phase.Expected[i]));
            json.Append("]}");
        }

        private void AppendLists(StringBuilder json)
        {
            lock (lists)
            {
                var names = new SortedSet<string>(StringComparer.Ordinal);
                foreach (KeyValuePair<string, string> row in lists)
                    names.Add(row.Key);
                foreach (string name in names)
                {
                    json.Append(',').Append(Quoted(name)).Append(":[");
                    string separator = "";
                    foreach (KeyValuePair<string, string> row in lists)
                    {
                        if (row.Key != name)
                            continue;
                        json.Append(separator).Append(row.Value);
                        separator = ",";
                    }
                    json.Append(']');
                }
            }
        }

        private static string Number(double value) => value.ToString("F6", CultureInfo.InvariantCulture);

        private static string Quoted(string text)
        {
            var json = new StringBuilder("\"");
            foreach (char c in text)
            {
                if (c == '"' || c == '\\')
                    json.Append('\\').Append(c);
                else if (c < ' ')
                    json.Append("\\u").Append(((int)c).ToString("x4", CultureInfo.InvariantCulture));
                else
                    json.Append(c);
            }
            return json.Append('"').ToString();
        }
    }
}
