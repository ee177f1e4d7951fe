/*
 * big_profile: writes a made-up profile of a web service as HTML and SVG, and says what the writers
 * cost. Not a test by itself: html_test.js and benchmarks open what it writes.
 *
 * usage: big_profile SAMPLES VARIETY OUT.html OUT.svg
 *        big_profile nasty - OUT.html OUT.svg     names that break formats
 * VARIETY is in percent: how often a stack leaves the beaten track; 30 makes nearly every stack new.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "../unit/profile_fixture.h"
#include "base/clock.h"
#include "base/own.h"
#include "hand_profile.h"
#include "render/flame_html.h"
#include "render/flame_svg.h"

enum {
    CALLEES = 7,
    DEPTH_MAX = 70,
    THREADS = 12,
    FRAMES_MAX = 8192,
    WEIGHT_NS = 1001001,
    SAMPLE_EVERY_NS = 250000
};

static uint64_t random_state = 0x2545f4914f6cdd1d;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * limit >> 32);
}

/* A module's frames are all pairs of its types and methods, numbered when there are not enough. */
struct layer {
    const char *module, *separator;
    uint8_t kind, tier;
    uint16_t count;
    const char *types[8], *methods[8];
    uint8_t below[4]; /* which layers its calls go to */
    uint32_t first;   /* frame */
};

