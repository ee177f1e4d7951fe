#include "collect/memory_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id_map.h"
#include "base/mem.h"
#include "base/recent_pages.h"
#include "base/target_root.h"
#include "collect/live_memory.h"

#define FILE_BYTES_MAX (UINT64_C(1) << 30)
#define RENEW_EVERY_NS (UINT64_C(2) * 1000000)
#define MAP_EVERY_NS   (UINT64_C(100) * 1000000)
#define MAPS_AGE_NS    (UINT64_C(60) * 1000000000)
#define BARE_FIRST_NS  (UINT64_C(20) * 1000000)
#define OPENED_NS      (UINT64_C(50) * 1000000) /* since then what opening has read is new enough */

enum {
    BARE_PAGES = 64,
    BARE_DOUBLINGS = 8,
    FIND_MARKS = 64,
    FOLLOWED_PAGES_MAX = 1024, /* a runtime can compile thousands of methods before pages are dropped */
};

/* A page outside all regions of code that the runtime told of: thunks and barriers, or code that comes yet.
 */
struct bare_page {
    uint64_t number;
    uint64_t again_ns; /* not looked at before */
    unsigned times;
};

/* Code that was there at a look, by a hash of its place and name. */
struct look {
    uint64_t *hashes; /* id - 1 */
    size_t count, capacity;
    struct id_map ids;
};

/* Before a method was looked for or read ahead: the time, and how many pages had been read. */
struct find_mark {
    uint64_t time_ns, reads;
};

struct memory_session {
    int root_fd;
    struct live_memory *live; /* NULL when the memory does not change */
    const struct memory *memory;
    struct code_walk *walk;
    struct module_files files;
    uint64_t started_ns, looked_ns;     /* looked: time of the last look, or of the start */
    uint64_t renewed_ns, mapped_ns;     /* pages and mappings are of then */
    struct find_mark finds[FIND_MARKS]; /* the last, each at its turn modulo their number */
    size_t find_count;
    struct bare_page bare[BARE_PAGES]; /* by number */
    struct recent_pages recent;
    struct look last, now;
    uint64_t *modules; /* ids told of */
    size_t module_count, module_capacity;
    /* of the question under way */
    const struct runtime_sink *sink;
    uint64_t time_ns;
    enum runtime_method_change change;
};

static bool open_file(void *user, const char *path, struct source *out)
{
    const struct memory_session *s = user;
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = FILE_BYTES_MAX };
    int fd;
    if (s->root_fd < 0 || !target_root_open_path(s->root_fd, path, rules, &fd, NULL))
        return false;
    if (source_over_fd(fd, 0, FILE_BYTES_MAX, out, NULL))
        return true;
    close(fd);
    return false;
}

