#include "trace/builder_stacks.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "trace/address_space.h"
#include "trace/past_mappings.h"

/* Bits of a slot's number: 512 KiB at most. */
enum { MEMO_BITS_MIN = 8, MEMO_BITS_MAX = 15, MEMO_SLOTS_OF_A_CHAIN = 8 };

/* A frame's address as captured, and the location that it was. Four to a line of the CPU's caches. */
struct location_memo {
    uint64_t addr;
    uint32_t meaning; /* see meaning_of(); 0: free */
    uint32_t location;
};

struct location_memo *location_memo_new(size_t chains, unsigned *out_shift)
{
    unsigned bits = MEMO_BITS_MIN;
    while (bits < MEMO_BITS_MAX && (size_t)1 << bits < chains * MEMO_SLOTS_OF_A_CHAIN)
        bits++;
    *out_shift = 64 - bits;
    return mem_alloc((size_t)1 << bits, sizeof(struct location_memo));
}

/* Locations. */

static uint32_t location_find_user(struct trace_builder *b, uint32_t process, uint64_t addr, bool is_return,
                                   uint64_t time_ns)
{
    /* a call may be the last instruction of its method: the caller is found before the return address */
    uint64_t inside = is_return && addr ? addr - 1 : addr;
    const struct process_state *state = &b->states[process];
    const struct address_range *code = address_space_find(state->codes, inside);
    place_filter_add(&b->places, process, inside);
    struct location_key key = {
        .addr = addr,
        .process = process,
        .mapping = trace_builder_mapping_then(b, process, inside, time_ns),
        .is_return = is_return,
    };
    uint64_t to_ns = code ? b->trace.codes.rows[code->mapping].to_ns : 0;
    if (code && (!to_ns || time_ns < to_ns))
        key.code = code->mapping;
    return stack_table_location(&b->stacks, &b->trace, &key, time_ns);
}

/* What addresses meant at a time: when other things were mapped than now, it is not remembered. */
static uint32_t space_then(struct trace_builder *b, uint32_t process, uint64_t time_ns)
{
    const struct process_state *state = &b->states[process];
    return time_ns < state->past->changed_ns ? ++b->spaces : state->space;
}

/* Whose frames are looked up: a process's, or the kernel's with process 0. */
struct frame_space {
    uint32_t process, number; /* see process_state.space */
    uint64_t time_ns;
};

/* What else decides what a frame's address is. */
static inline uint32_t meaning_of(struct frame_space space, bool is_return)
{
    return space.number << 1 | is_return;
}

static inline struct location_memo *memo_of(struct trace_builder *b, struct frame_space space, uint64_t addr)
{
    return &b->memo[((addr ^ space.process) * 0x9e3779b97f4a7c15ull) >> b->memo_shift];
}

/* Seldom needed: kept out of the loops that need the rest. */
__attribute__((noinline)) static uint32_t location_find(struct trace_builder *b, struct frame_space space,
                                                        uint64_t addr, bool is_return)
{
    struct location_key kernel = { .addr = addr, .is_return = is_return };
    uint32_t location = space.process ? location_find_user(b, space.process, addr, is_return, space.time_ns)
                                      : stack_table_location(&b->stacks, &b->trace, &kernel, space.time_ns);
    *memo_of(b, space, addr) = (struct location_memo){ addr, meaning_of(space, is_return), location };
    return location;
}

/* The location of a frame. This sees every frame of every new chain. */
static inline uint32_t location_of(struct trace_builder *b, struct frame_space space, uint64_t addr,
                                   bool is_return)
{
    const struct location_memo *memo = memo_of(b, space, addr);
    if (memo->addr == addr && memo->meaning == meaning_of(space, is_return))
        return memo->location;
    return location_find(b, space, addr, is_return);
}

enum stack_end trace_builder_stack_end(const struct trace_builder *b, uint32_t stack)
{
    return stack_table_end(&b->stacks, stack);
}

