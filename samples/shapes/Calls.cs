using System;
using System.Linq.Expressions;
using System.Reflection;
using System.Runtime.CompilerServices;

namespace Shapes
{
    /// <summary>Ways to call: reflection, compiled expressions, delegates, deep recursion.</summary>
    internal static class Calls
    {
        private static readonly MethodInfo Spinner =
            typeof(Calls).GetMethod(nameof(Reflected), BindingFlags.NonPublic | BindingFlags.Static)!;
        private static readonly Func<int, ulong> Compiled = CompileSpin();
        private static readonly Func<int, ulong> Multicast = MakeMulticast();

        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("Reflection", loops => (ulong)Spinner.Invoke(null, new object[] { loops })!, "Shapes.Calls.Reflected");
            catalogue.Add("CompiledExpression", loops => Compiled(loops), "lambda_method");
            catalogue.Add("Multicast", loops => Multicast(loops), "Shapes.Calls.First", "Shapes.Calls.Second");
            catalogue.Add("Recursion", loops => Recurse(60, loops), "Shapes.Calls.Recurse");
            catalogue.Add("Extension", loops => loops.SpinExtended(), "Shapes.Calls.SpinExtended");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Reflected(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong First(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Second(int loops)
        {
            ulong x = 2;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Recurse(int levels, int loops)
        {
            if (levels > 1)
                return Recurse(levels - 1, loops) + 1;
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SpinExtended(this int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        private static Func<int, ulong> MakeMulticast()
        {
            Func<int, ulong> both = First;
            both += Second;
            return both;
        }

        /// <summary>(loops) => { x = 1; while (loops-- > 0) x = x * 31 + 7; return x; } as an expression tree.</summary>
        private static Func<int, ulong> CompileSpin()
        {
            ParameterExpression loops = Expression.Parameter(typeof(int), "loops");
            ParameterExpression x = Expression.Variable(typeof(ulong), "x");
            LabelTarget done = Expression.Label(typeof(ulong));
            Expression step = Expression.Assign(
                x, Expression.Add(Expression.Multiply(x, Expression.Constant(31UL)), Expression.Constant(7UL)));
            Expression body = Expression.Block(
                new[] { x }, Expression.Assign(x, Expression.Constant(1UL)),
                Expression.Loop(Expression.IfThenElse(
                                    Expression.GreaterThan(Expression.PostDecrementAssign(loops), Expression.Constant(0)),
                                    step, Expression.Break(done, x)),
                                done));
            return Expression.Lambda<Func<int, ulong>>(body, loops).Compile();
        }
    }
}
