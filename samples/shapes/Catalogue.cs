using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using Samples;

namespace Shapes
{
    /// <summary>All shapes. A shape is called with a number of loops to burn, again and again until its slice is over.</summary>
    public sealed class Catalogue
    {
        private const int Loops = 200_000;

        private readonly List<(Phase Phase, Func<int, ulong> Body, int Loops)> shapes =
            new List<(Phase, Func<int, ulong>, int)>();
        private readonly Truth truth;

        public Catalogue(Truth truth)
        {
            this.truth = truth;
        }

        public ulong Checksum { get; private set; }

        /// <summary>A shape that burns on the calling thread.</summary>
        public void Add(string name, Func<int, ulong> body, params string[] expected)
        {
            shapes.Add((truth.AddPhase(name, expected), body, Loops));
        }

        /// <summary>A shape that burns on other threads too, and books what it used there itself.</summary>
        public void AddElsewhere(string name, Func<int, Phase, ulong> body, params string[] expected)
        {
            Phase phase = truth.AddPhase(name, expected);
            shapes.Add((phase, loops => body(loops, phase), 10 * Loops));
        }

        public void AddAsync(string name, Func<int, Phase, Task<ulong>> body, params string[] expected)
        {
            AddElsewhere(name, (loops, phase) => body(loops, phase).GetAwaiter().GetResult(), expected);
        }

        public void RunOnce(Run run)
        {
            foreach ((Phase phase, Func<int, ulong> body, int loops) in shapes)
            {
                run.Slice(phase, until => Repeat(body, loops, until));
                if (run.Over)
                    return;
            }
            run.Truth.Count("rounds");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void Repeat(Func<int, ulong> body, int loops, long until)
        {
            while (Stopwatch.GetTimestamp() < until)
                Checksum += body(loops);
        }
    }
}