static void close_file(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

static bool open_walk(struct memory_session *s, struct memory_session **out, struct error *err)
{
    if (!code_walk_open(s->memory, &s->files, &s->walk, err)) {
        memory_session_close(s);
        return false;
    }
    *out = s;
    return true;
}

bool memory_session_start(pid_t pid, uint64_t start_ticks, int root_fd, struct memory_session **out,
                          struct error *err)
{
    struct memory_session *s = mem_alloc(1, sizeof *s);
    s->root_fd = root_fd;
    s->files = (struct module_files){ open_file, close_file, s };
    s->started_ns = s->looked_ns = s->renewed_ns = s->mapped_ns = clock_monotonic_ns();
    if (!live_memory_open(pid, start_ticks, &s->live, err)) {
        memory_session_close(s);
        return false;
    }
    s->memory = live_memory_view(s->live);
    return open_walk(s, out, err);
}

bool memory_session_over(const struct memory *memory, const struct module_files *files,
                         struct memory_session **out, struct error *err)
{
    struct memory_session *s = mem_alloc(1, sizeof *s);
    s->root_fd = -1;
    s->memory = memory;
    s->files = *files;
    s->started_ns = s->looked_ns = s->renewed_ns = s->mapped_ns = clock_monotonic_ns();
    return open_walk(s, out, err);
}

static void look_done(struct look *look)
{
    free(look->hashes);
    id_map_done(&look->ids);
}

void memory_session_close(struct memory_session *s)
{
    if (!s)
        return;
    code_walk_close(s->walk);
    live_memory_close(s->live);
    look_done(&s->last);
    look_done(&s->now);
    free(s->modules);
    free(s);
}

/* Back to now: pages, what may have been unloaded, and mappings that are older than they may be. */
static bool renew(struct memory_session *s, uint64_t maps_age_ns, struct error *err)
{
    if (!s->live)
        return true;
    uint64_t now_ns = clock_monotonic_ns();
    bool listed = now_ns - s->mapped_ns >= maps_age_ns;
    if (listed && !live_memory_refresh(s->live, err))
        return false;
    if (!live_memory_lives(s->live))
        return error_set(err, ERROR_TARGET, "the process is gone");
    code_walk_renew(s->walk);
    s->renewed_ns = now_ns;
    s->mapped_ns = listed ? now_ns : s->mapped_ns;
    return true;
}

void memory_session_expire(struct memory_session *s)
{
    s->mapped_ns = 0;
    if (s->live)
        live_memory_try_again(s->live);
}

static void tell_module(struct memory_session *s, const struct found_method *found)
{
    for (size_t i = 0; i < s->module_count; i++)
        if (s->modules[i] == found->module_id)
            return;
    s->modules = mem_grow(s->modules, &s->module_capacity, s->module_count + 1, sizeof *s->modules);
    s->modules[s->module_count++] = found->module_id;
    const char *path = found->path[0] ? found->path : found->module;
    struct runtime_module module = {
        .change = RUNTIME_METHOD_EXISTS_AT_END,
        .time_ns = s->time_ns,
        .module_id = found->module_id,
        .path = span_of(path, strlen(path)),
    };
    if (s->sink->module)
        s->sink->module(s->sink->user, &module);
}

static enum code_tier tier_of(enum found_tier tier)
{
    static const uint8_t tiers[] = {
        TIER_NONE, TIER_0, TIER_0_INSTRUMENTED, TIER_OSR, TIER_1, TIER_OPTIMIZED
    };
    return (enum code_tier)tiers[tier];
}

static void tell(struct memory_session *s, const struct found_method *found)
{
    if (found->kind == FOUND_STUB || found->name[0] == 0)
        return;
    if (found->module_id)
        tell_module(s, found);
    struct runtime_method method = {
        .change = s->change,
        .time_ns = s->time_ns,
        .addr = found->begin,
        .size_bytes = found->end - found->begin,
        .method_id = found->method_id,
        .module_id = found->module_id,
        .token = found->token,
        .name = span_of(found->name, strlen(found->name)),
        .type_params = span_of(found->type_params, strlen(found->type_params)),
        .tier = (uint8_t)tier_of((enum found_tier)found->tier),
        .dynamic = found->kind == FOUND_DYNAMIC,
        .jitted = true,
        .generic = found->generic,
    };
    if (s->sink->method)
        s->sink->method(s->sink->user, &method);
}

static bool is_hash(const void *table, uint32_t id, const void *key)
{
    return ((const uint64_t *)table)[id - 1] == *(const uint64_t *)key;
}

static bool look_has(const struct look *look, uint64_t hash)
{
    return id_map_find(&look->ids, hash, is_hash, look->hashes, &hash) != 0;
}

static bool tell_if_new(void *user, const struct found_method *found)
{
    struct memory_session *s = user;
    uint64_t hash =
        hash_pair(hash_pair(found->begin, found->end), hash_bytes(found->name, strlen(found->name)));
    if (!look_has(&s->now, hash)) {
        s->now.hashes = mem_grow(s->now.hashes, &s->now.capacity, s->now.count + 1, sizeof *s->now.hashes);
        s->now.hashes[s->now.count++] = hash;
        id_map_add(&s->now.ids, hash, (uint32_t)s->now.count);
    }
    if (!look_has(&s->last, hash))
        tell(s, found);
    return true;
}

static bool comes_and_goes(const struct found_method *found)
{
    return found->collectible || found->kind == FOUND_DYNAMIC;
}

/* Whether it is time to look for the regions again because of `addr`, which is in none. */
static bool may_look_again(struct memory_session *s, uint64_t addr, uint64_t now_ns)
{
    uint64_t number = addr / MEMORY_PAGE_BYTES;
    struct bare_page *page = &s->bare[number % BARE_PAGES];
    if (page->number != number)
        *page = (struct bare_page){ .number = number };
    if (now_ns < page->again_ns)
        return false;
    page->again_ns = now_ns + (BARE_FIRST_NS << page->times);
    page->times += page->times < BARE_DOUBLINGS;
    return true;
}

/*
 * What was read lately may be old where nothing is found, or where code comes and goes; to read all of it
 * anew costs as much as the rest.
 */
static bool find_anew(struct memory_session *s, uint64_t addr, struct found_method *found)
{
    bool known = true, got = code_walk_find(s->walk, addr, found);
    if (!got)
        got = code_walk_find_new(s->walk, addr, found, &known);
    if (known && !(got && comes_and_goes(found)))
        return got;
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - s->renewed_ns < RENEW_EVERY_NS || (!known && !may_look_again(s, addr, now_ns)))
        return got;
    code_walk_forget(s->walk);
    s->renewed_ns = now_ns;
    if (code_walk_find(s->walk, addr, found))
        return true;
    /* to list what is mapped takes a millisecond of who is watched */
    return !memory_mapping_at(s->memory, addr) && now_ns - s->mapped_ns >= MAP_EVERY_NS &&
           renew(s, 0, NULL) && code_walk_find(s->walk, addr, found);
}