/* The path of a sample's frames; `locations` has room for TRACE_STACK_DEPTH_MAX. */
static struct stack_path path_of(struct trace_builder *b, uint32_t process, const struct raw_sample *s,
                                 uint32_t *locations)
{
    enum stack_end end = s->end;
    size_t believed = s->judge ? s->judge(s->judge_user, process, s, &end) : s->user_count;
    size_t kernel_count = s->kernel_count < TRACE_STACK_DEPTH_MAX ? s->kernel_count : TRACE_STACK_DEPTH_MAX;
    size_t room = TRACE_STACK_DEPTH_MAX - kernel_count;
    size_t user_count = believed < room ? believed : room;
    bool cut = kernel_count < s->kernel_count || user_count < believed;
    uint32_t depth = 0;
    struct frame_space user = { process, space_then(b, process, s->time_ns), s->time_ns },
                       kernel = { 0, BUILDER_KERNEL_SPACE, s->time_ns };
    const uint64_t *addrs = s->user;
    const bool *exact = s->user_exact;
    for (size_t i = user_count; i-- > 0;)
        locations[depth++] = location_of(b, user, addrs[i], exact ? !exact[i] : i > 0);
    for (size_t i = kernel_count; i-- > 0;)
        locations[depth++] = location_of(b, kernel, s->kernel[i], i > 0);
    return (struct stack_path){ cut ? STACK_TRUNCATED : end, depth, locations };
}

/*
 * Mostly the leaf alone is new of a new chain, or a few frames near it: the stacks of their callers are
 * remembered by these frames' addresses.
 */

/* In a key's context; exact: the first user frame is among them, which goes on at its address. */
#define CALLERS       (UINT64_C(1) << 63)
#define CALLERS_EXACT (UINT64_C(1) << 62)

/* How many frames are left out. */
static const uint8_t skipped_frames[RAW_SAMPLE_CALLERS] = { 1, 4 };

static bool may_know_callers(const struct raw_sample *s)
{
    size_t count = s->kernel_count + s->user_count;
    bool others_are_exact = s->user_exact && s->user_count && memchr(s->user_exact + 1, 1, s->user_count - 1);
    return s->by_callers && count > skipped_frames[RAW_SAMPLE_CALLERS - 1] &&
           count <= TRACE_STACK_DEPTH_MAX && !others_are_exact;
}

static struct chain_key callers_key(const struct raw_sample *s, size_t skipped, uint64_t context)
{
    size_t kernel = skipped < s->kernel_count ? skipped : s->kernel_count, user = skipped - kernel;
    struct chain_key hash =
        chain_hash_of(s->kernel + kernel, s->kernel_count - kernel, s->user + user, s->user_count - user);
    return chain_key_in(hash, context | (user ? 0 : CALLERS_EXACT));
}

/* The path of the first `count` frames; false when these may have a say in how many of the others count. */
static bool path_of_first(struct trace_builder *b, uint32_t process, const struct raw_sample *s, size_t count,
                          uint32_t *locations)
{
    struct frame_space user = { process, space_then(b, process, s->time_ns), s->time_ns },
                       kernel = { 0, BUILDER_KERNEL_SPACE, s->time_ns };
    bool plain = true;
    for (size_t i = 0; i < count; i++) {
        bool is_kernel = i < s->kernel_count;
        size_t at = is_kernel ? i : i - s->kernel_count;
        bool exact = is_kernel || !s->user_exact ? at == 0 : s->user_exact[at];
        uint32_t location =
            location_of(b, is_kernel ? kernel : user, (is_kernel ? s->kernel : s->user)[at], !exact);
        plain &= is_kernel || !s->judge || b->trace.locations.rows[location].mapping;
        locations[count - 1 - i] = location;
    }
    return plain;
}

/* The path of a sample from the stack of its first frames' callers; false when that is not known. */
static bool path_on_callers(struct trace_builder *b, uint32_t process, struct raw_sample *s,
                            uint32_t *locations, struct stack_path *out)
{
    if (!may_know_callers(s))
        return false;
    uint64_t context = CALLERS | (uint64_t)space_then(b, process, s->time_ns) << 2 | s->end;
    for (; s->new_callers < RAW_SAMPLE_CALLERS; s->new_callers++) {
        size_t skipped = skipped_frames[s->new_callers];
        s->callers[s->new_callers] = callers_key(s, skipped, context);
        uint32_t callers = chain_cache_find(b->chains, s->callers[s->new_callers]);
        if (!callers)
            continue;
        *out = (struct stack_path){ callers, (uint32_t)skipped, locations };
        return path_of_first(b, process, s, skipped, locations);
    }
    return false;
}

