using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Mvc;
using Microsoft.Extensions.Logging;

namespace WebApi.Controllers
{
    /// <summary>Logs ten lines: to whoever listens to the logging event source, not to the console.</summary>
    [ApiController]
    public sealed class LogController : ControllerBase
    {
        private const int Lines = 10;

        private readonly Tally tally;
        private readonly ILogger<LogController> logger;

        public LogController(Tally tally, ILogger<LogController> logger)
        {
            this.tally = tally;
            this.logger = logger;
        }

        [HttpGet("/log")]
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string Log()
        {
            tally.Request("log");
            for (int line = 0; line < Lines; line++)
                logger.LogInformation("line {Line} of {Lines}", line, Lines);
            tally.Count("log_lines", Lines);
            return $"logged {Lines} lines\n";
        }
    }
}
