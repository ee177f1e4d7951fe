using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Mvc;

namespace WebApi.Controllers
{
    /// <summary>Awaits 100 ms: no thread works for the request meanwhile.</summary>
    [ApiController]
    public sealed class AwaitController : ControllerBase
    {
        private readonly Tally tally;

        public AwaitController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/await")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public async Task<string> Await()
        {
            tally.Request("await");
            await Task.Delay(100);
            tally.Count("awaited_ms", 100);
            return "awaited 100 ms\n";
        }
    }
}
