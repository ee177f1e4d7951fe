using System.Runtime.InteropServices;

namespace Samples
{
    /// <summary>CPU time of the calling thread and of the process, from the kernel's own clocks.</summary>
    public static class ThreadClock
    {
        private const int ProcessCpuTime = 2; // CLOCK_PROCESS_CPUTIME_ID
        private const int ThreadCpuTime = 3;  // CLOCK_THREAD_CPUTIME_ID

        [StructLayout(LayoutKind.Sequential)]
        private struct TimeSpec
        {
            public long Seconds;
            public long Nanoseconds;
        }

        [DllImport("libc", EntryPoint = "clock_gettime")]
        private static extern int ClockGetTime(int clock, out TimeSpec time);

        /// <summary>CPU seconds the calling thread has used, in user and kernel mode.</summary>
        public static double Seconds() => Read(ThreadCpuTime);

        /// <summary>CPU seconds all threads of the process have used.</summary>
        public static double ProcessSeconds() => Read(ProcessCpuTime);

        private static double Read(int clock)
        {
            ClockGetTime(clock, out TimeSpec time);
            return time.Seconds + time.Nanoseconds * 1e-9;
        }
    }
}
