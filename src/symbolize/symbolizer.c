#include "symbolize/symbolizer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/image_names.h"
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

static void symbolize_kernel(struct naming *naming, struct questions *q,
                             const struct symbolizer_options *options, bool *hidden)
{
    if (!q->count)
        return;
    questions_sort(q);
    AUTO_FREE uint64_t *addrs = questions_keys(q);
    struct kernel_answer answer = { naming, q };
    struct kernel_symbols_result result = { 0 };
    bool answered =
        options->kernel && options->kernel_lookup &&
        kernel_lookup_answer(options->kernel_lookup, addrs, q->count, symbolize_kernel_one, &answer, &result);
    AUTO_FD int fd = options->kernel && !answered ? open("/proc/kallsyms", O_RDONLY | O_CLOEXEC) : -1;
    if (!answered && (fd < 0 || !kernel_symbols_resolve(fd, addrs, q->count, symbolize_kernel_one, &answer,
                                                        &result, NULL)))
        symbolize_kernel_blindly(naming, q);
    *hidden = result.hidden;
}

static uint64_t location_inside(const struct trace_location *row)
{
    return row->addr - (row->is_return && row->addr ? 1 : 0);
}

struct kernel_lookup *symbolizer_ask_kernel(const struct trace *t)
{
    struct questions q = { 0 };
    for (uint32_t id = 1; id < t->locations.count; id++) {
        const struct trace_location *row = &t->locations.rows[id];
        if (!row->function && !row->process)
            questions_add(&q, (struct question){ id, 0, location_inside(row) });
    }
    questions_sort(&q);
    AUTO_FREE uint64_t *addrs = questions_keys(&q);
    struct kernel_lookup *lookup = q.count ? kernel_lookup_start(addrs, q.count) : NULL;
    free(q.items);
    return lookup;
}

/* Sorts the unnamed locations by who can name them. */
static void symbolize_ask(struct trace *t, struct questions *kernel, struct questions *images,
                          struct questions *jit)
{
    for (uint32_t id = 1; id < t->locations.count; id++) {
        struct trace_location *row = &t->locations.rows[id];
        if (row->function)
            continue;
        if (!row->process) {
            questions_add(kernel, (struct question){ id, 0, location_inside(row) });
            continue;
        }
        const struct trace_mapping *m = &t->mappings.rows[row->mapping];
        uint8_t kind = t->images.rows[m->image].kind;
        row->unnamed = row->mapping ? UNNAMED_NO_IMAGE : UNNAMED_NO_MAPPING;
        if (row->code || kind == IMAGE_JIT || kind == IMAGE_ANON || !row->mapping)
            questions_add(jit, (struct question){ id, row->process, location_inside(row) });
        else
            questions_add(images,
                          (struct question){ id, m->image, location_inside(row) - m->start + m->file_off });
    }
}

/* Names what lies in one image: questions [from, to). */
static void symbolize_image(struct naming *naming, const struct questions *q, size_t from, size_t to)
{
    size_t count = to - from;
    AUTO_FREE uint32_t *locations = mem_alloc(count, sizeof *locations);
    AUTO_FREE uint64_t *file_offs = mem_alloc(count, sizeof *file_offs);
    for (size_t i = 0; i < count; i++) {
        locations[i] = q->items[from + i].location;
        file_offs[i] = q->items[from + i].key;
    }
    struct image_names *names = image_names_open(naming, q->items[from].image, locations, count);
    image_names_ask_sources(names, naming, locations, file_offs, count);
    for (size_t i = 0; i < count; i++)
        image_names_answer(names, naming, locations[i], file_offs[i]);
    image_names_close(names);
}

/*
 * Native code first, and of that what is mapped above the rest, as libc is, so that what its debug file knows
 * is found out while the others get their names.
 */
static void symbolize_images(struct naming *naming, struct questions *q)
{
    const struct trace_image *images = naming->t->images.rows;
    questions_sort(q);
    for (size_t to = q->count, from = to; to > 0; to = from) {
        while (from > 0 && q->items[from - 1].image == q->items[to - 1].image)
            from--;
        if (images[q->items[from].image].kind != IMAGE_PE)
            symbolize_image(naming, q, from, to);
    }
    for (size_t from = 0, to = 0; from < q->count; from = to) {
        while (to < q->count && q->items[to].image == q->items[from].image)
            to++;
        if (images[q->items[from].image].kind == IMAGE_PE)
            symbolize_image(naming, q, from, to);
    }
}

static void symbolize_jit(struct naming *naming, struct questions *q)
{
    questions_sort(q); /* by process, then address */
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

void symbolizer_run(struct trace *t, struct function_index *functions,
                    const struct symbolizer_options *options, struct symbolizer_result *result)
{
    struct questions kernel = { 0 }, images = { 0 }, jit = { 0 };
    struct naming naming;
    *result = (struct symbolizer_result){ 0 };
    naming_init(&naming, t, functions, options);
    symbolize_ask(t, &kernel, &images, &jit);
    symbolize_images(&naming, &images);
    symbolize_jit(&naming, &jit);
    symbolize_kernel(&naming, &kernel, options,
                     &result->kernel_hidden); /* what another thread reads meanwhile */
    naming_finish_sources(&naming);
    t->symbolized = true;
    result->map_malformed = naming.map_malformed;
    naming_done(&naming);
    free(kernel.items);
    free(images.items);
    free(jit.items);
}