/* Remembers the callers that were not known, now that the sample has a stack. */
static void add_callers(struct trace_builder *b, const struct raw_sample *s, uint32_t stack)
{
    size_t frames = 0;
    for (unsigned i = 0; i < s->new_callers; i++) {
        for (; frames < skipped_frames[i] && stack >= STACK_ROOTS; frames++) {
            struct trace_stack row = b->trace.stacks.rows[stack];
            if (s->judge && frames >= s->kernel_count && !b->trace.locations.rows[row.location].mapping)
                return;
            stack = row.parent;
        }
        if (frames < skipped_frames[i])
            return;
        chain_cache_add(b->chains, s->callers[i], stack);
    }
}

struct chain_key raw_sample_hash(const struct raw_sample *s)
{
    return s->chain.size ? chain_hash_of_bytes(s->chain)
                         : chain_hash_of(s->kernel, s->kernel_count, s->user, s->user_count);
}

static struct chain_key sample_key(struct trace_builder *b, uint32_t process, const struct raw_sample *s)
{
    uint64_t context = (uint64_t)space_then(b, process, s->time_ns) << 2;
    return chain_key_in(s->is_hashed ? s->hash : raw_sample_hash(s),
                        s->chain.size ? context : context ^ s->end);
}

static void sample_look(struct trace_builder *b, struct raw_sample *s)
{
    if (s->looked_at)
        return;
    s->looked_at = true;
    if (!s->thread)
        s->thread = trace_builder_thread(b, s->pid, s->tid, s->time_ns);
    s->key = sample_key(b, b->trace.threads.rows[s->thread].process, s);
}

void trace_builder_sample_expect(struct trace_builder *b, struct raw_sample *s)
{
    sample_look(b, s);
    chain_cache_prefetch(b->chains, s->key);
}

static uint32_t sample_push(struct trace_builder *b, const struct raw_sample *s, uint32_t stack)
{
    trace_push_sample(&b->trace.samples, s->time_ns, s->thread, stack, s->weight, s->kind, s->cpu);
    return stack;
}

bool trace_builder_sample_is_known(struct trace_builder *b, struct raw_sample *s)
{
    sample_look(b, s);
    return chain_cache_find(b->chains, s->key) != 0;
}

uint32_t trace_builder_sample_again(struct trace_builder *b, struct raw_sample *s)
{
    sample_look(b, s);
    uint32_t stack = chain_cache_find(b->chains, s->key);
    return stack ? sample_push(b, s, stack) : 0;
}

/* Its path, when its chain is not known; else one of nothing, below its stack. */
static struct stack_path path_of_sample(struct trace_builder *b, struct raw_sample *s, uint32_t *locations)
{
    sample_look(b, s);
    uint32_t stack = chain_cache_find(b->chains, s->key), process = b->trace.threads.rows[s->thread].process;
    struct stack_path path = { .parent = stack };
    if (stack || path_on_callers(b, process, s, locations, &path))
        return path;
    return path_of(b, process, s, locations);
}

static uint32_t add_sample(struct trace_builder *b, const struct raw_sample *s, struct stack_path path)
{
    bool is_new = path.locations; /* unless one that was added since had the same chain */
    uint32_t stack = stack_table_add(&b->stacks, &b->trace, path);
    if (is_new)
        chain_cache_add(b->chains, s->key, stack);
    add_callers(b, s, stack);
    return sample_push(b, s, stack);
}

uint32_t trace_builder_sample(struct trace_builder *b, struct raw_sample *s)
{
    return add_sample(b, s, path_of_sample(b, s, b->paths));
}

void trace_builder_samples(struct trace_builder *b, struct raw_sample *s, size_t count)
{
    struct stack_path paths[STACK_PATHS_MAX] = { 0 };
    assert(count <= STACK_PATHS_MAX);
    for (size_t i = 0; i < count; i++)
        paths[i] = path_of_sample(b, &s[i], b->paths + i * TRACE_STACK_DEPTH_MAX);
    stack_table_follow(&b->stacks, &b->trace, paths, count);
    for (size_t i = 0; i < count; i++)
        add_sample(b, &s[i], paths[i]);
}

