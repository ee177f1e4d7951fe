using Samples;

namespace WebApi
{
    /// <summary>What the service counts of itself.</summary>
    public sealed class Tally
    {
        private readonly Truth truth;

        public Tally(Truth truth)
        {
            this.truth = truth;
            OnCpu = truth.AddPhase("OnCpu", "WebApi.Controllers.OnCpuController.OnCpu", "WebApi.Burner.Burn");
            MiniOnCpu = truth.AddPhase("MiniOnCpu", "WebApi.Program.MiniOnCpu", "WebApi.Burner.Burn");
            Exceptions = truth.AddPhase("Exception", "WebApi.Controllers.ExceptionController.Exception",
                                        "WebApi.Controllers.ExceptionController.Deeper");
            Allocations = truth.AddPhase("Alloc", "WebApi.Controllers.AllocController.Alloc");
            Dictionary = truth.AddPhase("Dict", "WebApi.Controllers.DictController.Dict");
        }

        public Phase OnCpu { get; }
        public Phase MiniOnCpu { get; }
        public Phase Exceptions { get; }
        public Phase Allocations { get; }
        public Phase Dictionary { get; }

        public void Request(string route) => truth.Count("requests " + route);

        public void Count(string name, long more) => truth.Count(name, more);
    }
}
