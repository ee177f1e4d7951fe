using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Samples;

namespace ReadLine
{
    /// <summary>Blocked in Console.ReadLine, on a pipe or a terminal, until the input ends or the time is over.</summary>
    public static class Program
    {
        public static void Main(string[] args)
        {
            using var run = new Run("readline", args);
            run.Truth.AddPhase("ReadLine", "ReadLine.Program.Main", "ReadLine.Program.WaitForLine", "System.Console.ReadLine");
            run.Stopping = () => Leave(run);
            if (run.Seconds > 0)
                new Thread(() => { run.WaitOver(); Leave(run); }) { IsBackground = true, Name = "deadline" }.Start();
            run.Ready();

            string? line;
            while ((line = WaitForLine()) != null)
            {
                Truth.WriteLine("read: " + line);
                run.Truth.Count("lines");
                run.Truth.Count("characters", line.Length);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static string? WaitForLine() => Console.ReadLine();

        /// <summary>The main thread cannot be woken, so the thread that wants to stop prints and exits.</summary>
        private static void Leave(Run run)
        {
            run.Truth.Print();
            Environment.Exit(0);
        }
    }
}