static const struct memory_pages *session_pages(const struct memory_session *s)
{
    return code_walk_types(s->walk)->pages;
}

/* The first of those that are kept; what was read since is not older than the time. NULL: there is none. */
static const struct find_mark *first_find_after(const struct memory_session *s, uint64_t time_ns)
{
    const struct find_mark *first = NULL;
    for (size_t age = 1; age <= s->find_count && age <= FIND_MARKS; age++) {
        const struct find_mark *mark = &s->finds[(s->find_count - age) % FIND_MARKS];
        if (mark->time_ns < time_ns)
            break;
        first = mark;
    }
    return first;
}

bool memory_session_read(struct memory_session *s, uint64_t time_ns, uint64_t addr, void *into, size_t size)
{
    const struct find_mark *mark = first_find_after(s, time_ns);
    return (mark && memory_pages_read_since(session_pages(s), mark->reads, addr, into, size)) ||
           recent_pages_read(&s->recent, s->memory, time_ns, addr, into, size);
}

/* Of now. */
static const struct find_mark *add_mark(struct memory_session *s)
{
    struct find_mark *mark = &s->finds[s->find_count++ % FIND_MARKS];
    *mark = (struct find_mark){ clock_monotonic_ns(), session_pages(s)->reads };
    return mark;
}

void memory_session_follow(struct memory_session *s, uint64_t time_ns, uint64_t begin)
{
    if (session_pages(s)->count >= FOLLOWED_PAGES_MAX)
        return;
    const struct find_mark *mark = first_find_after(s, time_ns);
    if (!mark)
        mark = add_mark(s);
    code_walk_follow(s->walk, mark->reads, begin);
}

bool memory_session_find(struct memory_session *s, uint64_t addr, uint64_t time_ns,
                         const struct runtime_sink *sink)
{
    struct found_method found;
    add_mark(s);
    if (!find_anew(s, addr, &found) || found.kind == FOUND_STUB || found.name[0] == 0)
        return false;
    s->sink = sink;
    s->change = RUNTIME_METHOD_LOADED;
    s->time_ns = comes_and_goes(&found) ? time_ns : CODE_FROM_EVER;
    tell(s, &found);
    return true;
}

bool memory_session_module(struct memory_session *s, uint64_t addr, const struct runtime_sink *sink)
{
    struct found_method found;
    if (!find_anew(s, addr, &found) || !found.module_id)
        return false;
    s->sink = sink;
    s->time_ns = s->started_ns;
    tell_module(s, &found);
    return true;
}

static void start_naming(struct memory_session *s, const struct runtime_sink *sink)
{
    s->sink = sink;
    s->change = RUNTIME_METHOD_EXISTS_AT_END;
    s->time_ns = clock_monotonic_ns();
}

static bool tell_any(void *user, const struct found_method *found)
{
    tell(user, found);
    return true;
}

