using System;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Mvc;
using Samples;

namespace WebApi.Controllers
{
    /// <summary>Throws and catches exceptions, each through ten frames.</summary>
    [ApiController]
    public sealed class ExceptionController : ControllerBase
    {
        private const int Depth = 10;

        private readonly Tally tally;

        public ExceptionController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/exception/{n:int:range(0,100000)}")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string Exception(int n)
        {
            tally.Request("exception");
            double before = ThreadClock.Seconds();
            int caught = 0;
            for (int i = 0; i < n; i++)
            {
                try
                {
                    Deeper(Depth);
                }
                catch (InvalidOperationException)
                {
                    caught++;
                }
            }
            tally.Count("exceptions", caught);
            tally.Exceptions.Add(ThreadClock.Seconds() - before);
            return $"caught {caught}\n";
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Deeper(int levels)
        {
            if (levels == 1)
                throw new InvalidOperationException("thrown on purpose");
            return Deeper(levels - 1) + 1;
        }
    }
}
