#include "clr/async_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id_map.h"
#include "base/mem.h"
#include "clr/managed_lock.h"

enum {
    LINK_HOPS_MAX = 6,
    LINKS_MAX = 4096,
    LIST_ITEMS_MAX = 1 << 20,
    RESUME_CODE = 8, /* of a ResumeInfo, behind the function that goes on: an address in the method's code */
    RESUMES_MAX = 1 << 16,
    NODES_A_LOOK = 1 << 12,
};

/* A state machine that is an object of its own, and the box that has it. */
struct machine_box {
    uint64_t machine;
    uint32_t node;
};

struct reading {
    struct loaded_types *types;
    const struct heap_map *map;
    struct async_graph *graph;
    uint64_t deadline_ns;
    uint32_t *type_of; /* by number of a heap_type: row of graph->types, or ASYNC_NOTHING */
    size_t type_of_count, type_of_capacity;
    struct async_link *links;
    size_t link_count, link_capacity;
    struct machine_box *boxes;
    size_t box_count;
    struct id_map resumes; /* rows of graph->types + 1 by async_type.resumes */
};

static uint32_t add_type(struct async_graph *graph, const struct async_type *type)
{
    graph->types = mem_grow(graph->types, &graph->type_capacity, graph->type_count + 1, sizeof *graph->types);
    graph->types[graph->type_count++] = *type;
    return (uint32_t)graph->type_count - 1;
}

/* Objects. */

static bool want(void *user, uint32_t number, const struct heap_type *type)
{
    struct reading *r = user;
    struct async_type read;
    bool wanted = async_type_read(r->types, type->table, &read);
    r->type_of = mem_grow(r->type_of, &r->type_of_capacity, number + 1, sizeof *r->type_of);
    while (r->type_of_count <= number)
        r->type_of[r->type_of_count++] = ASYNC_NOTHING;
    if (wanted)
        r->type_of[number] = add_type(r->graph, &read);
    return wanted;
}

static uint64_t word_in(struct span bytes, uint32_t offset)
{
    return offset != ASYNC_NO_FIELD && offset <= bytes.size && bytes.size - offset >= 8
               ? load_u64le(bytes.data + offset)
               : 0;
}

static uint32_t number_in(struct span bytes, uint32_t offset, uint32_t otherwise)
{
    return offset != ASYNC_NO_FIELD && offset <= bytes.size && bytes.size - offset >= 4
               ? load_u32le(bytes.data + offset)
               : otherwise;
}

