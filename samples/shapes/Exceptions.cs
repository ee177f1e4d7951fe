using System;
using System.Runtime.CompilerServices;

namespace Shapes
{
    /// <summary>Handlers run as funclets: a second stack frame of the method that holds them, above the runtime's.</summary>
    internal static class Exceptions
    {
        private static ulong spun;

        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("Catch", Catch, "Shapes.Exceptions.Catch");
            catalogue.Add("Filter", Filter, "Shapes.Exceptions.Filter", "Shapes.Exceptions.SpinInFilter");
            catalogue.Add("Finally", OuterCatch, "Shapes.Exceptions.OuterCatch", "Shapes.Exceptions.Finally");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Catch(int loops)
        {
            try
            {
                Throw();
                return 0;
            }
            catch (InvalidOperationException)
            {
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                return x;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Filter(int loops)
        {
            try
            {
                Throw();
            }
            catch (InvalidOperationException) when (SpinInFilter(loops))
            {
                return spun;
            }
            return 0;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static bool SpinInFilter(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            spun = x;
            return true;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong OuterCatch(int loops)
        {
            try
            {
                Finally(loops);
            }
            catch (InvalidOperationException)
            {
                return spun;
            }
            return 0;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Finally(int loops)
        {
            try
            {
                Throw();
            }
            finally
            {
                ulong x = 1;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                spun = x;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Throw()
        {
            throw new InvalidOperationException("thrown on purpose");
        }
    }
}