uint32_t trace_builder_stack(struct trace_builder *b, uint32_t process, const uint64_t *addrs, size_t count,
                             bool leaf_exact, uint64_t time_ns, enum stack_end end)
{
    static const bool none_exact[TRACE_STACK_DEPTH_MAX];
    const struct raw_sample s = {
        .time_ns = time_ns,
        .user = addrs,
        .user_count = count,
        .user_exact = leaf_exact ? NULL : none_exact,
        .end = end,
    };
    if (count == 0)
        return end;
    /* the same addresses mean other places when the leaf is not exact; a sample's chain has no end here */
    uint64_t space = space_then(b, process, time_ns);
    uint64_t context = (uint64_t)!leaf_exact << 63 ^ space << 2 ^ end;
    struct chain_key key = chain_key_in(chain_hash_of_bytes(span_of(addrs, count * sizeof *addrs)), context);
    uint32_t stack = chain_cache_find(b->chains, key);
    if (!stack) {
        stack = stack_table_add(&b->stacks, &b->trace, path_of(b, process, &s, b->paths));
        chain_cache_add(b->chains, key, stack);
    }
    return stack;
}

uint32_t trace_builder_stack_at(struct trace_builder *b, uint32_t stack, uint64_t time_ns,
                                location_code_fn *code_at, void *user)
{
    uint32_t path[TRACE_STACK_DEPTH_MAX] = { 0 };
    size_t depth = 0;
    for (; stack >= STACK_ROOTS && depth < TRACE_STACK_DEPTH_MAX; stack = b->trace.stacks.rows[stack].parent)
        path[depth++] = b->trace.stacks.rows[stack].location;
    while (depth-- > 0) {
        uint32_t location = path[depth], code = code_at(user, location, time_ns);
        if (code) {
            const struct trace_location row = b->trace.locations.rows[location];
            location = stack_table_location(
                &b->stacks, &b->trace,
                &(struct location_key){ row.addr, row.process, row.mapping, code, row.is_return }, time_ns);
        }
        stack = stack_table_push(&b->stacks, &b->trace, stack, location);
    }
    return stack;
}

uint32_t trace_builder_place(struct trace_builder *b, uint32_t process, uint64_t addr, uint64_t time_ns)
{
    uint32_t id = trace_push(&b->trace.locations);
    b->trace.locations.rows[id] = (struct trace_location){
        .process = process,
        .mapping = process ? trace_builder_mapping_at(b, process, addr) : 0,
        .addr = addr,
        .first_ns = time_ns,
    };
    return id;
}

static void name_location(struct trace *t, uint32_t location, uint32_t function)
{
    struct trace_location *row = &t->locations.rows[location];
    const char *name = trace_string(t, t->functions.rows[function].name);
    row->function = function;
    uint64_t start;
    row->resolver = trace_name_is_place(name, &start) ? RESOLVER_EH_FRAME : RESOLVER_IMPORTED;
    row->unnamed = strcmp(name, "[unknown]") == 0 ? UNNAMED_NO_SYMBOL : UNNAMED_NOT;
}

uint32_t trace_builder_named_stack_to(struct trace_builder *b, const uint32_t *functions, size_t count,
                                      enum stack_end end)
{
    uint32_t stack = count > TRACE_STACK_DEPTH_MAX ? STACK_TRUNCATED : end;
    for (size_t i = count > TRACE_STACK_DEPTH_MAX ? count - TRACE_STACK_DEPTH_MAX : 0; i < count; i++) {
        /* named locations share the number space of kernel addresses, far below any of those */
        uint32_t location =
            stack_table_location(&b->stacks, &b->trace, &(struct location_key){ .addr = functions[i] }, 0);
        if (!b->trace.locations.rows[location].function)
            name_location(&b->trace, location, functions[i]);
        stack = stack_table_push(&b->stacks, &b->trace, stack, location);
    }
    return stack;
}

uint32_t trace_builder_named_stack(struct trace_builder *b, const uint32_t *functions, size_t count)
{
    return trace_builder_named_stack_to(b, functions, count, STACK_WHOLE);
}
