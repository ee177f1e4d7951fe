using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Mvc;

namespace WebApi.Controllers
{
    /// <summary>Blocks a pool thread for 100 ms.</summary>
    [ApiController]
    public sealed class OffCpuController : ControllerBase
    {
        private readonly Tally tally;

        public OffCpuController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/off-cpu")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string OffCpu()
        {
            tally.Request("off-cpu");
            Task.Delay(100).Wait();
            tally.Count("off_cpu_ms", 100);
            return "waited 100 ms\n";
        }
    }
}
