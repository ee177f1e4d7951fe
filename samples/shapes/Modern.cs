#if !NETCOREAPP3_1
using System.Runtime.CompilerServices;

namespace Shapes
{
    public sealed record Reading(string Sensor, int Loops)
    {
        /// <summary>What `with` calls.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private Reading(Reading original)
        {
            Sensor = original.Sensor;
            Loops = original.Loops;
            ulong x = 1;
            for (int i = 0; i < Loops; i++)
                x = x * 31 + 7;
            Modern.Spun = x;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin()
        {
            ulong x = (ulong)Sensor.Length;
            for (int i = 0; i < Loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    public readonly record struct Mark(int Loops)
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public ulong Spin()
        {
            ulong x = 1;
            for (int i = 0; i < Loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }

    public interface IAbstractSpinner<TSelf>
        where TSelf : IAbstractSpinner<TSelf>
    {
        static abstract ulong Spin(int loops);
    }

    public readonly struct StaticSpinner : IAbstractSpinner<StaticSpinner>
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

    /// <summary>Visible in this file only: the compiler puts the file's name and hash into the type's.</summary>
    file static class Secret
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

    /// <summary>Shapes that C# 8 does not have.</summary>
    internal static unsafe class Modern
    {
        internal static ulong Spun;

        public static void AddTo(Catalogue catalogue)
        {
            catalogue.Add("Record", loops => new Reading("thermometer", loops).Spin(), "Shapes.Reading.Spin");
            catalogue.Add("RecordWith", CopyRecord, "Shapes.Modern.CopyRecord", "Shapes.Reading..ctor");
            catalogue.Add("RecordStruct", loops => new Mark(loops).Spin(), "Shapes.Mark.Spin");
            catalogue.Add("StaticAbstract", SpinStatic<StaticSpinner>, "Shapes.Modern.SpinStatic<T>",
                          "Shapes.StaticSpinner.Spin");
            catalogue.Add("FileType", Secret.Spin, "Shapes.Secret.Spin");
            catalogue.Add("FunctionPointer", CallPointer, "Shapes.Modern.CallPointer", "Shapes.Modern.Pointed");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong CopyRecord(int loops)
        {
            Reading copy = new Reading("thermometer", loops) with { Sensor = "barometer" };
            return Spun + (ulong)copy.Sensor.Length;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong SpinStatic<T>(int loops)
            where T : IAbstractSpinner<T>
        {
            return T.Spin(loops) + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong CallPointer(int loops)
        {
            delegate*<int, ulong> spin = &Pointed;
            return spin(loops) + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Pointed(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }
    }
}
#endif
