using System;
using System.Globalization;
using System.Linq;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Console;
using Samples;

namespace WebApi
{
    /// <summary>
    /// A small web service with one action per question. On 127.0.0.1 only, port 5080 unless --urls says otherwise;
    /// port 0 takes a free one, named in the first line printed.
    /// </summary>
    public static class Program
    {
        public static void Main(string[] args)
        {
            bool timed = args.Length > 0 && double.TryParse(args[0], NumberStyles.Float, CultureInfo.InvariantCulture, out _);
            using var run = new Run("webapi", timed ? args.Take(1).ToArray() : Array.Empty<string>());

            WebApplicationBuilder builder = WebApplication.CreateBuilder(args.Skip(timed ? 1 : 0).ToArray());
            builder.Logging.SetMinimumLevel(LogLevel.Warning);
            builder.Services.Configure<ConsoleLoggerOptions>(o => o.LogToStandardErrorThreshold = LogLevel.Trace);
            builder.Services.AddControllers();
            builder.Services.AddSingleton(run.Truth);
            builder.Services.AddSingleton<Tally>();
            string url = builder.Configuration["urls"] ?? "http://127.0.0.1:5080";
            if (new Uri(url).Host != "127.0.0.1")
                throw new ArgumentException($"'{url}' is not on 127.0.0.1");
            builder.WebHost.UseUrls(url);

            WebApplication app = builder.Build();
            Tally tally = app.Services.GetRequiredService<Tally>();
            app.MapControllers();
            app.MapGet("/mini/on-cpu", () => MiniOnCpu(tally));
            app.MapGet("/truth", () => Results.Text(run.Truth.ToJson() + "\n", "application/json"));

            app.Start();
            run.Ready(app.Urls.First());
            run.WaitOver();
            app.StopAsync().GetAwaiter().GetResult();
        }

        private static string MiniOnCpu(Tally tally)
        {
            tally.Request("mini/on-cpu");
            return $"burned {Burner.Burn(tally.MiniOnCpu)}\n";
        }
    }
}
