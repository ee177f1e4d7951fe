// The source of tiny.dll, which tests read. README.md says how it was built.
using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace Tiny;

public struct Pair<T> { public T First; public override string ToString() => First + "!"; }

public class Outer<T>
{
    public class Inner<U> { public V Do<V>(T t, U u, V v) => v; }
}

public interface IShape { double Area(); }

public unsafe class Square : IShape, IComparable<Square>
{
    double IShape.Area() => 4;
    int IComparable<Square>.CompareTo(Square other) => 0;
    public int Side { get; set; }
    public static Square operator +(Square a, Square b) => new() { Side = a.Side + b.Side };
    public static int Odd(int* p, ref long[,] q, in DateTime d, delegate* unmanaged<int, void> f, nint n, nuint m, char c) => *p;
}

public static class Work
{
    public static IEnumerable<int> Items(int n)
    {
        try { for (int i = 0; i < n; i++) yield return i; }
        finally { Console.WriteLine(); }
    }

    public static async Task<int> GetAsync<T>(T value)
    {
        await Task.Yield();
        return value!.GetHashCode();
    }

    public static int Run(int n)
    {
        int Local(int x) => x + n;
        Func<int, int> twice = x => 2 * x;
        try { return twice(Local(n)); }
        catch (Exception e) when (e.Message.Length == n) { return 0; }
        finally { Console.WriteLine(n); }
    }

    public static string Use()
    {
        var pairs = new List<Pair<int>> { new() { First = 1 } };
        pairs.Sort((a, b) => a.First - b.First);
        return pairs[0].ToString() + new Outer<int>.Inner<string>().Do(1, "", 2.0) + new Dictionary<Pair<int>, string>().Count;
    }
}