static struct layer layers[] = {
    { "System.Private.CoreLib",
      ".",
      CODE_R2R,
      TIER_R2R,
      60,
      { "System.Threading.Thread", "System.Threading.ThreadPoolWorkQueue",
        "System.Threading.PortableThreadPool+WorkerThread", "System.Threading.ExecutionContext",
        "System.Threading.Tasks.Task", "System.Threading.Tasks.AwaitTaskContinuation" },
      { "StartCallback()", "Dispatch()", "WorkerThreadStart()", "MoveNext()",
        "RunInternal(ExecutionContext, ContextCallback, Object)", "ExecuteWithThreadLocal(Task&, Thread)",
        "RunOrScheduleAction(Action, bool)" },
      { 0, 0, 1, 2 } },
    { "Microsoft.AspNetCore.Server.Kestrel.Core",
      ".",
      CODE_R2R,
      TIER_R2R,
      700,
      { "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol",
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.Http1Connection",
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpParser<TRequestHandler>" },
      { "ProcessRequests<TContext>(IHttpApplication<TContext>)", "TryParseRequest(ReadResult, bool&)",
        "ProduceEnd()", "ParseHeaders(TRequestHandler, SequenceReader<byte>&)", "Write(ReadOnlySpan<byte>)" },
      { 1, 1, 2, 10 } },
    { "Orders.Api",
      ".",
      CODE_JIT,
      TIER_1,
      1600,
      { "Orders.Api.Controllers.OrderController", "Orders.Api.Checkout.PriceCalculator",
        "Orders.Api.Search.Indexer", "Orders.Api.Search.Ranking<T>", "Orders.Api.Export.CsvWriter",
        "Orders.Api.Program", "Orders.Api.Reports.MonthlyReport" },
      { "GetById(int)", "Calculate(Cart, Discount[])", "Add(Item)", "Rank(List<T>, string)", "WriteRow(Row)",
        "Main(string[])", "Build(DateOnly)", "Export lambda#0" },
      { 2, 3, 3, 4 } },
    { "Orders.Domain",
      ".",
      CODE_JIT,
      TIER_0,
      1500,
      { "Orders.Domain.Discounts.RuleEngine", "Orders.Domain.Discounts.Rule", "Orders.Domain.Money",
        "Orders.Domain.Inventory.Stock", "Orders.Domain.Tax.TaxTable" },
      { "Evaluate(Order)", "Matches(Order, Customer)", "op_Multiply(Money, decimal)", "Load(Guid) (async)",
        "Reserve(int)", "Find(string)", "RateFor(Country)", ".ctor(Order)" },
      { 3, 5, 9, 4 } },
    { "System.Text.Json",
      ".",
      CODE_JIT,
      TIER_1,
      900,
      { "System.Text.Json.JsonSerializer", "System.Text.Json.Utf8JsonWriter",
        "System.Text.Json.Utf8JsonReader",
        "System.Text.Json.Serialization.Converters.ObjectDefaultConverter<T>",
        "System.Text.Json.Serialization.JsonConverter<T>" },
      { "Serialize<TValue>(TValue, JsonSerializerOptions)",
        "WriteString(ReadOnlySpan<char>, ReadOnlySpan<char>)",
        "OnTryWrite(Utf8JsonWriter, T, JsonSerializerOptions, WriteStack&)", "Read()",
        "GetMemberAndWriteJson(Object, WriteStack&, Utf8JsonWriter)", "Resize(int)" },
      { 4, 4, 5, 10 } },
    { "System.Private.CoreLib",
      ".",
      CODE_R2R,
      TIER_R2R,
      1600,
      { "System.Collections.Generic.Dictionary<System.__Canon, System.__Canon>", "System.String",
        "System.Collections.Generic.List<System.__Canon>", "System.Number", "System.Text.StringBuilder",
        "System.SpanHelpers", "System.Buffers.SharedArrayPool<byte>" },
      { "FindValue(__Canon)", "Concat(string, string, string)", "AddWithResize(__Canon)",
        "FormatInt32(int, int, string, IFormatProvider)", "Append(string)",
        "IndexOfAnyValueType<short>(short&, short, short, int)", "Rent(int)", ".ctor(int)" },
      { 5, 5, 6, 7 } },
    { "libcoreclr.so",
      "::",
      CODE_RUNTIME,
      TIER_NONE,
      500,
      { "WKS::gc_heap", "SVR::gc_heap", "WKS::GCHeap", "MethodTable", "VirtualCallStubManager", "ETW" },
      { "plan_phase(int)", "mark_object_simple(unsigned char**)",
        "Alloc(gc_alloc_context*, unsigned long, unsigned int)", "CanCastTo(MethodTable*)",
        "DoPrestub(MethodTable*)", "ResolveWorker(StubCallSite*)", "relocate_survivors(int)" },
      { 6, 7, 7, 8 } },
    { "libc.so.6",
      "",
      CODE_NATIVE,
      TIER_NONE,
      240,
      { "__memmove", "__memset", "pthread", "malloc", "epoll", "recv", "__poll" },
      { "_avx_unaligned_erms", "_mutex_lock", "_cond_wait", "_consolidate", "_wait", "msg" },
      { 7, 8, 8, 11 } },
    { "[kernel]",
      "",
      CODE_KERNEL,
      TIER_NONE,
      360,
      { "do_syscall", "tcp", "ext4", "handle", "futex", "sock", "schedule" },
      { "_64", "_sendmsg_locked", "_mm_fault", "_wait_queue", "_page_erms", "_recvmsg", "_file_write_iter" },
      { 8, 8, 8, 8 } },
    { "",
      "",
      CODE_STUB,
      TIER_NONE,
      3,
      { "[precode", "[call counting", "[write barrier" },
      { "]" },
      { 6, 5, 6, 6 } },
    { "",
      ".",
      CODE_DYNAMIC,
      TIER_OPTIMIZED,
      40,
      { "dynamicClass", "CallSite" },
      { "lambda_method12(Closure, Object)", "IL_STUB_PInvoke(long, byte*, int)", "Target(Closure)" },
      { 3, 5, 6, 4 } },
    { "", "", CODE_UNKNOWN, TIER_NONE, 1, { "[unknown" }, { "]" }, { 7, 8, 7, 8 } },
};

static uint32_t callees[FRAMES_MAX][CALLEES];
static uint8_t layer_of[FRAMES_MAX];

static uint32_t texts_of(const char *const *texts)
{
    uint32_t count = 0;
    while (count < 8 && texts[count])
        count++;
    return count;
}

static void add_frames(struct hand_profile *f)
{
    for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
        struct layer *l = &layers[i];
        uint32_t types = texts_of(l->types), methods = texts_of(l->methods);
        l->first = f->p.frame_count;
        for (uint32_t n = 0; n < l->count; n++) {
            char number[16] = "";
            if (n >= types * methods)
                snprintf(number, sizeof number, "%" PRIu32, n / (types * methods) + 1);
            const char *method = l->methods[(n + n / types) % methods];
            size_t plain = method[0] == ']' ? 0 : strcspn(method, "(< ");
            char *name = mem_format("%s%s%.*s%s%s", l->types[n % types], l->separator, (int)plain, method,
                                    number, method + plain);
            uint32_t id = hand_profile_frame(f, name, l->module, l->kind, l->tier);
            if (l->tier == TIER_1 && n % 11 == 3)
                f->p.frames[id].tier = TIER_OSR;
            layer_of[id] = (uint8_t)i;
        }
    }
    for (uint32_t frame = 1; frame < f->p.frame_count; frame++)
        for (uint32_t c = 0; c < CALLEES; c++) {
            const struct layer *to = &layers[layers[layer_of[frame]].below[random_below(4)]];
            callees[frame][c] = to->first + random_below(to->count);
        }
}

