using System.Runtime.CompilerServices;
using Samples;

namespace WebApi
{
    /// <summary>Burns CPU in a frame of its own.</summary>
    internal static class Burner
    {
        private const double Seconds = 0.1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static ulong Burn(Phase phase)
        {
            double start = ThreadClock.Seconds();
            ulong x = 1;
            double now;
            do
            {
                for (int i = 0; i < 20_000; i++)
                    x = x * 6364136223846793005 + 1442695040888963407;
                now = ThreadClock.Seconds();
            } while (now - start < Seconds);
            phase.Add(now - start);
            return x;
        }
    }
}
