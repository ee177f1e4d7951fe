using System.Runtime.CompilerServices;
using Samples;

namespace Primes
{
    /// <summary>One hot jitted method. Its first call is replaced on the stack (OSR), later ones reach tier 1.</summary>
    public static class Program
    {
        private const int Window = 20_000;
        private const int Limit = 1_000_000;

        public static void Main(string[] args)
        {
            using var run = new Run("primes", args);
            Phase phase = run.Truth.AddPhase("CountPrimes", "Primes.Program.Main", "Primes.Program.CountPrimes");
            run.AnswerInput();
            run.Ready();

            int first = 0;
            long below = 0;
            while (!run.Over)
            {
                double before = ThreadClock.Seconds();
                int found = CountPrimes(first, first + Window);
                phase.Add(ThreadClock.Seconds() - before);

                run.Truth.Count("primes", found);
                run.Truth.Count("calls");
                below += found;
                first += Window;
                if (first == Limit)
                {
                    run.Truth.Count("passes");
                    run.Truth.Count("primes_below_1000000_wrong", below == 78498 ? 0 : 1);
                    first = 0;
                    below = 0;
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int CountPrimes(int from, int to)
        {
            int primes = 0;
            for (int candidate = from; candidate < to; candidate++)
            {
                bool prime = candidate >= 2;
                for (int divisor = 2; prime && divisor * divisor <= candidate; divisor++)
                    prime = candidate % divisor != 0;
                if (prime)
                    primes++;
            }
            return primes;
        }
    }
}