static size_t make_stack(uint32_t thread, uint32_t variety, uint32_t phase, uint32_t *out)
{
    size_t depth = 0, most = 14 + random_below(DEPTH_MAX - 14);
    uint32_t frame = thread > 9 ? layers[6].first : layers[0].first + thread % 3 * 2;
    while (depth < most) {
        out[depth++] = frame;
        if (depth > 4 && random_below(layer_of[frame] >= 7 ? 2 : 24) == 0)
            break;
        uint32_t straight = (frame + (depth > 5 ? phase : 0)) % 3;
        uint32_t choice = random_below(100) < variety ? random_below(CALLEES)
                          : random_below(100) < 75    ? straight
                                                      : (straight + 1) % CALLEES;
        frame = callees[frame][choice];
    }
    return depth;
}

typedef bool profile_write_fn(const struct profile *, const struct export_options *, struct output *,
                              struct error *);

static double write_file(const char *path, const struct profile *p, profile_write_fn *write_profile)
{
    struct error err = { 0 };
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct output out;
    uint64_t start = clock_own_cpu_ns();
    output_over_fd(&out, fd);
    bool ok = fd >= 0 && write_profile(p, NULL, &out, &err);
    ok = output_close(&out, ok ? &err : NULL) && ok;
    if (!ok) {
        fprintf(stderr, "error: %s: %s\n", path, err.what);
        exit(1);
    }
    return (double)(clock_own_cpu_ns() - start) / 1e6;
}

static void add_samples(struct hand_profile *f, uint64_t samples, uint32_t variety)
{
    double duration_ns = (double)samples * SAMPLE_EVERY_NS;
    for (uint64_t i = 0; i < samples; i++) {
        uint32_t stack[DEPTH_MAX];
        uint32_t draw = random_below(100);
        uint32_t thread = draw < 8 ? 1 : draw < 86 ? 2 + draw % 7 : 9 + draw % 4;
        size_t depth = make_stack(thread, variety, (uint32_t)(i * 3 / samples), stack);
        /* Bursts: each tenth of the time is busier at its ends. */
        double at = (double)i / (double)samples;
        at += 0.075 * __builtin_sin(at * 6.2832 * 10) / 6.2832;
        hand_profile_sample(f, (uint64_t)(at * duration_ns), thread, stack, depth, WEIGHT_NS);
    }
    f->p.duration_ns = (uint64_t)duration_ns;
}

static int write_nasty(const char *html, const char *svg)
{
    struct profile p;
    profile_fixture_nasty(&p);
    p.title = "</title><script>alert(1)</script>\xe2\x80\xae&amp;";
    write_file(html, &p, flame_html_write);
    write_file(svg, &p, flame_svg_write);
    profile_fixture_done(&p);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    if (strcmp(argv[1], "nasty") == 0)
        return write_nasty(argv[3], argv[4]);
    uint64_t samples = strtoull(argv[1], NULL, 10);
    struct hand_profile f;
    hand_profile_init(&f);
    add_frames(&f);
    for (uint32_t i = 1; i <= THREADS; i++)
        hand_profile_thread(&f, 4711, 4711 + i * 3,
                            i == 1   ? "orders-api"
                            : i < 9  ? ".NET TP Worker"
                            : i == 9 ? ".NET Tiered Compilation"
                                     : ".NET Server GC",
                            "Orders.Api");
    add_samples(&f, samples, (uint32_t)strtoul(argv[2], NULL, 10));
    f.p.title = "Orders.Api (pid 4711)";
    f.p.start_realtime_ns = 1783412345678000000;
    f.p.rate_hz = 999;
    f.p.counts.lost = samples / 4000;
    f.p.counts.broken = f.p.counts.whole / 300;
    f.p.counts.whole -= f.p.counts.broken;
    f.p.counts.unnamed = f.p.counts.user_frames / 900;
    hand_profile_finish(&f);
    double html_ms = write_file(argv[3], &f.p, flame_html_write);
    double svg_ms = write_file(argv[4], &f.p, flame_svg_write);
    printf("{\"samples\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"frames\":%" PRIu32
           ",\"html_cpu_ms\":%.1f,\"svg_cpu_ms\":%.1f}\n",
           samples, f.p.node_count, f.p.frame_count, html_ms, svg_ms);
    for (uint32_t i = 1; i < f.p.frame_count; i++)
        free((void *)(uintptr_t)f.p.frames[i].name);
    hand_profile_done(&f);
    return 0;
}
