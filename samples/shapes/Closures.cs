using System;
using System.Runtime.CompilerServices;

namespace Shapes
{
    /// <summary>Lambdas and local functions.</summary>
    internal static class Closures
    {
        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("LambdaStatic", StaticLambda, "Shapes.Closures.StaticLambda", "Shapes.Closures.StaticLambda lambda");
            catalogue.Add("LambdaCapturing", CapturingLambda, "Shapes.Closures.CapturingLambda",
                          "Shapes.Closures.CapturingLambda lambda");
            catalogue.Add("LambdaNested", NestedLambda, "Shapes.Closures.NestedLambda", "Shapes.Closures.NestedLambda lambda",
                          "Shapes.Closures.NestedLambda lambda");
            catalogue.Add("AnonymousMethod", AnonymousMethod, "Shapes.Closures.AnonymousMethod",
                          "Shapes.Closures.AnonymousMethod lambda");
            catalogue.Add("LocalFunction", LocalFunction, "Shapes.Closures.LocalFunction",
                          "Shapes.Closures.LocalFunction.Spin");
            catalogue.Add("LocalFunctionCapturing", CapturingLocalFunction, "Shapes.Closures.CapturingLocalFunction",
                          "Shapes.Closures.CapturingLocalFunction.Spin");
            catalogue.Add("LocalFunctionGeneric", GenericLocalFunction, "Shapes.Closures.GenericLocalFunction",
                          "Shapes.Closures.GenericLocalFunction.Spin<T>");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong StaticLambda(int loops)
        {
            Func<int, ulong> spin = count =>
            {
                ulong x = 1;
                for (int i = 0; i < count; i++)
                    x = x * 31 + 7;
                return x;
            };
            return spin(loops);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong CapturingLambda(int loops)
        {
            Func<ulong> spin = () =>
            {
                ulong x = 1;
                int count = loops;
                for (int i = 0; i < count; i++)
                    x = x * 31 + 7;
                return x;
            };
            return spin();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong NestedLambda(int loops)
        {
            Func<int, ulong> outer = count =>
            {
                Func<int, ulong> inner = more =>
                {
                    ulong x = 1;
                    for (int i = 0; i < count + more; i++)
                        x = x * 31 + 7;
                    return x;
                };
                return inner(1) + 1;
            };
            return outer(loops);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong AnonymousMethod(int loops)
        {
            Func<int, ulong> spin = delegate(int count)
            {
                ulong x = 1;
                for (int i = 0; i < count; i++)
                    x = x * 31 + 7;
                return x;
            };
            return spin(loops);
        }

        // A loop may be inlined, a try block is not: C# 8 has no attributes on local functions.

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong LocalFunction(int loops)
        {
            return Spin(loops) + 1;

            static ulong Spin(int count)
            {
                ulong x = 1;
                try
                {
                    for (int i = 0; i < count; i++)
                        x = x * 31 + 7;
                }
                catch (ArithmeticException)
                {
                    x = 0;
                }
                return x;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong CapturingLocalFunction(int loops)
        {
            ulong x = 1;
            Spin();
            return x;

            void Spin()
            {
                try
                {
                    for (int i = 0; i < loops; i++)
                        x = x * 31 + 7;
                }
                catch (ArithmeticException)
                {
                    x = 0;
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong GenericLocalFunction(int loops)
        {
            return Spin("text", loops) + 1;

            static ulong Spin<T>(T seed, int count)
            {
                ulong x = seed is null ? 1u : 2u;
                try
                {
                    for (int i = 0; i < count; i++)
                        x = x * 31 + 7;
                }
                catch (ArithmeticException)
                {
                    x = 0;
                }
                return x;
            }
        }
    }
}
