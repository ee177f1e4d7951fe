using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Mvc;
using Samples;

namespace WebApi.Controllers
{
    /// <summary>Allocates kilobytes, and keeps one block in sixteen for a while so that some of them grow old.</summary>
    [ApiController]
    public sealed class AllocController : ControllerBase
    {
        private static readonly byte[]?[] Kept = new byte[1024][];

        private readonly Tally tally;

        public AllocController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/alloc/{kb:int:range(0,1000000)}")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string Alloc(int kb)
        {
            tally.Request("alloc");
            double before = ThreadClock.Seconds();
            for (int i = 0; i < kb; i++)
            {
                var block = new byte[1024];
                if (i % 16 == 0)
                    Kept[i / 16 % Kept.Length] = block;
            }
            tally.Count("allocated_kb", kb);
            tally.Allocations.Add(ThreadClock.Seconds() - before);
            return $"allocated {kb} kB\n";
        }
    }
}
