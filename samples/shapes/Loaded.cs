using System;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;

namespace Shapes
{
    /// <summary>Code of an assembly that was loaded from an array of bytes: no file of the process's holds it.</summary>
    internal static class Loaded
    {
        private const BindingFlags Hidden = BindingFlags.NonPublic | BindingFlags.Static;

        public static void AddTo(Catalogue catalogue)
        {
            string file = OwnFile();
            if (file.Length == 0)
                return; // a single-file program
            MethodInfo own = typeof(Loaded).GetMethod(nameof(Spin), Hidden)!;
            // this very file once more; its own copy of the method is never called
#pragma warning disable IL2026, IL2075 // what is looked for is kept by the line above
            MethodInfo copy = Assembly.Load(File.ReadAllBytes(file)).GetType(own.DeclaringType!.FullName!)!.GetMethod(own.Name, Hidden)!;
#pragma warning restore IL2026, IL2075
            var spin = (Func<int, ulong>)copy.CreateDelegate(typeof(Func<int, ulong>));
            catalogue.Add("ByteArray", spin, "Shapes.Loaded.Spin");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ulong Spin(int loops)
        {
            ulong x = 1;
            for (int i = 0; i < loops; i++)
                x = x * 31 + 7;
            return x;
        }

        private static string OwnFile()
        {
#pragma warning disable IL3000 // empty in a single-file program, which is what is asked here
            return typeof(Loaded).Assembly.Location;
#pragma warning restore IL3000
        }
    }
}
