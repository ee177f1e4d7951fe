#include "symbolize/symbolizer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/image_names.h"
#include "symbolize/images_ahead.h"
#include "symbolize/jit_names.h"
#include "symbolize/kernel_lookup.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/naming.h"

/* Locations of one kind of question, sorted so that each file is asked once. */
struct question {
    uint32_t location;
    uint32_t image;
    uint64_t key; /* address for the kernel, file offset for images */
};

struct questions {
    struct question *items;
    size_t count, capacity;
};

struct symbolizer {
    struct naming naming;
    struct symbolizer_options options;
    struct kernel_lookup *kernel; /* of what was there at the beginning; NULL when that was nothing */
    bool *asked; /* by location: whoever could name it was asked; NULL before the first step */
    size_t asked_count;
    struct questions images; /* of the steps; those behind `images_left` had their turn */
    size_t images_left;
};

static void questions_add(struct questions *q, struct question item)
{
    q->items = mem_grow(q->items, &q->capacity, q->count + 1, sizeof *q->items);
    q->items[q->count++] = item;
}

static int question_compare(const void *a, const void *b)
{
    const struct question *x = a, *y = b;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->location > y->location) - (x->location < y->location);
}

static void questions_sort(struct questions *q)
{
    if (q->count) /* qsort() takes no NULL */
        qsort(q->items, q->count, sizeof *q->items, question_compare);
}

struct kernel_answer {
    struct naming *naming;
    const struct questions *questions;
};

static void symbolize_kernel_one(void *user, size_t index, const char *name, const char *module,
                                 uint64_t start)
{
    (void)start;
    struct kernel_answer *answer = user;
    struct code_name named = {
        .name = name,
        .module = module,
        .type_params = "",
        .kind = CODE_KERNEL,
        .resolver = RESOLVER_KALLSYMS,
    };
    naming_set(answer->naming, answer->questions->items[index].location, &named);
}

/* Without symbols every kernel frame is still known to be the kernel's. */
static void symbolize_kernel_blindly(struct naming *naming, const struct questions *q)
{
    struct kernel_answer answer = { naming, q };
    for (size_t i = 0; i < q->count; i++)
        symbolize_kernel_one(&answer, i, KERNEL_MODULE, KERNEL_MODULE, 0);
}

/* The keys of sorted questions. The caller frees. */
static uint64_t *questions_keys(const struct questions *q)
{
    uint64_t *keys = mem_alloc(q->count, sizeof *keys);
    for (size_t i = 0; i < q->count; i++)
        keys[i] = q->items[i].key;
    return keys;
}

static void symbolize_kernel(struct symbolizer *s, struct questions *q, bool *hidden)
{
    if (!q->count)
        return;
    AUTO_FREE uint64_t *addrs = questions_keys(q);
    struct kernel_answer answer = { &s->naming, q };
    struct kernel_symbols_result result = { 0 };
    bool answered =
        s->kernel && kernel_lookup_answer(s->kernel, addrs, q->count, symbolize_kernel_one, &answer, &result);
    if (!answered && s->options.kernel) { /* more were added */
        kernel_lookup_free(s->kernel);
        s->kernel = kernel_lookup_start(s->options.kernel_list, addrs, q->count);
        answered = kernel_lookup_answer(s->kernel, addrs, q->count, symbolize_kernel_one, &answer, &result);
    }
    if (!answered)
        symbolize_kernel_blindly(&s->naming, q);
    *hidden = result.hidden;
}

static uint64_t location_inside(const struct trace_location *row)
{
    return row->addr - (row->is_return && row->addr ? 1 : 0);
}

static struct kernel_lookup *ask_kernel(const struct trace *t, const char *kept)
{
    struct questions q = { 0 };
    for (uint32_t id = 1; id < t->locations.count; id++) {
        const struct trace_location *row = &t->locations.rows[id];
        if (!row->function && !row->process)
            questions_add(&q, (struct question){ id, 0, location_inside(row) });
    }
    questions_sort(&q);
    AUTO_FREE uint64_t *addrs = questions_keys(&q);
    struct kernel_lookup *lookup = q.count ? kernel_lookup_start(kept, addrs, q.count) : NULL;
    free(q.items);
    return lookup;
}

