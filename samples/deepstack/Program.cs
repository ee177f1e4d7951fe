using System;
using System.Runtime.CompilerServices;
using Samples;

namespace DeepStack
{
    /// <summary>
    /// Burns CPU below many calls that keep some bytes each: more than 32 KiB of stack, less than 64. With `large` as its
    /// second argument: below one that keeps 80 KiB, more than a sample can carry, and has two callers by turns.
    /// </summary>
    public static class Program
    {
        private const int Levels = 160;
        private const int Kept = 192;
        private const int LargeKept = 80 << 10;
        private const int Turns = 5;

        public static void Main(string[] args)
        {
            using var run = new Run("deepstack", args);
            if (args.Length > 1 && args[1] == "large")
            {
                RunLarge(run);
                return;
            }
            Phase phase = run.Truth.AddPhase("Descend", "DeepStack.Program.Main", "DeepStack.Program.Burn");
            run.Truth.Count("levels", Levels);
            run.AnswerInput();
            run.Ready();
            while (!run.Over)
                run.Slice(phase, until => Descend(Levels, until));
        }

        private static void RunLarge(Run run)
        {
            Phase left = run.Truth.AddPhase("Left", "DeepStack.Program.Left");
            Phase right = run.Truth.AddPhase("Right", "DeepStack.Program.Right");
            run.AnswerInput();
            run.Ready();
            for (int turn = 0; !run.Over; turn++)
                if (turn / Turns % 2 == 0)
                    run.Slice(left, until => Left(until));
                else
                    run.Slice(right, until => Right(until));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Left(long until) => Large(until, true) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Right(long until) => Large(until, false) + 2;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Large(long until, bool isLeft)
        {
            Span<byte> kept = stackalloc byte[LargeKept];
            kept[(int)(until % LargeKept)] = 1;
            int below = isLeft ? BurnLeft(until) : BurnRight(until);
            return below + kept[(int)(until % LargeKept)];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int BurnLeft(long until) => Burn(until) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int BurnRight(long until) => Burn(until) + 2;

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
