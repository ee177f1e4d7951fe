using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Threading;
#if !NETCOREAPP3_1
using System.Runtime.InteropServices;
#endif

namespace Samples
{
    /// <summary>
    /// One run of a sample: lasts the seconds given as first argument (30 without one, 0 for ever), ends early on
    /// SIGTERM or SIGINT, and prints its truth at the end.
    /// </summary>
    public sealed class Run : IDisposable
    {
        private static readonly long SliceTicks = Stopwatch.Frequency / 50;

        private readonly ManualResetEventSlim stopped = new ManualResetEventSlim();
        private readonly long deadline;
#if NETCOREAPP3_1
        private readonly ManualResetEventSlim finished = new ManualResetEventSlim();
#else
        private readonly PosixSignalRegistration[] signals;
#endif

        public Run(string sample, string[] args)
        {
            double seconds = 30;
            if (args.Length > 0 && !double.TryParse(args[0], NumberStyles.Float, CultureInfo.InvariantCulture, out seconds))
                throw new ArgumentException($"'{args[0]}' is not a number of seconds");
            if (seconds < 0)
                throw new ArgumentException("the number of seconds must not be negative");
            Seconds = seconds;
            deadline = seconds == 0 ? long.MaxValue
                                    : Stopwatch.GetTimestamp() + (long)(seconds * Stopwatch.Frequency);
            Truth = new Truth(sample);
#if NETCOREAPP3_1
            Console.CancelKeyPress += (sender, e) => { e.Cancel = true; Stop(); };
            AppDomain.CurrentDomain.ProcessExit += (sender, e) => { Stop(); finished.Wait(2000); };
#else
            Action<PosixSignalContext> stop = context => { context.Cancel = true; Stop(); };
            signals = new[]
            {
                PosixSignalRegistration.Create(PosixSignal.SIGTERM, stop),
                PosixSignalRegistration.Create(PosixSignal.SIGINT, stop),
            };
#endif
        }

        public Truth Truth { get; }

        /// <summary>How long the run was asked to last; 0 means until a signal.</summary>
        public double Seconds { get; }

        /// <summary>Runs on the thread that asks for the stop, for programs whose main thread is blocked.</summary>
        public Action? Stopping { get; set; }

        public bool Over => stopped.IsSet || Stopwatch.GetTimestamp() >= deadline;

        /// <summary>Tells whoever started the program that it is up: the first line it prints.</summary>
        public void Ready(string details = "")
        {
            int pid = Process.GetCurrentProcess().Id;
            Truth.WriteLine(details.Length == 0 ? $"ready {pid}" : $"ready {pid} {details}");
        }

        /// <summary>Prints the truth so far for each line on standard input, unless that is a terminal.</summary>
        public void AnswerInput()
        {
            if (!Console.IsInputRedirected)
                return;
            var answering = new Thread(() =>
            {
                using (Stream input = Console.OpenStandardInput())
                {
                    for (int read = input.ReadByte(); read >= 0; read = input.ReadByte())
                    {
                        if (read == '\n')
                            Truth.PrintSoFar();
                    }
                }
            });
            answering.IsBackground = true;
            answering.Start();
        }

        /// <summary>
        /// Works in rounds: until the run is over or, when the second argument is `asked`, one for each line on
        /// standard input, answered with the truth when the round is done.
        /// </summary>
        public void Rounds(string[] args, Action round)
        {
            if (args.Length > 1 && args[1] == "asked")
            {
                while (!Over && Console.In.ReadLine() != null)
                {
                    round();
                    Truth.PrintSoFar();
                }
                return;
            }
            AnswerInput();
            while (!Over)
                round();
        }

        /// <summary>Ends the run early.</summary>
        public void Stop()
        {
            if (stopped.IsSet)
                return;
            stopped.Set();
            Stopping?.Invoke();
        }

        /// <summary>Blocks until the run is over.</summary>
        public void WaitOver()
        {
            if (Seconds == 0)
                stopped.Wait();
            else
                stopped.Wait(TimeSpan.FromSeconds(Math.Max(0, (deadline - Stopwatch.GetTimestamp()) / (double)Stopwatch.Frequency)));
        }

        /// <summary>Calls `body` with the timestamp at which its 20 ms are over, and books the CPU it used.</summary>
        public void Slice(Phase phase, Action<long> body)
        {
            double before = ThreadClock.Seconds();
            body(Stopwatch.GetTimestamp() + SliceTicks);
            phase.Add(ThreadClock.Seconds() - before);
        }

        /// <summary>Prints the truth. The program should return from Main next.</summary>
        public void Dispose()
        {
            Truth.Print();
#if NETCOREAPP3_1
            finished.Set();
#else
            foreach (PosixSignalRegistration signal in signals)
                signal.Dispose();
#endif
        }
    }
}
