#include "unwind/process_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "unwind/method_map.h"

enum {
    CACHE_BITS = 12,
    ASKED = 1 << 10,
    ASK_DOUBLINGS = 8,
    LINE_BITS = 9, /* of code, kept: every sample's leaf is looked at */
    LINE_BYTES = 1024,
    RANGES_MAX = 1 << 18,
    METHODS_MAX = 1 << 20,
    METHODS_BYTES_MAX = 256 << 20, /* of unwind data: what a method has of it is the target's word */
};

struct code_range {
    uint64_t start, end, file_off;
    uint32_t image;
    bool known; /* `code` was found out */
    struct unwind_code code;
};

struct code_line {
    uint64_t addr; /* 0: none */
    uint8_t bytes[LINE_BYTES];
};

/* An address that find_method() was asked for. */
struct asked_addr {
    uint64_t addr, again_ns; /* not before that */
    unsigned times;
};

struct process_code {
    struct unwind_images *images;
    struct process_code_access access;
    struct unwinder *unwinder;
    struct code_range *ranges; /* sorted, disjoint */
    size_t range_count, range_capacity;
    struct method_map methods;
    struct jit_unwind **retired; /* of methods that are gone */
    size_t retired_count, retired_capacity;
    struct asked_addr asked[ASKED];          /* by a hash of the address */
    struct code_line *lines[1 << LINE_BITS]; /* by a hash of the address; NULL: none yet */
    bool following;                          /* follow_method() is at work */
    bool missed; /* an address was asked for where nothing is mapped, as far as we know */
    uint64_t refreshed_ns;
    struct process_code_stats stats;
};

static bool target_read(void *user, uint64_t addr, void *into, size_t size)
{
    struct process_code *p = user;
    p->stats.reads++;
    return p->access.read && p->access.read(p->access.user, addr, into, size);
}

static struct code_line **line_slot(struct process_code *p, uint64_t line)
{
    return &p->lines[(line / LINE_BYTES * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - LINE_BITS)];
}

static void line_forget(struct code_line *line, uint64_t start, uint64_t end)
{
    if (line && line->addr < end && line->addr + LINE_BYTES > start)
        line->addr = 0;
}

/* What is in [start, end), which is not empty, may be other code now. */
static void lines_forget(struct process_code *p, uint64_t start, uint64_t end)
{
    bool few = end - start < LINE_BYTES << LINE_BITS;
    for (uint64_t i = start / LINE_BYTES; few && i <= (end - 1) / LINE_BYTES; i++)
        line_forget(*line_slot(p, i * LINE_BYTES), start, end);
    for (size_t i = 0; !few && i < ARRAY_LEN(p->lines); i++)
        line_forget(p->lines[i], start, end);
}

static const uint8_t *line_read(struct process_code *p, uint64_t addr)
{
    struct code_line **slot = line_slot(p, addr), *line = *slot;
    if (!line)
        line = *slot = mem_alloc(1, sizeof *line);
    if (line->addr != addr || !addr)
        line->addr = target_read(p, addr, line->bytes, LINE_BYTES) ? addr : 0;
    return line->addr ? line->bytes : NULL;
}

static bool space_read_code(void *user, uint64_t addr, void *into, size_t size)
{
    uint8_t *to = into;
    while (size) {
        uint64_t line = addr & ~(uint64_t)(LINE_BYTES - 1);
        size_t at = (size_t)(addr - line), part = LINE_BYTES - at < size ? LINE_BYTES - at : size;
        const uint8_t *bytes = line_read(user, line);
        if (!bytes)
            return false;
        memcpy(to, bytes + at, part);
        to += part;
        addr += part;
        size -= part;
    }
    return true;
}

