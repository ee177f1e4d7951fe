using Samples;

namespace Shapes
{
    /// <summary>
    /// Every way C# has to make a frame, each one a phase that burns CPU in a method whose spelling is known. The phases
    /// take turns in slices of 20 ms.
    /// </summary>
    public static class Program
    {
        public static void Main(string[] args)
        {
            using var run = new Run("shapes", args);
            var catalogue = new Catalogue(run.Truth);
            Generics.AddTo(catalogue);
            Closures.AddTo(catalogue);
            StateMachines.AddTo(catalogue);
            Members.AddTo(catalogue);
            Calls.AddTo(catalogue);
            Exceptions.AddTo(catalogue);
            Loaded.AddTo(catalogue);
#if !NETCOREAPP3_1
            Modern.AddTo(catalogue);
#endif
            Generics.AddLast(catalogue);
            run.AnswerInput();
            run.Ready();

            while (!run.Over)
                catalogue.RunOnce(run);
            run.Truth.Count("checksum_low", (long)(catalogue.Checksum & 0xffff));
        }
    }
}
