using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Samples;

/// <summary>A type in no namespace.</summary>
internal static class Homeless
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

namespace Shapes
{
    public interface ISpinner
    {
        ulong Spin(int loops);
    }

    public interface ISpinner<T>
    {
        ulong Spin(T seed, int loops);
    }

    public interface IDefault
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        ulong SpinByDefault(int loops)
        {
            ulong x = (ulong)GetHashCode() | 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    /// <summary>Explicit implementations only: their metadata names hold the interface's.</summary>
    public sealed class Hidden : ISpinner, ISpinner<string>, IDefault
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        ulong ISpinner.Spin(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        ulong ISpinner<string>.Spin(string seed, int loops)
        {
            ulong x = (ulong)seed.Length;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    /// <summary>Called through the interface, a struct's method is reached by way of an unboxing stub.</summary>
    public struct Meters : ISpinner
    {
        public double Value;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin(int loops)
        {
            ulong x = Value > 0 ? 1u : 2u;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Meters operator +(Meters a, int loops)
        {
            for (int i = 0; i < loops; i++)
                a.Value = a.Value * 0.5 + 7;
            return a;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static explicit operator Meters(int loops)
        {
            double x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 0.5 + 7;
            return new Meters { Value = x };
        }
    }

    public ref struct Window
    {
        private readonly ReadOnlySpan<ulong> seeds;

        public Window(ReadOnlySpan<ulong> seeds)
        {
            this.seeds = seeds;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin(int loops)
        {
            ulong x = seeds[0];
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    public class Gadget
    {
        private readonly int loops;
        private ulong value;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public Gadget(int loops, bool spin)
        {
            this.loops = loops;
            ulong x = 1;
            for (int i = 0; spin && i < loops; i++)
                x = x * 31 + 7;
            value = x;
        }

        public ulong Value
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            get
            {
                ulong x = value;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                return x;
            }
            [MethodImpl(MethodImplOptions.NoInlining)]
            set
            {
                ulong x = value;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                this.value = x;
            }
        }

        public ulong this[int index]
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            get
            {
                ulong x = (ulong)index;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                return x;
            }
        }

        public event Action Changed
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            add
            {
                ulong x = value is null ? 1u : 2u;
                for (int i = 0; i < loops; i++)
                    x = x * 31 + 7;
                this.value = x;
            }
            remove
            {
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public override string ToString()
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x == 0 ? "" : "gadget";
        }

        /// <summary>A nested type, two deep.</summary>
        public sealed class Part
        {
            internal static class Screw
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

    /// <summary>Burns on the finalizer thread.</summary>
    public sealed class Mortal
    {
        private readonly int loops;
        private readonly Phase phase;

        public Mortal(int loops, Phase phase)
        {
            this.loops = loops;
            this.phase = phase;
        }

        ~Mortal()
        {
            double before = ThreadClock.Seconds();
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            phase.Add(ThreadClock.Seconds() - before);
            Volatile.Write(ref spun, x);
        }

        private static ulong spun;
    }

    internal static class Members
    {
        public static ulong Checksum;

        private static readonly ISpinner HiddenSpinner = new Hidden();
        private static readonly ISpinner BoxedMeters = new Meters();

        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("NoNamespace", Homeless.Spin, "Homeless.Spin");
            catalogue.Add("Nested", Gadget.Part.Screw.Spin, "Shapes.Gadget.Part.Screw.Spin");
            catalogue.Add("ExplicitInterface", HiddenSpinner.Spin, "Shapes.Hidden.Spin (Shapes.ISpinner)");
            catalogue.Add("ExplicitGenericInterface", loops => ((ISpinner<string>)HiddenSpinner).Spin("text", loops),
                          "Shapes.Hidden.Spin (Shapes.ISpinner<string>)");
            catalogue.Add("DefaultInterfaceMethod", ((IDefault)HiddenSpinner).SpinByDefault, "Shapes.IDefault.SpinByDefault");
            catalogue.Add("StructThroughInterface", loops => BoxedMeters.Spin(loops), "Shapes.Meters.Spin");
            catalogue.Add("Operator", loops => (ulong)(new Meters() + loops).Value, "Shapes.Meters.operator +");
            catalogue.Add("Conversion", loops => (ulong)((Meters)loops).Value, "Shapes.Meters.explicit operator");
            catalogue.Add("RefStruct", SpinWindow, "Shapes.Members.SpinWindow", "Shapes.Window.Spin");
            catalogue.Add("Constructor", loops => (ulong)(new Gadget(loops, true) is null ? 1 : 2), "Shapes.Gadget..ctor");
            catalogue.Add("PropertyGet", loops => new Gadget(loops, false).Value, "Shapes.Gadget.Value.get");
            catalogue.Add("PropertySet", SetProperty, "Shapes.Members.SetProperty", "Shapes.Gadget.Value.set");
            catalogue.Add("Indexer", loops => new Gadget(loops, false)[3], "Shapes.Gadget.this[].get");
            catalogue.Add("Event", AddHandler, "Shapes.Members.AddHandler", "Shapes.Gadget.Changed.add");
            catalogue.Add("Override", loops => (ulong)((object)new Gadget(loops, false)).ToString()!.Length,
                          "Shapes.Gadget.ToString");
            catalogue.Add("Unicode", loops => Größe(loops), "Shapes.Members.Größe");
            Checksum = Eager(1) + AsWritten(1); // compiled before the program is ready, for good
            catalogue.Add("OptimizedAtOnce", Eager, "Shapes.Members.Eager");
            catalogue.Add("NeverOptimized", AsWritten, "Shapes.Members.AsWritten");
            catalogue.AddElsewhere("Finalizer", RunFinalizers, "Shapes.Mortal.Finalize");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SpinWindow(int loops)
        {
            Span<ulong> seeds = stackalloc ulong[] { 1 };
            return new Window(seeds).Spin(loops);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SetProperty(int loops)
        {
            var gadget = new Gadget(loops, false);
            gadget.Value = 3;
            return 3;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong AddHandler(int loops)
        {
            var gadget = new Gadget(loops, false);
            gadget.Changed += () => { };
            return 3;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Größe(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        /// <summary>Compiled once, and well.</summary>
        [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
        private static ulong Eager(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        /// <summary>Compiled once, and not well.</summary>
        [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
        private static ulong AsWritten(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        private static ulong RunFinalizers(int loops, Phase phase)
        {
            LetGo(loops, phase);
            GC.Collect(0);
            GC.WaitForPendingFinalizers();
            return 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void LetGo(int loops, Phase phase)
        {
            for (int i = 0; i < 4; i++)
                _ = new Mortal(loops, phase);
        }
    }
}
