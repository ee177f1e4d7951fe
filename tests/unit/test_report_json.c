#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/report_json.h"

/* A profile of one sample of weight 7 for each of its nodes but the root. */
static void profile_of(struct profile *p, struct profile_frame *frames, uint32_t frame_count,
                       struct profile_node *nodes, uint32_t node_count)
{
    static struct profile_thread threads[2];
    *p = (struct profile){ .frames = frames,
                           .frame_count = frame_count,
                           .nodes = nodes,
                           .node_count = node_count,
                           .threads = threads,
                           .thread_count = 2,
                           .process_count = 1,
                           .weight_unit = "ns",
                           .title = "",
                           .event = "cpu-clock" };
    p->self = mem_alloc(node_count, sizeof *p->self);
    p->total = mem_alloc(node_count, sizeof *p->total);
    p->sample_node = mem_alloc(node_count, sizeof *p->sample_node);
    p->sample_weight = mem_alloc(node_count, sizeof *p->sample_weight);
    for (uint32_t node = node_count; node-- > 1;) {
        p->self[node] = 7;
        p->total[node] += 7;
        p->total[nodes[node].parent] += p->total[node];
        p->sample_node[p->sample_count] = node;
        p->sample_weight[p->sample_count++] = 7;
    }
    p->counts.weight = p->total[0];
}

static void profile_end(struct profile *p)
{
    free(p->self);
    free(p->total);
    free(p->sample_node);
    free(p->sample_weight);
}

/* What report_json_tree() writes to standard output; the caller frees. (jansson's names are json_writer's
 * too.) */
static char *tree_of(const struct profile *p)
{
    struct capture c = { .path = "x" };
    struct error err = { 0 };
    trace_builder_init(&c.b, 16);
    int file = memfd_create("out", MFD_CLOEXEC), before = dup(STDOUT_FILENO);
    assert_true(file >= 0 && before >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    bool ok = report_json_tree(&c, p, &err);
    dup2(before, STDOUT_FILENO);
    close(before);
    trace_builder_done(&c.b);
    assert_true(ok);
    size_t size = (size_t)lseek(file, 0, SEEK_END);
    char *text = mem_alloc(size + 1, 1);
    assert_int_equal(pread(file, text, size, 0), size);
    close(file);
    return text;
}

static size_t count_of(const char *text, char c)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

static void test_deep_tree(void **state)
{
    (void)state;
    enum { DEEP = 5000 }; /* more than a document may nest */
    static struct profile_frame frames[2] = { { .name = "", .module = "" }, { .name = "F", .module = "m" } };
    static struct profile_node nodes[DEEP];
    for (uint32_t i = 1; i < DEEP; i++)
        nodes[i] = (struct profile_node){ i - 1, 1 };
    struct profile p;
    profile_of(&p, frames, 2, nodes, DEEP);
    char *text = tree_of(&p);
    assert_true(count_of(text, '{') > 2000);
    assert_int_equal(count_of(text, '{'), count_of(text, '}'));
    assert_int_equal(count_of(text, '['), count_of(text, ']'));
    free(text);
    profile_end(&p);
}

static void test_broken_by_image(void **state)
{
    (void)state;
    static struct profile_frame frames[] = { { .name = "", .module = "" },
                                             { .name = "[broken]", .module = "" },
                                             { .name = "F", .module = "a.so" },
                                             { .name = "G", .module = "b.so" },
                                             { .name = "0x1", .module = "" } };
    /* one sample at each: a.so has cut three, b.so one, unknown code one; the last two are whole */
    static struct profile_node nodes[] = { { 0, 0 }, { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 2 },
                                           { 1, 3 }, { 1, 4 }, { 0, 2 }, { 7, 3 } };
    struct profile p;
    profile_of(&p, frames, 5, nodes, 9);
    char *text = tree_of(&p);
    assert_non_null(strstr(text, "\"broken_by_image\":{\"[unknown]\":1,\"b.so\":1,\"a.so\":3}"));
    free(text);
    profile_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep_tree),
        cmocka_unit_test(test_broken_by_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
