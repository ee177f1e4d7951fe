using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Mvc;

namespace WebApi.Controllers
{
    /// <summary>Burns 100 ms of CPU.</summary>
    [ApiController]
    public sealed class OnCpuController : ControllerBase
    {
        private readonly Tally tally;

        public OnCpuController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/on-cpu")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string OnCpu()
        {
            tally.Request("on-cpu");
            return $"burned {Burner.Burn(tally.OnCpu)}\n";
        }
    }
}
