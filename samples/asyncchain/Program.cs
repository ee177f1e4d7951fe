using System;
using System.Threading;
using System.Threading.Tasks;
using Samples;

namespace AsyncChain
{
    /// <summary>
    /// Async methods that wait for good, in chains that are known. The truth's counts tell at which line each method waits
    /// (`line METHOD`). With `churn` as second argument two threads allocate at full speed meanwhile.
    /// </summary>
    public static class Program
    {
        private const int Awaits = 85;
        private static byte[]?[] kept = new byte[64][];

        public static void Main(string[] args)
        {
            using (var run = new Run("asyncchain", args))
            {
                Lines.Truth = run.Truth;
                Chains.Start();
                Sources.Start();
                // what has ended is in no chain
                Ended().Wait();
                if (args.Length > 1 && args[1] == "churn")
                {
                    for (int i = 0; i < 2; i++)
                        new Thread(() => Churn(run)) { IsBackground = true, Name = "churns-at-full-speed-" + i }.Start();
                }
                while (Volatile.Read(ref Lines.Begun) < Awaits)
                    Thread.Sleep(10);
                Thread.Sleep(100); // what they await begins to wait
                run.Ready();
                run.AnswerInput();
                run.WaitOver();
            }
            Environment.Exit(0);
        }

        private static async Task Ended()
        {
            await Task.Delay(1);
            await Task.Yield();
        }

        private static void Churn(Run run)
        {
            var random = new Random(1);
            while (!run.Over)
            {
                kept[random.Next(kept.Length)] = new byte[random.Next(100) == 0 ? 100_000 : random.Next(2000)];
                run.Truth.Count("allocated");
            }
        }
    }
}
