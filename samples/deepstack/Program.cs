using System;
using System.Runtime.CompilerServices;
using Samples;

namespace DeepStack
{
    /// <summary>Burns CPU below many calls that keep some bytes each: more than 32 KiB of stack, less than 64.</summary>
    public static class Program
    {
        private const int Levels = 160;
        private const int Kept = 192;

        public static void Main(string[] args)
        {
            using var run = new Run("deepstack", args);
            Phase phase = run.Truth.AddPhase("Descend", "DeepStack.Program.Main", "DeepStack.Program.Burn");
            run.Truth.Count("levels", Levels);
            run.AnswerInput();
            run.Ready();
            while (!run.Over)
                run.Slice(phase, until => Descend(Levels, until));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Descend(int levels, long until)
        {
            Span<byte> kept = stackalloc byte[Kept];
            kept[levels % Kept] = 1;
            int below = levels > 1 ? Descend(levels - 1, until) : Burn(until);
            return below + kept[levels % Kept];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Burn(long until)
        {
            int turns = 0;
            while (System.Diagnostics.Stopwatch.GetTimestamp() < until)
                turns++;
            return turns & 1;
        }
    }
}