/* The first range that ends behind `addr`. */
static size_t range_index(const struct process_code *p, uint64_t addr)
{
    size_t low = 0, high = p->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->ranges[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Who is asked can tell of other methods meanwhile, or of the same once more. */
static void follow_method(struct process_code *p, uint64_t start)
{
    if (!p->access.follow_method || p->following)
        return;
    p->following = true;
    p->access.follow_method(p->access.user, start);
    p->following = false;
}

/* Reads the unwind data of the method that starts there, once. Moves methods. */
static void method_read(struct process_code *p, uint64_t start)
{
    follow_method(p, start);
    struct code_method *method = method_map_at(&p->methods, start);
    if (!method || method->start != start || method->tried)
        return;
    method->tried = true;
    if (p->stats.method_bytes < METHODS_BYTES_MAX &&
        jit_unwind_read(p->access.machine->managed, target_read, p, start, &method->jit, NULL)) {
        p->stats.methods_read++;
        p->stats.method_bytes += jit_unwind_bytes(method->jit);
    } else {
        p->stats.methods_refused++;
    }
}

/* Its unwind data goes when no stack is being unwound: find_method() can replace what a frame needs. */
static void method_done(void *user, const struct code_method *method)
{
    struct process_code *p = user;
    if (!method->jit)
        return;
    p->stats.method_bytes -= jit_unwind_bytes(method->jit);
    p->retired = mem_grow(p->retired, &p->retired_capacity, p->retired_count + 1, sizeof *p->retired);
    p->retired[p->retired_count++] = method->jit;
}

static void free_retired(struct process_code *p)
{
    while (p->retired_count)
        free(p->retired[--p->retired_count]);
}

/* Stubs belong to no method, and stacks lead there again and again. */
static void ask_for_method(struct process_code *p, uint64_t addr)
{
    struct asked_addr *slot = &p->asked[addr * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    _Static_assert(ASKED == 1 << (64 - 54), "a slot is the product's top bits");
    uint64_t now_ns = clock_monotonic_ns();
    if (!p->access.find_method || (slot->addr == addr && now_ns < slot->again_ns))
        return;
    if (slot->addr != addr)
        *slot = (struct asked_addr){ .addr = addr };
    p->stats.asked++;
    uint64_t wait_ms = PROCESS_CODE_SOON_MS;
    if (p->access.find_method(p->access.user, addr))
        wait_ms = (uint64_t)PROCESS_CODE_ASK_MS
                  << (slot->times < ASK_DOUBLINGS ? slot->times++ : ASK_DOUBLINGS);
    slot->again_ns = now_ns + wait_ms * UINT64_C(1000000);
}

/* Generated code: a method, or something between them. */
static struct unwind_code generated_code(struct process_code *p, uint64_t addr)
{
    struct code_method *method = method_map_at(&p->methods, addr);
    if (!method) {
        ask_for_method(p, addr);
        method = method_map_at(&p->methods, addr);
    }
    if (!method)
        return (struct unwind_code){ .kind = UNWIND_CODE_OTHER };
    if (!method->tried) {
        method_read(p, method->start);
        method = method_map_at(&p->methods, addr);
    }
    if (!method || !method->jit)
        return (struct unwind_code){ .kind = UNWIND_CODE_OTHER };
    return (struct unwind_code){ .kind = UNWIND_CODE_JITTED, .jit = method->jit };
}

static struct code_range *range_at(struct process_code *p, uint64_t addr)
{
    size_t i = range_index(p, addr);
    return i < p->range_count && p->ranges[i].start <= addr ? &p->ranges[i] : NULL;
}

/* Memory without a file: code is generated there, or was unpacked, which is found out meanwhile. */
static struct unwind_code anonymous_code(struct process_code *p, uint64_t addr)
{
    struct unwind_code code = generated_code(p, addr);
    const struct code_range *range = range_at(p, addr);
    bool unpacked = code.kind == UNWIND_CODE_OTHER && range && range->image != PROCESS_CODE_NO_IMAGE;
    return unpacked ? process_code_at(p, addr) : code;
}

/* Nothing is known to be mapped there: a code heap that grew since, or no code at all. */
static struct unwind_code unmapped_code(struct process_code *p, uint64_t addr)
{
    if (!p->access.refresh && !method_map_at(&p->methods, addr)) /* else asked of what is found mapped */
        ask_for_method(p, addr);
    if (method_map_at(&p->methods, addr))
        return generated_code(p, addr);
    p->missed = true; /* a mapping that became executable later is not told of */
    return (struct unwind_code){ .kind = UNWIND_CODE_NONE };
}

struct unwind_code process_code_at(struct process_code *p, uint64_t addr)
{
    struct code_range *range = range_at(p, addr);
    if (!range)
        return unmapped_code(p, addr);
    if (!p->access.open)
        return generated_code(p, addr);
    if (range->image == PROCESS_CODE_NO_IMAGE)
        return anonymous_code(p, addr);
    if (!range->known) {
        range->known = true;
        range->code = unwind_images_code(p->images, range->image, range->start, range->file_off,
                                         p->access.open, p->access.close, p->access.user);
    }
    /* code heaps are files too, of memory */
    return range->code.kind == UNWIND_CODE_OTHER ? generated_code(p, addr) : range->code;
}

static struct unwind_code space_find(void *user, uint64_t addr)
{
    return process_code_at(user, addr);
}

static struct unwinder *process_unwinder(struct process_code *p)
{
    struct unwind_space space = {
        .machine = p->access.machine, .find = space_find, .read_code = space_read_code, .user = p
    };
    return unwinder_new(&space, CACHE_BITS);
}

struct process_code *process_code_new(struct unwind_images *images, const struct process_code_access *access)
{
    struct process_code *p = mem_alloc(1, sizeof *p);
    p->images = images;
    p->access = *access;
    p->unwinder = process_unwinder(p);
    return p;
}

static void forget_all(struct process_code *p)
{
    method_map_done(&p->methods, method_done, p);
    free_retired(p);
    p->range_count = 0;
    lines_forget(p, 0, UINT64_MAX);
    unwinder_free(p->unwinder);
}

void process_code_clear(struct process_code *p)
{
    forget_all(p);
    p->unwinder = process_unwinder(p);
}

void process_code_free(struct process_code *p)
{
    if (!p)
        return;
    forget_all(p);
    for (size_t i = 0; i < ARRAY_LEN(p->lines); i++)
        free(p->lines[i]);
    free(p->ranges);
    free(p->retired);
    free(p);
}

static void range_insert(struct process_code *p, size_t at, const struct code_range *range)
{
    p->ranges = mem_grow(p->ranges, &p->range_capacity, p->range_count + 1, sizeof *p->ranges);
    memmove(p->ranges + at + 1, p->ranges + at, (p->range_count - at) * sizeof *p->ranges);
    p->ranges[at] = *range;
    p->range_count++;
}

/* The part of a range from `start` on, as a range of its own. */
static struct code_range range_tail(const struct code_range *range, uint64_t start)
{
    struct code_range tail = *range;
    tail.file_off += start - range->start;
    tail.start = start;
    return tail;
}

/* Whether a range says of its addresses the same as this mapping: so it is when a mapping grows. */
static bool range_agrees(const struct code_range *range, uint64_t start, uint64_t file_off, uint32_t image)
{
    return range->image == image &&
           (image == PROCESS_CODE_NO_IMAGE || range->start - range->file_off == start - file_off);
}

/* Makes room; what reaches beyond [start, end) on either side stays. Returns where a range starting there
 * belongs. */
static size_t ranges_cut(struct process_code *p, uint64_t start, uint64_t end)
{
    size_t i = range_index(p, start);
    if (i < p->range_count && p->ranges[i].start < start) {
        struct code_range tail = range_tail(&p->ranges[i], start);
        p->ranges[i].end = start;
        range_insert(p, ++i, &tail);
    }
    size_t last = i;
    while (last < p->range_count && p->ranges[last].end <= end)
        last++;
    if (last < p->range_count && p->ranges[last].start < end)
        p->ranges[last] = range_tail(&p->ranges[last], end);
    if (last > i)
        memmove(p->ranges + i, p->ranges + last, (p->range_count - last) * sizeof *p->ranges);
    p->range_count -= last - i;
    return i;
}

void process_code_map(struct process_code *p, uint64_t start, uint64_t size_bytes, uint64_t file_off,
                      uint32_t image)
{
    if (size_bytes == 0 || size_bytes > UINT64_MAX - start || p->range_count > RANGES_MAX)
        return;
    size_t same = range_index(p, start);
    if (same < p->range_count && p->ranges[same].start == start &&
        p->ranges[same].end == start + size_bytes && p->ranges[same].file_off == file_off &&
        p->ranges[same].image == image)
        return;
    for (size_t i = same; i < p->range_count && p->ranges[i].start < start + size_bytes; i++)
        if (!range_agrees(&p->ranges[i], start, file_off, image)) {
            unwinder_forget(p->unwinder);
            break;
        }
    size_t at = ranges_cut(p, start, start + size_bytes);
    range_insert(p, at,
                 &(struct code_range){
                     .start = start, .end = start + size_bytes, .file_off = file_off, .image = image });
    lines_forget(p, start, start + size_bytes);
}

static void methods_cut(struct process_code *p, uint64_t start, uint64_t end)
{
    if (method_map_cut(&p->methods, start, end, method_done, p))
        unwinder_forget(p->unwinder);
}

void process_code_method(struct process_code *p, uint64_t start, uint64_t size_bytes, bool fleeting)
{
    if (size_bytes == 0 || size_bytes > UINT64_MAX - start || p->methods.count >= METHODS_MAX)
        return;
    methods_cut(p, start, start + size_bytes);
    method_map_add(&p->methods, start, start + size_bytes);
    p->stats.methods++;
    if (fleeting)
        method_read(p, start);
    lines_forget(p, start, start + size_bytes);
}

void process_code_method_end(struct process_code *p, uint64_t start)
{
    const struct code_method *method = method_map_at(&p->methods, start);
    if (method && method->start == start)
        methods_cut(p, start, start + 1);
}

/* Whether looking at the mappings again may help, and was done. */
static bool refresh(struct process_code *p)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (!p->missed || !p->access.refresh ||
        now_ns - p->refreshed_ns < PROCESS_CODE_REFRESH_MS * UINT64_C(1000000))
        return false;
    p->access.refresh(p->access.user);
    p->refreshed_ns = clock_monotonic_ns();
    p->stats.refreshes++;
    return true;
}

struct unwind_result process_code_unwind(struct process_code *p, const struct unwind_sample *sample,
                                         struct unwind_frame *frames, size_t max)
{
    free_retired(p);
    p->missed = false;
    struct unwind_result result = unwinder_run(p->unwinder, sample, frames, max);
    if (result.end == UNWIND_END_BROKEN && refresh(p))
        result = unwinder_run(p->unwinder, sample, frames, max);
    return result;
}

struct process_code_stats process_code_stats(const struct process_code *p)
{
    return p->stats;
}
