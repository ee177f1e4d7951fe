using System;
using System.Runtime.InteropServices;

namespace PInvoke
{
    /// <summary>The functions of the C library this program calls.</summary>
    internal static unsafe class Libc
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        public delegate int Comparer(int* a, int* b);

        [DllImport("libc", EntryPoint = "qsort")]
        public static extern void Sort(int* items, UIntPtr count, UIntPtr size, Comparer comparer);

        [DllImport("libc", EntryPoint = "bsearch")]
        public static extern int* Search(int* key, int* items, UIntPtr count, UIntPtr size, Comparer comparer);

        [DllImport("libc", EntryPoint = "getpid")]
        public static extern int GetPid();

        [DllImport("libc", EntryPoint = "getenv", CharSet = CharSet.Ansi)]
        public static extern IntPtr GetEnvironment(string name);

        [DllImport("libc", EntryPoint = "access", CharSet = CharSet.Ansi, SetLastError = true)]
        public static extern int Access(string path, int mode);

        [DllImport("libc", EntryPoint = "memcpy")]
        public static extern void* Copy(byte[] to, byte[] from, UIntPtr bytes);

        [DllImport("libc", EntryPoint = "memcmp")]
        public static extern int Compare(int* a, int* b, UIntPtr bytes);

#if !NETCOREAPP3_1
        [DllImport("libc", EntryPoint = "qsort")]
        public static extern void SortPointer(int* items, UIntPtr count, UIntPtr size,
                                              delegate* unmanaged<int*, int*, int> comparer);

        [SuppressGCTransition]
        [DllImport("libc", EntryPoint = "getppid")]
        public static extern int GetParentPid();
#endif
    }
}
