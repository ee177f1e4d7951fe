using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Text.RegularExpressions;
using Samples;

namespace R2rHot
{
    /// <summary>Hot loops inside precompiled framework code. The phases take turns in slices of 20 ms.</summary>
    public static class Program
    {
        public sealed class Order
        {
            public int Id { get; set; }
            public string Customer { get; set; } = "";
            public double[] Prices { get; set; } = Array.Empty<double>();
        }

        private static readonly int[] Numbers = MakeNumbers(20_000);
        private static readonly string[] Words = Numbers.Take(2_000).Select(n => "word-" + n).ToArray();
        private static readonly Order[] Orders = MakeOrders(50);
        private static readonly string Text = string.Join(" ", Words.Take(400)) + " key=4711; last@example.org";
        private static readonly Regex Pattern = new Regex(@"(?<name>[a-z]+)=(?<value>\d+);\s+\w+@(\w+\.)+org$");

        private static long checksum;

        public static void Main(string[] args)
        {
            using var run = new Run("r2rhot", args);
            var phases = new (Phase Phase, Action<long> Body)[]
            {
                (run.Truth.AddPhase("Sort", "R2rHot.Program.PhaseSort", "System.Array.Sort<T>"), PhaseSort),
                (run.Truth.AddPhase("Dictionary", "R2rHot.Program.PhaseDictionary",
                                    "System.Collections.Generic.Dictionary<TKey, TValue>.TryInsert"), PhaseDictionary),
                (run.Truth.AddPhase("Linq", "R2rHot.Program.PhaseLinq", "System.Linq.Enumerable.ToList<TSource>"), PhaseLinq),
                (run.Truth.AddPhase("Json", "R2rHot.Program.PhaseJson", "System.Text.Json.JsonSerializer.Serialize<TValue>"),
                 PhaseJson),
                (run.Truth.AddPhase("Regex", "R2rHot.Program.PhaseRegex", "System.Text.RegularExpressions.Regex.Match"),
                 PhaseRegex),
            };
            run.AnswerInput();
            run.Ready();

            while (!run.Over)
            {
                foreach ((Phase phase, Action<long> body) in phases)
                    run.Slice(phase, body);
            }
            run.Truth.Count("checksum", checksum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseSort(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                var numbers = (int[])Numbers.Clone();
                Array.Sort(numbers);
                var words = new List<string>(Words);
                words.Sort(StringComparer.Ordinal);
                words.Sort(CompareLastLetter);
                checksum += numbers[0] + words[0].Length;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int CompareLastLetter(string a, string b) => a[a.Length - 1] - b[b.Length - 1];

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseDictionary(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                var byWord = new Dictionary<string, int>(StringComparer.Ordinal);
                foreach (string word in Words)
                    byWord[word] = word.Length;
                var byNumber = new Dictionary<int, int>();
                foreach (int number in Numbers)
                {
                    byNumber.TryGetValue(number & 0xfff, out int seen);
                    byNumber[number & 0xfff] = seen + 1;
                }
                checksum += byWord.Count + byNumber.Count;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseLinq(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                List<string> longest = Words.Where(w => w.Length > 6).OrderBy(w => w.Length).ThenBy(w => w, StringComparer.Ordinal)
                                            .Select(w => w.Substring(5)).ToList();
                int groups = Numbers.GroupBy(n => n % 97).Count(g => g.Sum(n => (long)n) > 0);
                checksum += longest.Count + groups;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseJson(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                string json = JsonSerializer.Serialize(Orders);
                Order[]? back = JsonSerializer.Deserialize<Order[]>(json);
                checksum += json.Length + (back?.Length ?? 0);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PhaseRegex(long until)
        {
            while (Stopwatch.GetTimestamp() < until)
            {
                Match match = Pattern.Match(Text);
                checksum += match.Groups["value"].Length;
            }
        }

        private static int[] MakeNumbers(int count)
        {
            var numbers = new int[count];
            uint state = 1;
            for (int i = 0; i < count; i++)
            {
                state = state * 1664525 + 1013904223;
                numbers[i] = (int)(state >> 8);
            }
            return numbers;
        }

        private static Order[] MakeOrders(int count)
        {
            return Enumerable.Range(0, count).Select(i => new Order
            {
                Id = i,
                Customer = "customer " + i,
                Prices = Numbers.Skip(i).Take(10).Select(n => n / 100.0).ToArray(),
            }).ToArray();
        }
    }
}
