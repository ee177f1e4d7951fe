using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Samples;

namespace Throws
{
    public sealed class OrderException : Exception
    {
        public OrderException(string message, Exception? inner = null)
            : base(message, inner)
        {
        }
    }

    /// <summary>
    /// Throws known exceptions at known places. A count is `thrown TYPE|MESSAGE|METHOD` for each throw of a new exception
    /// object, the number of times it was thrown again is `rethrown TYPE`, and `awaited TYPE` that of those who waited for a
    /// task that ended with it, each of which throws it again.
    /// </summary>
    public static class Program
    {
        private static Truth truth = null!;
        private static object? nothing = Environment.GetEnvironmentVariable("THROWS_NOTHING");
        private static int zero = Environment.GetEnvironmentVariable("THROWS_NOTHING")?.Length ?? 0;

        public static void Main(string[] args)
        {
            StartChildren();
            using var run = new Run("throws", args);
            truth = run.Truth;
            run.Ready();
            run.Rounds(args, Round);
        }

        /// <summary>Runs itself as often as THROWS_CHILDREN says, one after the other, each for a moment.</summary>
        private static void StartChildren()
        {
            string host = Process.GetCurrentProcess().MainModule!.FileName!;
            for (int left = int.Parse(Environment.GetEnvironmentVariable("THROWS_CHILDREN") ?? "0"); left > 0; left--)
            {
                var start = new ProcessStartInfo(host);
                if (Path.GetFileName(host) == "dotnet")
                    start.ArgumentList.Add(Environment.GetCommandLineArgs()[0]);
                start.ArgumentList.Add("0.2");
                start.Environment.Remove("THROWS_CHILDREN");
                using var child = Process.Start(start)!;
                child.WaitForExit();
            }
        }

        private static void Round()
        {
            for (int i = 0; i < 200; i++)
                Swallow(Plain);
            for (int i = 0; i < 60; i++)
                Swallow(Deep);
            for (int i = 0; i < 40; i++)
                Swallow(Wrapped);
            for (int i = 0; i < 30; i++)
                Swallow(Again);
            for (int i = 0; i < 20; i++)
                Swallow(PastFinally);
            for (int i = 0; i < 25; i++)
                Swallow(Filtered);
            for (int i = 0; i < 15; i++)
                Swallow(NullDereference);
            for (int i = 0; i < 10; i++)
                Swallow(DivideByZero);
            for (int i = 0; i < 9; i++)
                Swallow(Awaited);
            for (int i = 0; i < 12; i++)
                Numbered(i);
            var other = new Thread(OnOtherThread);
            other.Start();
            other.Join();
        }

        private static void Thrown(string type, string message, string method)
        {
            truth.Count("thrown");
            truth.Count("thrown " + type + "|" + message + "|Throws.Program." + method);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Swallow(Action action)
        {
            try
            {
                action();
            }
            catch (Exception)
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Plain()
        {
            Thrown("System.FormatException", "not a price", "Plain");
            throw new FormatException("not a price");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Deep() => Fall(10);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Fall(int depth)
        {
            if (depth > 0)
                return Fall(depth - 1) + 1;
            Thrown("Throws.OrderException", "too deep", "Fall");
            throw new OrderException("too deep");
        }

        /// <summary>Thrown while another one is handled, which it holds.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Wrapped()
        {
            try
            {
                Thrown("System.InvalidOperationException", "inner", "Wrapped");
                throw new InvalidOperationException("inner");
            }
            catch (InvalidOperationException e)
            {
                Thrown("Throws.OrderException", "outer", "Wrapped");
                throw new OrderException("outer", e);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Again()
        {
            try
            {
                Thrown("System.ArgumentException", "again", "Again");
                throw new ArgumentException("again");
            }
            catch (ArgumentException)
            {
                truth.Count("rethrown System.ArgumentException");
                throw;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void PastFinally()
        {
            try
            {
                Thrown("System.TimeoutException", "late", "PastFinally");
                throw new TimeoutException("late");
            }
            finally
            {
                truth.Count("finally");
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Filtered()
        {
            try
            {
                Thrown("System.NotSupportedException", "filtered", "Filtered");
                throw new NotSupportedException("filtered");
            }
            catch (NotSupportedException e) when (e.Message.Length == 0)
            {
                truth.Count("filter_took");
            }
        }

        /// <summary>The processor finds these two.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void NullDereference()
        {
            Thrown("System.NullReferenceException", "Object reference not set to an instance of an object.", "NullDereference");
            truth.Count("never", nothing!.GetHashCode());
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void DivideByZero()
        {
            Thrown("System.DivideByZeroException", "Attempted to divide by zero.", "DivideByZero");
            truth.Count("never", 1 / zero);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Numbered(int number)
        {
            try
            {
                string message = "order " + number;
                Thrown("Throws.OrderException", message, "Numbered");
                throw new OrderException(message);
            }
            catch (OrderException)
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Awaited()
        {
            try
            {
                PassAsync(5).GetAwaiter().GetResult();
            }
            finally
            {
                truth.Count("awaited System.IO.InvalidDataException");
            }
        }

        private static async Task PassAsync(int depth)
        {
            if (depth == 0)
            {
                await Task.Yield();
                Refuse();
            }
            try
            {
                await PassAsync(depth - 1);
            }
            finally
            {
                truth.Count("awaited System.IO.InvalidDataException");
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Refuse()
        {
            Thrown("System.IO.InvalidDataException", "refused", "Refuse");
            throw new InvalidDataException("refused");
        }

        private static void OnOtherThread()
        {
            for (int i = 0; i < 8; i++)
                Swallow(Plain);
        }
    }
}
