#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/event_options.h"
#include "clr/event_profiles.h"

enum { ARGS_MAX = 16, LINE_MAX_BYTES = 16384 };

/* As a shell does, for what stands in the golden file. */
static int split(char *text, const char *argv[ARGS_MAX])
{
    int argc = 0;
    for (char *at = text; *at;) {
        at += strspn(at, " ");
        if (!*at)
            break;
        assert_true(argc < ARGS_MAX);
        char *to = at, quote = 0;
        argv[argc++] = to;
        for (; *at && (quote || *at != ' '); at++) {
            if (!quote && (*at == '\'' || *at == '"'))
                quote = *at;
            else if (quote && *at == quote)
                quote = 0;
            else
                *to++ = *at;
        }
        at += *at != 0;
        *to = '\0';
    }
    return argc;
}

static bool read_words(char *words, struct event_request *out, struct error *err)
{
    const char *argv[ARGS_MAX];
    struct event_options options = { 0 };
    struct option_rest rest;
    int argc = split(words, argv);
    *out = (struct event_request){ 0 };
    bool ok = option_parse(event_option_specs, argc, argv, &options, &rest, err) &&
              event_options_read(&options, NULL, NULL, out, err);
    option_values_done(event_option_specs, &options);
    return ok;
}

static void append_hex(const struct buffer *b, char *text, size_t size)
{
    size_t at = strlen(text);
    for (size_t i = 14; i < b->size && at + 3 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%02x", b->data[i]);
}

/*
 * What goes to a runtime that knows commands up to `newest`, until it accepts one; without the session's bits
 * that we add for EventSources: dotnet-trace leaves them out, and many events with them.
 */
static void requests(const struct event_request *request, unsigned newest, char *text, size_t size)
{
    struct error err;
    struct ipc_provider *providers = calloc(request->providers.count, sizeof *providers);
    assert_non_null(providers);
    struct ipc_session_request ipc = event_request_ipc(request, true, providers);
    for (size_t i = 0; i < request->providers.count; i++)
        providers[i].is_event_source = false;
    for (enum ipc_command c = ipc_best_collect(&ipc); c; c = ipc_older_collect(c, &ipc)) {
        struct buffer b;
        buffer_init(&b, IPC_MESSAGE_MAX);
        if (!ipc_append_collect(&b, c, &ipc, &err))
            fail_msg("%s", err.what);
        if (*text)
            strcat(text, " ");
        append_hex(&b, text, size);
        buffer_done(&b);
        if ((c & 0xff) <= newest)
            break;
    }
    free(providers);
}

static void compare_line(char *line)
{
    char *args = strchr(line, '\t');
    assert_non_null(args);
    *args++ = '\0';
    char *expected = strchr(args, '\t');
    assert_non_null(expected);
    *expected++ = '\0';
    expected[strcspn(expected, "\n")] = '\0';
    char shown[1024];
    snprintf(shown, sizeof shown, "%s", args);
    char got[LINE_MAX_BYTES] = "";
    struct event_request request;
    struct error err;
    if (read_words(args, &request, &err))
        requests(&request, (unsigned)strtoul(line, NULL, 10), got, sizeof got);
    else
        snprintf(got, sizeof got, "refused");
    event_request_done(&request);
    if (strcmp(got, expected) != 0)
        fail_msg("%s\n  ours   %s\n  theirs %s", shown, got, expected);
}

static void test_same_requests_as_dotnet_trace(void **state)
{
    (void)state;
    static char line[LINE_MAX_BYTES];
    FILE *file = fopen(GOLDEN_DIR "/ipc/dotnet_trace_requests.tsv", "r");
    assert_non_null(file);
    size_t count = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        compare_line(line);
        count++;
    }
    fclose(file);
    assert_true(count > 70);
}