/* To list what is mapped takes longer than to look for some methods. */
static uint64_t maps_age_for(const struct memory_session *s, const uint64_t *addrs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!memory_mapping_at(s->memory, addrs[i]))
            return MAP_EVERY_NS;
    return MAPS_AGE_NS;
}

static bool name_at(struct memory_session *s, const uint64_t *addrs, size_t count, code_walk_fn *emit,
                    const struct runtime_sink *sink, struct error *err)
{
    if (!renew(s, maps_age_for(s, addrs, count), err))
        return false;
    start_naming(s, sink);
    return code_walk_list_at(s->walk, addrs, count, emit, s);
}

bool memory_session_name(struct memory_session *s, const uint64_t *addrs, size_t count,
                         const struct runtime_sink *sink, struct error *err)
{
    return name_at(s, addrs, count, tell_any, sink, err);
}

static bool tell_for_later(void *user, const struct found_method *found)
{
    struct memory_session *s = user;
    uint64_t now_ns = s->time_ns;
    s->change = comes_and_goes(found) ? RUNTIME_METHOD_EXISTS_AT_END : RUNTIME_METHOD_LOADED;
    s->time_ns = comes_and_goes(found) ? now_ns : CODE_FROM_EVER;
    tell(s, found);
    s->time_ns = now_ns;
    return true;
}

bool memory_session_learn(struct memory_session *s, const uint64_t *addrs, size_t count,
                          const struct runtime_sink *sink, struct error *err)
{
    return name_at(s, addrs, count, tell_for_later, sink, err);
}

bool memory_session_look(struct memory_session *s, const uint64_t *addrs, size_t count,
                         const struct runtime_sink *sink, struct error *err)
{
    uint64_t now_ns = clock_monotonic_ns();
    bool just_opened = s->looked_ns == s->started_ns && now_ns - s->renewed_ns < OPENED_NS;
    if (!just_opened && !renew(s, maps_age_for(s, addrs, count), err))
        return false;
    start_naming(s, sink);
    code_walk_list_at(s->walk, addrs, count, tell_for_later, s);
    s->change = RUNTIME_METHOD_LOADED;
    s->time_ns = s->looked_ns;
    code_walk_list(s->walk, WALK_COLLECTIBLE, tell_if_new, s);
    struct look spare = s->last;
    s->last = s->now;
    s->now = spare;
    s->now.count = 0;
    id_map_clear(&s->now.ids);
    s->looked_ns = now_ns;
    return true;
}

bool memory_session_name_all(struct memory_session *s, const struct runtime_sink *sink, struct error *err)
{
    if (!renew(s, MAP_EVERY_NS, err))
        return false;
    start_naming(s, sink);
    return code_walk_list(s->walk, WALK_ALL, tell_any, s);
}

bool memory_session_il_map(struct memory_session *s, unsigned major, uint64_t begin, uint64_t size_bytes,
                           struct il_map *out, struct error *err)
{
    struct error failure;
    if (code_walk_il_map(s->walk, major, begin, size_bytes, out, &failure))
        return true;
    /* the page may be of before the code was there */
    if (failure.kind == ERROR_INPUT && clock_monotonic_ns() - s->renewed_ns >= RENEW_EVERY_NS &&
        renew(s, MAPS_AGE_NS, NULL))
        return code_walk_il_map(s->walk, major, begin, size_bytes, out, err);
    if (err)
        *err = failure;
    return false;
}

bool memory_session_hangs(const struct memory_session *s)
{
    return s->live && live_memory_hangs(s->live) >= LIVE_MEMORY_HANGS_MAX;
}

const struct memory *memory_session_memory(const struct memory_session *s)
{
    return s->memory;
}

const struct module_files *memory_session_files(const struct memory_session *s)
{
    return &s->files;
}

struct code_walk *memory_session_walk(struct memory_session *s)
{
    return s->walk;
}

static bool read_il_map(void *user, unsigned major, uint64_t begin, uint64_t size_bytes, struct il_map *out)
{
    return memory_session_il_map(user, major, begin, size_bytes, out, NULL);
}

struct il_map_reader memory_session_il_maps(struct memory_session *session)
{
    return (struct il_map_reader){ read_il_map, session };
}
