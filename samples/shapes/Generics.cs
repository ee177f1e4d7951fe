using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;

namespace Shapes
{
    public sealed class Box<T>
    {
        public T Content = default!;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin(int loops)
        {
            ulong x = Content is null ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public TOther Convert<TOther>(TOther other, int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x == 0 ? default! : other;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong SpinInLambda(int loops)
        {
            Func<T, ulong> spin = content =>
            {
                ulong x = content is null ? 1u : 2u;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                return x;
            };
            return spin(Content);
        }
    }

    public sealed class Pair<TKey, TValue>
    {
        public TKey Key = default!;
        public TValue Value = default!;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin(int loops)
        {
            ulong x = Key is null || Value is null ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    public static class Outer<T>
    {
        public sealed class Inner<TInner>
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public ulong Spin(int loops)
            {
                ulong x = typeof(T) == typeof(TInner) ? 1u : 2u;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                return x;
            }

            public struct Innermost
            {
                [MethodImpl(MethodImplOptions.NoInlining)]
                public static ulong Spin(int loops)
                {
                    ulong x = 1;
                    for (int i = 0; i < loops; i++)
                        x = x * 31 + 7;
                    return x;
                }
            }
        }
    }

    public abstract class Visitor
    {
        public abstract ulong Visit<T>(T item, int loops);
    }

    public sealed class LoudVisitor : Visitor
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override ulong Visit<T>(T item, int loops)
        {
            ulong x = item is null ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    /// <summary>Its static constructor runs once for each type argument.</summary>
    public static class Once<T>
    {
        public static readonly ulong Spun;

        static Once()
        {
            ulong x = 1;
            for (int i = 0; i < 2_000_000; i++)
                x = x * 31 + 7;
            Spun = x;
        }
    }

    internal static class Generics
    {
        private static readonly Type[] TypeArguments = FindTypeArguments();
        private static readonly Visitor Loud = new LoudVisitor();
        private static int constructed;

        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("GenericTypeOverValue", new Box<int>().Spin, "Shapes.Box<T>.Spin");
            catalogue.Add("GenericTypeOverReference", new Box<string>().Spin, "Shapes.Box<T>.Spin");
            catalogue.Add("GenericTypeOfTwo", new Pair<int, string>().Spin, "Shapes.Pair<TKey, TValue>.Spin");
            catalogue.Add("GenericTypeOverTuple", new Pair<(int, double), List<string>>().Spin, "Shapes.Pair<TKey, TValue>.Spin");
            catalogue.Add("GenericNested", new Outer<string>.Inner<int>().Spin, "Shapes.Outer<T>.Inner<TInner>.Spin");
            catalogue.Add("GenericNestedTwice", Outer<byte>.Inner<object>.Innermost.Spin,
                          "Shapes.Outer<T>.Inner<TInner>.Innermost.Spin");
            catalogue.Add("GenericMethodOverValue", loops => Spin(1.5, loops), "Shapes.Generics.Spin<T>");
            catalogue.Add("GenericMethodOverReference", loops => Spin("text", loops), "Shapes.Generics.Spin<T>");
            catalogue.Add("GenericMethodInGenericType", loops => (ulong)new Box<string>().Convert(7L, loops),
                          "Shapes.Box<T>.Convert<TOther>");
            catalogue.Add("GenericVirtualOverValue", loops => Loud.Visit(DayOfWeek.Friday, loops),
                          "Shapes.LoudVisitor.Visit<T>");
            catalogue.Add("GenericVirtualOverReference", loops => Loud.Visit(Loud, loops), "Shapes.LoudVisitor.Visit<T>");
            catalogue.Add("LambdaInGenericType", new Box<string>().SpinInLambda, "Shapes.Box<T>.SpinInLambda",
                          "Shapes.Box<T>.SpinInLambda lambda");
            catalogue.Add("StaticConstructor", RunStaticConstructor, "Shapes.Generics.RunStaticConstructor",
                          "Shapes.Once<T>..cctor");
        }

        /// <summary>Compiled now, and run when all others have had their turn: a second later.</summary>
        public static void AddLast(Catalogue catalogue)
        {
            Early(7L, 0);
            catalogue.Add("GenericMethodCompiledBefore", loops => Early(7L, loops), "Shapes.Generics.Early<T>",
                          "Shapes.Generics.SpinEarly");
        }

        /// <summary>Never compiled again.</summary>
        [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
        private static ulong Early<T>(T seed, int loops)
        {
            return SpinEarly(loops) + (seed is null ? 1u : 2u);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SpinEarly(int loops)
        {
            ulong x = 3;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Spin<T>(T seed, int loops)
        {
            ulong x = seed is null ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        /// <summary>A type argument not used before: all public types of the core library, then their arrays, and so on.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong RunStaticConstructor(int loops)
        {
            Type argument = TypeArguments[constructed % TypeArguments.Length];
            for (int rank = constructed / TypeArguments.Length; rank > 0; rank--)
                argument = argument.MakeArrayType();
            constructed++;
            RuntimeHelpers.RunClassConstructor(typeof(Once<>).MakeGenericType(argument).TypeHandle);
            return (ulong)loops;
        }

        private static Type[] FindTypeArguments()
        {
            return typeof(object).Assembly.GetExportedTypes()
                                 .Where(type => type.IsClass && !type.IsAbstract && !type.ContainsGenericParameters)
                                 .ToArray();
        }
    }
}