/* Where dotnet-trace cuts a value in two, or knows a profile no more. */
static void test_where_we_differ(void **state)
{
    (void)state;
    struct event_request request;
    struct error err;
    char comma[] = "--providers 'A:1:4:k=\"a,b\",B'";
    assert_true(read_words(comma, &request, &err));
    assert_int_equal(request.providers.count, 2);
    assert_string_equal(request.providers.items[0].args, "k=a,b");
    event_request_done(&request);

    char sampling[] = "--profile cpu-sampling";
    assert_true(read_words(sampling, &request, &err));
    assert_int_equal(request.providers.count, 2);
    assert_int_equal(event_providers_find(&request.providers, "microsoft-windows-dotnetruntime")->keywords,
                     0x14C14FCCBD);
    event_request_done(&request);

    char none[] = "--profile none --providers A";
    assert_true(read_words(none, &request, &err));
    assert_int_equal(request.providers.count, 1);
    assert_true(request.rundown_keywords == IPC_RUNDOWN_DEFAULT);
    event_request_done(&request);
    char nothing[] = "--profile none";
    assert_false(read_words(nothing, &request, &err));
    event_request_done(&request);
    char middle[] = "--providers 'A:1:4:k;l=v'";
    assert_false(read_words(middle, &request, &err));
    event_request_done(&request);
    char switched[] = "--clrevents gc --rundown:FALSE";
    assert_true(read_words(switched, &request, &err));
    assert_true(request.rundown_keywords == 0);
    event_request_done(&request);
}

static void test_topics(void **state)
{
    (void)state;
    struct event_providers p;
    event_providers_init(&p);
    for (const struct event_topic *t = event_topics; t->name; t++)
        if (strcmp(t->name, "alloc-sampled") != 0)
            assert_true(event_topics_add(&p, t->name, strlen(t->name)));
    assert_false(event_topics_add(&p, "gc", 1));
    assert_false(event_topics_add(&p, "cpu", 3));
    const struct event_provider *runtime = event_providers_find(&p, "Microsoft-Windows-DotNETRuntime");
    assert_non_null(runtime);
    assert_true(runtime->keywords == 0x100001c011);
    assert_int_equal(runtime->level, 5);
    struct ipc_provider *out = calloc(p.count, sizeof *out);
    assert_non_null(out);
    event_request_ipc(&(struct event_request){ .providers = p }, true, out);
    assert_int_equal(out[0].filter, IPC_FILTER_DENY); /* a list of what is to come stops allocation ticks */
    for (size_t i = 0; i < out[0].event_id_count; i++)
        for (size_t wanted = 0; wanted < runtime->event_id_count; wanted++)
            assert_int_not_equal(out[0].event_ids[i], runtime->event_ids[wanted]);
    assert_int_equal(out[1].filter, IPC_FILTER_NONE); /* System.Net.Http: ids of counters are not fixed */
    assert_true(out[1].is_event_source);
    event_request_ipc(&(struct event_request){ .providers = p }, false, out);
    assert_int_equal(out[0].filter, IPC_FILTER_NONE);
    free(out);

    assert_false(event_providers_clash(&p));
    assert_true(event_topics_add(&p, "alloc-sampled", 13));
    assert_true(event_providers_clash(&p));
    event_providers_done(&p);

    assert_true(event_topics_add(&p, "exceptions", 10));
    struct ipc_provider exceptions;
    event_request_ipc(&(struct event_request){ .providers = p }, true, &exceptions);
    assert_int_equal(exceptions.filter, IPC_FILTER_ALLOW);
    assert_int_equal(exceptions.event_id_count, 1);
    event_request_ipc(&(struct event_request){ .providers = p }, false, &exceptions);
    assert_int_equal(exceptions.level, 2); /* not what is caught */
    event_providers_done(&p);
    assert_true(event_topics_add(&p, "gc", 2));
    assert_true(event_topics_add(&p, "alloc-sampled", 13));
    assert_false(event_providers_clash(&p));
    event_providers_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_requests_as_dotnet_trace),
        cmocka_unit_test(test_where_we_differ),
        cmocka_unit_test(test_topics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