/* Sorts the unnamed locations by who can name them. */
static void symbolize_ask(const struct symbolizer *s, struct questions *kernel, struct questions *images,
                          struct questions *jit)
{
    struct trace *t = s->naming.t;
    for (uint32_t id = 1; id < t->locations.count; id++) {
        struct trace_location *row = &t->locations.rows[id];
        if (row->function || (id < s->asked_count && s->asked[id]))
            continue;
        if (!row->process) {
            questions_add(kernel, (struct question){ id, 0, location_inside(row) });
            continue;
        }
        const struct trace_mapping *m = &t->mappings.rows[row->mapping];
        row->unnamed = row->mapping ? UNNAMED_NO_IMAGE : UNNAMED_NO_MAPPING;
        if (row->code || trace_location_may_be_jitted(t, row))
            questions_add(jit, (struct question){ id, row->process, location_inside(row) });
        else
            questions_add(images,
                          (struct question){ id, m->image, location_inside(row) - m->start + m->file_off });
    }
    questions_sort(kernel);
    questions_sort(images); /* by image, then place */
    questions_sort(jit);    /* by process, then address */
}

/* An assembly that is read on a thread of its own, or has been: questions [from, to). */
struct image_ahead {
    struct image_names *names; /* NULL: there is none */
    size_t from, to;
};

/* Of sorted questions. The caller frees. */
static uint32_t *question_locations(const struct questions *q, size_t from, size_t to)
{
    uint32_t *locations = mem_alloc(to - from, sizeof *locations);
    for (size_t i = from; i < to; i++)
        locations[i - from] = q->items[i].location;
    return locations;
}

/*
 * Names what lies in one image: questions [from, to). `early`: more is added later, and what is known of
 * assemblies may change. `ahead`: what was begun, or NULL.
 */
static void symbolize_image(struct symbolizer *s, const struct questions *q, size_t from, size_t to,
                            bool early, const struct image_ahead *ahead)
{
    size_t count = to - from;
    uint32_t image = q->items[from].image;
    AUTO_FREE uint32_t *locations = question_locations(q, from, to);
    AUTO_FREE uint64_t *file_offs = mem_alloc(count, sizeof *file_offs);
    for (size_t i = 0; i < count; i++)
        file_offs[i] = q->items[from + i].key;
    bool begun = ahead && ahead->names && ahead->from == from;
    struct image_names *names = begun ? ahead->names : image_names_open(&s->naming, image, locations, count);
    if (begun)
        image_names_await(names, &s->naming, image, locations, count);
    bool later = early && image_names_has_assemblies(names);
    if (!later)
        image_names_ask_sources(names, &s->naming, locations, file_offs, count);
    for (size_t i = 0; i < count && !later; i++) {
        image_names_answer(names, &s->naming, locations[i], file_offs[i]);
        if (early)
            s->asked[locations[i]] = true;
    }
    image_names_close(names);
}

static bool is_managed(const struct symbolizer *s, const struct question *question)
{
    return s->naming.t->images.rows[question->image].kind == IMAGE_PE;
}

/* Whether a thread has read it, or still does: it comes last. */
static bool is_read_ahead(const struct symbolizer *s, const struct question *question)
{
    const struct trace *t = s->naming.t;
    return images_ahead_has(s->options.ahead, t->locations.rows[question->location].process,
                            trace_string(t, t->images.rows[question->image].path));
}

/*
 * Names one native image of the questions before *left. What is mapped above the rest comes first, as libc
 * is, so that what its debug file knows is found out while the others get their names. False when none was
 * left.
 */
static bool symbolize_native(struct symbolizer *s, const struct questions *q, size_t *left, bool early)
{
    while (*left > 0) {
        size_t to = *left, from = to - 1;
        while (from > 0 && q->items[from - 1].image == q->items[to - 1].image)
            from--;
        *left = from;
        if (!is_managed(s, &q->items[from]) && !is_read_ahead(s, &q->items[from])) {
            symbolize_image(s, q, from, to, early, NULL);
            return true;
        }
    }
    return false;
}

static size_t image_end(const struct questions *q, size_t from)
{
    size_t to = from;
    while (to < q->count && q->items[to].image == q->items[from].image)
        to++;
    return to;
}

