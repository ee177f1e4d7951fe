/* Ways through graphs of continuations: equal ones once, circles, more than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/async_chains.h"

enum { DELAY, WHEN_ALL, INNER, OUTER, SOCKET, RUN, TYPES }; /* rows of types */
enum { NODES_MAX = 2 * ASYNC_CHAIN_FRAMES_MAX };

static struct async_type types[TYPES] = {
    [DELAY] = { .kind = ASYNC_TASK },    [WHEN_ALL] = { .kind = ASYNC_TASK },
    [INNER] = { .kind = ASYNC_METHOD },  [OUTER] = { .kind = ASYNC_METHOD },
    [SOCKET] = { .kind = ASYNC_SOURCE }, [RUN] = { .kind = ASYNC_RUN },
};
static struct async_node nodes[NODES_MAX];
static struct async_edge edges[2 * NODES_MAX];

static struct async_graph graph;

static void begin(void)
{
    memset(nodes, 0, sizeof nodes);
    graph = (struct async_graph){ .types = types, .type_count = TYPES, .nodes = nodes, .edges = edges };
}

static uint32_t node(uint32_t type, int32_t state)
{
    nodes[graph.node_count] = (struct async_node){
        .type = type, .state = state, .done = state == ASYNC_STATE_DONE, .awaited_type = ASYNC_NOTHING
    };
    return (uint32_t)graph.node_count++;
}

/* From ascending nodes only. */
static void edge(uint32_t from, uint32_t to)
{
    if (nodes[from].edge_count++ == 0)
        nodes[from].first_edge = (uint32_t)graph.edge_count;
    nodes[to].awaited = true;
    edges[graph.edge_count++] = (struct async_edge){ from, to };
}

static void test_equal_chains(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    uint32_t delays[8], inner[8];
    for (int i = 0; i < 8; i++)
        delays[i] = node(DELAY, ASYNC_STATE_UNKNOWN);
    for (int i = 0; i < 8; i++)
        inner[i] = node(INNER, 0);
    uint32_t all = node(WHEN_ALL, ASYNC_STATE_UNKNOWN), outer = node(OUTER, 1);
    for (int i = 0; i < 8; i++)
        edge(delays[i], inner[i]);
    for (int i = 0; i < 8; i++)
        edge(inner[i], all);
    edge(all, outer);
    async_chains_find(&graph, &chains);
    assert_int_equal(chains.count, 1);
    assert_int_equal(chains.followed, 8);
    const struct async_chain *chain = &chains.chains[0];
    assert_int_equal(chain->count, 8);
    assert_int_equal(chain->wait, ASYNC_WAIT_OBJECT);
    assert_int_equal(chain->waits_type, DELAY);
    assert_int_equal(chain->frame_count, 3); /* the Delay is what they wait for */
    assert_int_equal(chains.frames[chain->first_frame].type, INNER);
    assert_int_equal(chains.frames[chain->first_frame + 1].type, WHEN_ALL);
    assert_int_equal(chains.frames[chain->first_frame + 2].state, 1);
    async_chains_done(&chains);
}

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        int32_t state;
        bool ready;
        uint32_t awaited_type;
        size_t count;
        enum async_wait wait;
    } ends[] = {
        { 0, false, SOCKET, 1, ASYNC_WAIT_OBJECT },
        { 0, false, ASYNC_NOTHING, 1, ASYNC_WAIT_UNKNOWN },
        { 3, true, ASYNC_NOTHING, 1, ASYNC_WAIT_READY },
        { ASYNC_STATE_RUNNING, false, ASYNC_NOTHING, 1, ASYNC_WAIT_RUNNING },
        { ASYNC_STATE_UNKNOWN, false, ASYNC_NOTHING, 1, ASYNC_WAIT_UNKNOWN },
        { ASYNC_STATE_DONE, false, ASYNC_NOTHING, 0, ASYNC_WAIT_UNKNOWN },
        { -4, false, ASYNC_NOTHING, 0, ASYNC_WAIT_UNKNOWN }, /* an iterator that nobody asks */
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct async_chains chains;
        begin();
        uint32_t only = node(INNER, ends[i].state);
        nodes[only].ready = ends[i].ready;
        nodes[only].awaited_type = ends[i].awaited_type;
        async_chains_find(&graph, &chains);
        if (chains.count != ends[i].count || (chains.count && chains.chains[0].wait != ends[i].wait))
            fail_msg("end %zu: %zu chains", i, chains.count);
        async_chains_done(&chains);
    }
}

static void test_no_method(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    uint32_t delay = node(DELAY, ASYNC_STATE_UNKNOWN);
    edge(delay, node(WHEN_ALL, ASYNC_STATE_UNKNOWN));
    async_chains_find(&graph, &chains);
    assert_int_equal(chains.count, 0);
    assert_int_equal(chains.frame_count, 0);
    async_chains_done(&chains);
}

/* The Task of methods that the runtime suspends itself is no frame, and says what they wait for. */
static void test_run(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    uint32_t run = node(RUN, ASYNC_STATE_UNKNOWN), inner = node(INNER, 0), outer = node(OUTER, 0);
    nodes[run].awaited_type = SOCKET;
    edge(run, inner);
    edge(inner, outer);
    node(RUN, ASYNC_STATE_RUNNING); /* its methods are on a thread's stack */
    async_chains_find(&graph, &chains);
    assert_int_equal(chains.count, 1);
    assert_int_equal(chains.chains[0].wait, ASYNC_WAIT_OBJECT);
    assert_int_equal(chains.chains[0].waits_type, SOCKET);
    assert_int_equal(chains.chains[0].frame_count, 2);
    assert_int_equal(chains.frames[chains.chains[0].first_frame].type, INNER);
    async_chains_done(&chains);
}

static void test_circle(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    uint32_t a = node(INNER, 0), b = node(OUTER, 0);
    edge(a, b);
    edge(b, a);
    async_chains_find(&graph, &chains);
    assert_int_equal(chains.count, 1);
    assert_int_equal(chains.chains[0].wait, ASYNC_WAIT_CIRCLE);
    assert_int_equal(chains.chains[0].frame_count, 2);
    async_chains_done(&chains);
}

/* Recursion deeper than a chain is held ends the chain, and says so. */
static void test_deep(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    for (int i = 0; i < NODES_MAX; i++)
        node(INNER, 0);
    for (uint32_t i = 0; i + 1 < NODES_MAX; i++)
        edge(i, i + 1);
    async_chains_find(&graph, &chains);
    assert_int_equal(chains.chains[0].frame_count, ASYNC_CHAIN_FRAMES_MAX);
    assert_true(chains.chains[0].truncated);
    async_chains_done(&chains);
}

/* Each of 60 methods is awaited by the next twice over: more ways than anybody can follow. */
static void test_too_many(void **state)
{
    (void)state;
    struct async_chains chains;
    begin();
    for (uint32_t i = 0; i < 181; i++)
        node(i % 3 == 0 ? INNER : OUTER, (int32_t)(i % 3));
    for (uint32_t i = 0; i < 60; i++) {
        edge(3 * i, 3 * i + 1);
        edge(3 * i, 3 * i + 2);
        edge(3 * i + 1, 3 * i + 3);
        edge(3 * i + 2, 3 * i + 3);
    }
    async_chains_find(&graph, &chains);
    assert_true(chains.cut);
    assert_true(chains.followed <= ASYNC_CHAINS_MAX);
    async_chains_done(&chains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_chains), cmocka_unit_test(test_ends),   cmocka_unit_test(test_no_method),
        cmocka_unit_test(test_run),          cmocka_unit_test(test_circle), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
