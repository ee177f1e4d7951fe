using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text.Json;
using Microsoft.AspNetCore.Mvc;
using Samples;

namespace WebApi.Controllers
{
    /// <summary>Ordinary work: a dictionary, a LINQ query, JSON there and back.</summary>
    [ApiController]
    public sealed class DictController : ControllerBase
    {
        private readonly Tally tally;

        public DictController(Tally tally)
        {
            this.tally = tally;
        }

        [HttpGet("/dict/{id:int}")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public IActionResult Dict(int id)
        {
            tally.Request("dict");
            double before = ThreadClock.Seconds();
            var byName = new Dictionary<string, int>();
            for (int i = 0; i < 500; i++)
                byName["item " + (id + i) % 400] = i;
            Dictionary<string, int> best = byName.Where(item => item.Value % 3 != 0)
                                                 .OrderByDescending(item => item.Value)
                                                 .Take(50)
                                                 .ToDictionary(item => item.Key, item => item.Value);
            string json = JsonSerializer.Serialize(best);
            int back = JsonSerializer.Deserialize<Dictionary<string, int>>(json)!.Count;
            tally.Count("dict_items", back);
            tally.Dictionary.Add(ThreadClock.Seconds() - before);
            return Content(json + "\n", "application/json");
        }
    }
}