/*
 * The assembly that most is asked of, as System.Private.CoreLib is: to read its tables takes as long as to
 * name all native code. One, as they take memory.
 */
static struct image_ahead open_ahead(struct symbolizer *s, const struct questions *q)
{
    struct image_ahead most = { 0 };
    for (size_t from = 0, to; from < q->count; from = to) {
        to = image_end(q, from);
        if (is_managed(s, &q->items[from]) && !is_read_ahead(s, &q->items[from]) &&
            to - from > most.to - most.from)
            most = (struct image_ahead){ .from = from, .to = to };
    }
    if (most.to > most.from) {
        AUTO_FREE uint32_t *locations = question_locations(q, most.from, most.to);
        most.names =
            image_names_open_ahead(&s->naming, q->items[most.from].image, locations, most.to - most.from);
    }
    return most;
}

static void symbolize_images(struct symbolizer *s, const struct questions *q)
{
    struct image_ahead ahead = open_ahead(s, q);
    for (size_t left = q->count; symbolize_native(s, q, &left, false);)
        ;
    for (size_t from = 0, to; from < q->count; from = to) {
        to = image_end(q, from);
        if (is_managed(s, &q->items[from]) && !is_read_ahead(s, &q->items[from]))
            symbolize_image(s, q, from, to, false, &ahead);
    }
    for (size_t from = 0, to; from < q->count; from = to) {
        to = image_end(q, from);
        if (is_read_ahead(s, &q->items[from]))
            symbolize_image(s, q, from, to, false, NULL);
    }
}

static void symbolize_jit(struct naming *naming, const struct questions *q)
{
    uint64_t *addrs = mem_alloc(q->count, sizeof *addrs);
    uint32_t *locations = mem_alloc(q->count, sizeof *locations);
    for (size_t from = 0; from < q->count;) {
        size_t count = 0;
        uint32_t process = q->items[from].image;
        for (; from + count < q->count && q->items[from + count].image == process; count++) {
            addrs[count] = q->items[from + count].key;
            locations[count] = q->items[from + count].location;
        }
        jit_names_answer(naming, process, addrs, locations, count);
        from += count;
    }
    free(addrs);
    free(locations);
}

struct symbolizer *symbolizer_begin(struct trace *t, struct function_index *functions,
                                    const struct symbolizer_options *options)
{
    struct symbolizer *s = mem_alloc(1, sizeof *s);
    s->options = *options;
    naming_init(&s->naming, t, functions, &s->options);
    if (options->kernel)
        s->kernel = ask_kernel(t, options->kernel_list);
    return s;
}

bool symbolizer_step(struct symbolizer *s)
{
    if (!s->asked) {
        struct questions others = { 0 };
        s->asked_count = s->naming.t->locations.count;
        s->asked = mem_alloc(s->asked_count, sizeof *s->asked);
        symbolize_ask(s, &others, &s->images, &others);
        free(others.items);
        s->images_left = s->images.count;
    }
    return symbolize_native(s, &s->images, &s->images_left, true);
}

void symbolizer_finish(struct symbolizer *s, struct symbolizer_result *result)
{
    struct questions kernel = { 0 }, images = { 0 }, jit = { 0 };
    *result = (struct symbolizer_result){ 0 };
    symbolize_ask(s, &kernel, &images, &jit);
    symbolize_images(s, &images);
    symbolize_jit(&s->naming, &jit);
    symbolize_kernel(s, &kernel, &result->kernel_hidden); /* what another thread reads meanwhile */
    naming_finish_sources(&s->naming);
    s->naming.t->symbolized = true;
    result->map_malformed = s->naming.map_malformed;
    memcpy(result->map_problem, s->naming.map_problem, sizeof result->map_problem);
    naming_done(&s->naming);
    kernel_lookup_free(s->kernel);
    free(kernel.items);
    free(images.items);
    free(jit.items);
    free(s->images.items);
    free(s->asked);
    free(s);
}

void symbolizer_run(struct trace *t, struct function_index *functions,
                    const struct symbolizer_options *options, struct symbolizer_result *result)
{
    symbolizer_finish(symbolizer_begin(t, functions, options), result);
}