static bool in_heap(const struct heap_map *map, uint64_t addr)
{
    size_t low = 0, high = map->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->segments[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return addr % 8 == 0 && low < map->segment_count && map->segments[low].begin <= addr;
}

/* What a state machine, or a Task that awaits, says: the number of its await, and what it awaits. */
static void read_machine(const struct reading *r, const struct async_type *type, struct span machine,
                         struct async_node *node)
{
    node->state = (int32_t)number_in(machine, type->state, (uint32_t)ASYNC_STATE_UNKNOWN);
    if (node->state != ASYNC_STATE_UNKNOWN && node->state >= 0)
        node->state -= type->first_await;
    node->done |= node->state == ASYNC_STATE_DONE;
    if (!node->continuation)
        node->continuation = word_in(machine, type->completes);
    for (unsigned i = 0; i < type->awaiter_count && !node->awaits; i++) {
        uint64_t object = word_in(machine, type->awaiters[i]);
        if (in_heap(r->map, object))
            node->awaits = object;
    }
    /* a box that is no Task is kept for the next call, cleared, which looks like the first await */
    node->done |= !type->is_task && type->awaiter_count && node->state >= 0 && !node->awaits;
}

static bool resumes_at(const void *table, uint32_t id, const void *key)
{
    const struct async_graph *graph = table;
    return graph->types[id - 1].resumes == *(const uint64_t *)key;
}

/* The row of the method that a continuation belongs to; ASYNC_NOTHING for one that is made by hand, and where
 * there are more than anybody has written. */
static uint32_t method_of_resume(struct reading *r, uint64_t resume)
{
    uint64_t addr = memory_pages_u64(r->types->pages, resume + RESUME_CODE);
    if (!resume || !addr)
        return ASYNC_NOTHING;
    uint64_t hash = hash_pair(resume, 0);
    uint32_t id = id_map_find(&r->resumes, hash, resumes_at, r->graph, &resume);
    if (id)
        return id - 1;
    if (r->resumes.count == RESUMES_MAX) {
        r->graph->cut = true;
        return ASYNC_NOTHING;
    }
    struct async_type type;
    async_type_of_resume(resume, addr, &type);
    uint32_t row = add_type(r->graph, &type);
    id_map_add(&r->resumes, hash, row + 1);
    return row;
}

/* An await that the runtime keeps itself: it counts once a Task leads to it. */
static void read_await(struct reading *r, uint32_t type_row, struct span object, struct async_node *node)
{
    const struct async_type type = r->graph->types[type_row];
    uint32_t method = method_of_resume(r, word_in(object, type.resume));
    read_machine(r, &type, object, node);
    node->type = method == ASYNC_NOTHING ? type_row : method;
    node->done = true;
}

static void read_run(const struct async_type *type, struct span object, struct async_node *node)
{
    node->first = word_in(object, type->first);
    if (!node->first)
        node->state = ASYNC_STATE_RUNNING;
}

static void visit(void *user, const struct heap_object *object)
{
    struct reading *r = user;
    struct async_graph *graph = r->graph;
    uint32_t row = r->type_of[object->type];
    const struct async_type *type = &graph->types[row];
    struct async_node node = {
        .addr = object->addr, .type = row, .state = ASYNC_STATE_UNKNOWN, .awaited_type = ASYNC_NOTHING
    };
    if (graph->node_count == ASYNC_NODES_MAX) {
        graph->cut = true;
        return;
    }
    node.done = number_in(object->bytes, type->flags, 0) & ASYNC_TASK_DONE;
    node.continuation = word_in(object->bytes, type->continuation);
    if (type->kind == ASYNC_AWAIT)
        read_await(r, row, object->bytes, &node);
    else if (type->kind == ASYNC_RUN)
        read_run(type, object->bytes, &node);
    else if (type->by_reference)
        node.machine = word_in(object->bytes, type->machine);
    else if (type->kind == ASYNC_METHOD && type->machine <= object->bytes.size)
        read_machine(r, type, span_part(object->bytes, type->machine, object->bytes.size - type->machine),
                     &node);
    else if (type->kind == ASYNC_TASK)
        read_machine(r, type, object->bytes, &node);
    graph->types[node.type].count++;
    graph->nodes = mem_grow(graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
    graph->nodes[graph->node_count++] = node;
}

static int compare_boxes(const void *a, const void *b)
{
    uint64_t x = ((const struct machine_box *)a)->machine, y = ((const struct machine_box *)b)->machine;
    return (x > y) - (x < y);
}

/* Those that are objects of their own: async iterators, and all methods of a debug build. */
static void read_machine_objects(struct reading *r)
{
    enum { BYTES = 4096 };
    struct async_graph *graph = r->graph;
    r->boxes = mem_alloc(graph->node_count + 1, sizeof *r->boxes);
    for (size_t i = 0; i < graph->node_count; i++) {
        struct async_node *node = &graph->nodes[i];
        uint8_t bytes[BYTES];
        if (!node->machine || !in_heap(r->map, node->machine)) {
            node->machine = 0;
            continue;
        }
        memory_pages_read(r->types->pages, node->machine, bytes, sizeof bytes);
        read_machine(r, &graph->types[node->type], span_of(bytes, sizeof bytes), node);
        r->boxes[r->box_count++] = (struct machine_box){ node->machine, (uint32_t)i };
    }
    if (r->box_count)
        qsort(r->boxes, r->box_count, sizeof *r->boxes, compare_boxes);
}

/* Edges. */

static bool is_await(const struct async_graph *graph, const struct async_node *node)
{
    const struct async_type *type = &graph->types[node->type];
    return type->kind == ASYNC_AWAIT || type->addr;
}

static uint32_t find_box(const struct reading *r, uint64_t machine)
{
    struct machine_box key = { .machine = machine };
    const struct machine_box *box =
        r->box_count ? bsearch(&key, r->boxes, r->box_count, sizeof key, compare_boxes) : NULL;
    return box ? box->node : ASYNC_NOTHING;
}

/* The node at an address, or whose state machine is there; or ASYNC_NOTHING. */
static uint32_t find_node(const struct reading *r, uint64_t addr)
{
    const struct async_graph *graph = r->graph;
    size_t low = 0, high = graph->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (graph->nodes[middle].addr < addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < graph->node_count && graph->nodes[low].addr == addr)
        return (uint32_t)low;
    return find_box(r, addr);
}

static void link_nodes(struct reading *r, uint32_t from, uint32_t to)
{
    struct async_graph *graph = r->graph;
    if (from == to || !async_node_is_live(graph, &graph->nodes[from]) ||
        !async_node_is_live(graph, &graph->nodes[to]))
        return;
    if (graph->edge_count == ASYNC_EDGES_MAX) {
        graph->cut = true;
        return;
    }
    graph->edges = mem_grow(graph->edges, &graph->edge_capacity, graph->edge_count + 1, sizeof *graph->edges);
    graph->edges[graph->edge_count++] = (struct async_edge){ from, to };
}

/* When all of `from` has ended. */
static void add_edge(struct reading *r, uint32_t from, uint32_t to)
{
    link_nodes(r, r->graph->nodes[from].last, to);
}

static struct async_link find_link(struct reading *r, uint64_t table)
{
    for (size_t i = 0; i < r->link_count; i++)
        if (r->links[i].table == table)
            return r->links[i];
    struct async_link link = { table, ASYNC_NO_FIELD, ASYNC_NO_FIELD, ASYNC_NO_FIELD };
    if (r->link_count == LINKS_MAX)
        return link;
    async_link_read(r->types, table, &link);
    r->links = mem_grow(r->links, &r->link_capacity, r->link_count + 1, sizeof *r->links);
    r->links[r->link_count++] = link;
    return link;
}

/* The task or method that an object stands for, and the list that it is, when it is one. */
static uint32_t follow(struct reading *r, uint64_t object, struct async_link *out_list, uint64_t *out_at)
{
    struct memory_pages *pages = r->types->pages;
    out_list->items = ASYNC_NO_FIELD;
    for (unsigned hops = 0; hops < LINK_HOPS_MAX && in_heap(r->map, object); hops++) {
        uint32_t node = find_node(r, object);
        if (node != ASYNC_NOTHING)
            return node;
        struct async_link link = find_link(r, managed_object_table(pages, object));
        if (link.items != ASYNC_NO_FIELD && link.size != ASYNC_NO_FIELD) {
            *out_list = link;
            *out_at = object;
        }
        object = link.next != ASYNC_NO_FIELD ? memory_pages_u64(pages, object + link.next) : 0;
    }
    return ASYNC_NOTHING;
}

/* All that goes on when a task ends. */
static void read_continuations(struct reading *r, uint32_t from)
{
    struct memory_pages *pages = r->types->pages;
    struct async_link list, inner;
    uint64_t at = 0, inner_at;
    uint32_t to = follow(r, r->graph->nodes[from].continuation, &list, &at);
    if (to != ASYNC_NOTHING)
        add_edge(r, from, to);
    if (list.items == ASYNC_NO_FIELD)
        return;
    uint64_t items = memory_pages_u64(pages, at + list.items);
    uint32_t count = memory_pages_u32(pages, at + list.size);
    for (uint32_t i = 0; i < count && i < LIST_ITEMS_MAX && !r->graph->cut; i++) {
        uint64_t item = items + ASYNC_ARRAY_ITEMS + 8 * (uint64_t)i;
        if (!in_heap(r->map, item))
            break;
        to = follow(r, memory_pages_u64(pages, item), &inner, &inner_at);
        if (to != ASYNC_NOTHING)
            add_edge(r, from, to);
    }
}

static uint32_t source_type(struct reading *r, uint64_t object)
{
    struct async_graph *graph = r->graph;
    struct async_type type;
    struct heap_type checked;
    uint64_t table = managed_object_table(r->types->pages, object);
    for (size_t i = 0; i < graph->type_count; i++)
        if (graph->types[i].table == table)
            return (uint32_t)i;
    return heap_type_read(r->types, table, &checked) && async_type_read_source(r->types, table, &type)
               ? add_type(graph, &type)
               : ASYNC_NOTHING;
}

static void read_awaited(struct reading *r, uint32_t to)
{
    struct async_node *node = &r->graph->nodes[to];
    uint32_t from = find_node(r, node->awaits);
    if (from == ASYNC_NOTHING)
        node->awaited_type = source_type(r, node->awaits);
    else if (async_node_is_live(r->graph, &r->graph->nodes[from]))
        add_edge(r, from, to);
    else
        node->ready = r->graph->nodes[from].done;
}

static int compare_edges(const void *a, const void *b)
{
    const struct async_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* By where they begin, each once. */
static void sort_edges(struct async_graph *graph)
{
    size_t kept = 0;
    if (graph->edge_count)
        qsort(graph->edges, graph->edge_count, sizeof *graph->edges, compare_edges);
    for (size_t i = 0; i < graph->edge_count; i++) {
        struct async_edge edge = graph->edges[i];
        if (kept && memcmp(&graph->edges[kept - 1], &edge, sizeof edge) == 0)
            continue;
        struct async_node *from = &graph->nodes[edge.from];
        if (from->edge_count++ == 0)
            from->first_edge = (uint32_t)kept;
        graph->nodes[edge.to].awaited = true;
        graph->edges[kept++] = edge;
    }
    graph->edge_count = kept;
}

/* The awaits of a Task that the runtime keeps itself, from the innermost method to the outermost. */
static void read_awaits(struct reading *r, uint32_t run)
{
    struct async_graph *graph = r->graph;
    uint32_t last = run, row = find_node(r, graph->nodes[run].first);
    if (row != ASYNC_NOTHING && graph->types[graph->nodes[row].type].kind == ASYNC_AWAIT) {
        graph->nodes[run].awaits = graph->nodes[row].awaits;
        row = find_node(r, graph->nodes[row].continuation);
    }
    /* each belongs to one Task, and once it does it is not `done` any more */
    while (row != ASYNC_NOTHING && graph->nodes[row].done && is_await(graph, &graph->nodes[row])) {
        struct async_node *node = &graph->nodes[row];
        node->done = false;
        graph->types[node->type].waiting++;
        link_nodes(r, last, row);
        last = row;
        row = find_node(r, node->continuation);
    }
    graph->nodes[run].last = last;
}

static void read_all_awaits(struct reading *r)
{
    struct async_graph *graph = r->graph;
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i].last = (uint32_t)i;
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->types[graph->nodes[i].type].kind == ASYNC_RUN && !graph->nodes[i].done)
            read_awaits(r, (uint32_t)i);
}

static void read_edges(struct reading *r)
{
    struct async_graph *graph = r->graph;
    for (size_t i = 0; i < graph->node_count && !graph->walk.late; i++) {
        struct async_node *node = &graph->nodes[i];
        if (i % NODES_A_LOOK == 0)
            graph->walk.late = clock_monotonic_ns() >= r->deadline_ns;
        if (!async_node_is_live(graph, node) || is_await(graph, node))
            continue;
        graph->types[node->type].waiting += node->state >= 0;
        if (node->continuation)
            read_continuations(r, (uint32_t)i);
        if (node->awaits)
            read_awaited(r, (uint32_t)i);
    }
    sort_edges(graph);
}

void async_graph_read(struct loaded_types *types, const struct heap_map *map, uint64_t deadline_ns,
                      struct async_graph *out)
{
    *out = (struct async_graph){ 0 };
    struct reading r = { .types = types, .map = map, .graph = out, .deadline_ns = deadline_ns };
    struct heap_visitor visitor = { want, visit, &r };
    heap_walk_run(types, map, &visitor, deadline_ns, &out->walk);
    read_machine_objects(&r);
    read_all_awaits(&r);
    read_edges(&r);
    free(r.type_of);
    free(r.links);
    free(r.boxes);
    id_map_done(&r.resumes);
}

void async_graph_done(struct async_graph *graph)
{
    for (size_t i = 0; i < graph->type_count; i++)
        async_type_done(&graph->types[i]);
    free(graph->types);
    free(graph->nodes);
    free(graph->edges);
    *graph = (struct async_graph){ 0 };
}

bool async_node_is_live(const struct async_graph *graph, const struct async_node *node)
{
    if (node->done)
        return false;
    return graph->types[node->type].kind != ASYNC_METHOD || node->state >= ASYNC_STATE_RUNNING ||
           node->state == ASYNC_STATE_UNKNOWN;
}
