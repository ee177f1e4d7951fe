#include "clr/event_providers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"

enum { PROVIDER_TEXT_MAX = IPC_MESSAGE_MAX };

void event_providers_init(struct event_providers *p)
{
    *p = (struct event_providers){ 0 };
}

static void provider_done(struct event_provider *one)
{
    free(one->name);
    free(one->args);
    free(one->event_ids);
}

void event_providers_done(struct event_providers *p)
{
    for (size_t i = 0; i < p->count; i++)
        provider_done(&p->items[i]);
    free(p->items);
    event_providers_init(p);
}

struct event_provider *event_providers_find(const struct event_providers *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcasecmp(p->items[i].name, name) == 0)
            return &p->items[i];
    return NULL;
}

bool event_providers_choose(const struct event_providers *p, const char *name, uint32_t event_id)
{
    const struct event_provider *provider = event_providers_find(p, name);
    if (!provider || !provider->event_id_count)
        return provider;
    for (size_t i = 0; i < provider->event_id_count; i++)
        if (provider->event_ids[i] == event_id)
            return true;
    return false;
}

/* "Always" is what a runtime checks last: it lets everything of the keywords through. */
static uint32_t more_talkative(uint32_t a, uint32_t b)
{
    if (a == EVENT_LEVEL_ALWAYS || b == EVENT_LEVEL_ALWAYS)
        return EVENT_LEVEL_ALWAYS;
    return a > b ? a : b;
}

static void add_ids(struct event_provider *into, const uint32_t *ids, size_t count)
{
    into->event_ids = mem_resize(into->event_ids, into->event_id_count + count, sizeof *into->event_ids);
    memcpy(into->event_ids + into->event_id_count, ids, count * sizeof *ids);
    into->event_id_count += count;
}

static bool merge(struct event_provider *into, const struct event_provider *more, struct error *err)
{
    if (more->args && into->args)
        return error_set(err, ERROR_USAGE, "provider '%s' is asked for twice, with arguments each time",
                         into->name);
    if (more->args)
        into->args = mem_copy_string(more->args);
    if (into->event_id_count && more->event_id_count) {
        add_ids(into, more->event_ids, more->event_id_count);
    } else {
        free(into->event_ids);
        into->event_ids = NULL;
        into->event_id_count = 0;
    }
    uint64_t heavy = (into->keywords & ~into->light_keywords) | (more->keywords & ~more->light_keywords);
    into->light_keywords = (into->light_keywords | more->light_keywords) & ~heavy;
    into->keywords |= more->keywords;
    into->level = more_talkative(into->level, more->level);
    if (more->light_level > into->light_level)
        into->light_level = more->light_level;
    return true;
}

bool event_providers_add(struct event_providers *p, const struct event_provider *more, struct error *err)
{
    struct event_provider *there = event_providers_find(p, more->name);
    if (there)
        return merge(there, more, err);
    if (p->count == IPC_PROVIDERS_MAX)
        return error_set(err, ERROR_USAGE, "more than %d event providers", IPC_PROVIDERS_MAX);
    p->items = mem_grow(p->items, &p->capacity, p->count + 1, sizeof *p->items);
    struct event_provider *one = &p->items[p->count++];
    *one = *more;
    one->name = mem_copy_string(more->name);
    one->args = more->args ? mem_copy_string(more->args) : NULL;
    one->event_ids = NULL;
    one->event_id_count = 0;
    if (more->event_id_count)
        add_ids(one, more->event_ids, more->event_id_count);
    return true;
}

static const char *const level_names[] = { "LogAlways", "Critical",      "Error",
                                           "Warning",   "Informational", "Verbose" };

const char *event_level_name(uint32_t level)
{
    return level < ARRAY_LEN(level_names) ? level_names[level] : "?";
}

bool event_level_parse(const char *text, uint32_t *out)
{
    for (uint32_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcasecmp(text, level_names[i]) == 0) {
            *out = i;
            return true;
        }
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits])
        return false;
    uint64_t level = strtoull(text, NULL, 10);
    *out = level > EVENT_LEVEL_VERBOSE ? EVENT_LEVEL_VERBOSE : (uint32_t)level;
    return true;
}

static bool parse_keywords(const char *text, uint64_t *out)
{
    const char *digits = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
    size_t count = strspn(digits, "0123456789abcdefABCDEF");
    if (count == 0 || digits[count])
        return false;
    errno = 0;
    *out = strtoull(digits, NULL, 16);
    return errno == 0;
}

/* A character written \xHH or \uHHHH. Returns how many were read of it, 0 when it is none. */
static size_t parse_hex_escape(const char *at, struct buffer *out)
{
    size_t digits = *at == 'x' ? 2 : *at == 'u' ? 4 : 0;
    char text[5] = "";
    if (digits == 0 || strspn(at + 1, "0123456789abcdefABCDEF") < digits)
        return 0;
    memcpy(text, at + 1, digits);
    unsigned unit = (unsigned)strtoul(text, NULL, 16);
    if (unit == 0 || (unit >= 0xd800 && unit < 0xe000))
        return 0;
    if (unit < 0x80)
        buffer_u8(out, (uint8_t)unit);
    else if (unit < 0x800)
        buffer_format(out, "%c%c", 0xc0 | unit >> 6, 0x80 | (unit & 0x3f));
    else
        buffer_format(out, "%c%c%c", 0xe0 | unit >> 12, 0x80 | (unit >> 6 & 0x3f), 0x80 | (unit & 0x3f));
    return 1 + digits;
}

/* Letters mean what they do in C; another character behind a backslash means itself. */
static bool unescape(const char *text, size_t size, struct buffer *out, struct error *err)
{
    static const char letters[] = "nrtfvae", meant[] = "\n\r\t\f\v\a\033";
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '\\' || i + 1 == size) {
            buffer_u8(out, (uint8_t)text[i]);
            continue;
        }
        const char *at = &text[++i], *letter = strchr(letters, *at);
        size_t hex = parse_hex_escape(at, out);
        if (hex)
            i += hex - 1;
        else if (letter && *at)
            buffer_u8(out, (uint8_t)meant[letter - letters]);
        else if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z'))
            return error_set(err, ERROR_USAGE, "'\\%c' in the arguments of a provider", *at);
        else
            buffer_u8(out, (uint8_t)*at);
    }
    return true;
}

/* A key or value, without the quotes around it; one that could be misread gets them back. */
static void put_word(struct buffer *out, const char *text, size_t size, bool unquote)
{
    if (unquote && size >= 2 && text[0] == '"' && text[size - 1] == '"') {
        text++;
        size -= 2;
    }
    bool quote = memchr(text, ';', size) || memchr(text, '=', size);
    buffer_string(out, quote ? "\"" : "");
    buffer_append(out, text, size);
    buffer_string(out, quote ? "\"" : "");
}

struct argument {
    const char *key, *value;
    size_t key_size, value_size;
};

/* The pair text[from, to): its key ends at the last '=' outside of quotes. False when there is none. */
static bool split_pair(const char *text, size_t from, size_t to, struct argument *out)
{
    bool quoted = false, found = false;
    for (size_t i = from; i < to; i++) {
        quoted ^= text[i] == '"';
        if (text[i] != '=' || quoted)
            continue;
        *out = (struct argument){ text + from, text + i + 1, i - from, to - i - 1 };
        found = true;
    }
    return found;
}

static size_t pair_end(const char *text, size_t from, size_t size)
{
    bool quoted = false;
    for (size_t i = from; i < size; i++) {
        quoted ^= text[i] == '"';
        if (text[i] == ';' && !quoted)
            return i;
    }
    return size;
}

enum { ARGUMENTS_MAX = 64 };

static bool put_arguments(const char *text, size_t size, struct buffer *out, struct error *err)
{
    struct argument seen[ARGUMENTS_MAX];
    size_t count = 0;
    for (size_t from = 0; from < size;) {
        size_t to = pair_end(text, from, size);
        struct argument pair;
        if (!split_pair(text, from, to, &pair)) {
            if (to < size)
                return error_set(err, ERROR_USAGE, "'%.*s' is no argument: key=value", (int)(to - from),
                                 text + from);
            break; /* at the end it means nothing, as with dotnet-trace */
        }
        for (size_t i = 0; i < count; i++)
            if (seen[i].key_size == pair.key_size && memcmp(seen[i].key, pair.key, pair.key_size) == 0)
                return error_set(err, ERROR_USAGE, "'%.*s' is given twice", (int)pair.key_size, pair.key);
        if (count == ARGUMENTS_MAX)
            return error_set(err, ERROR_USAGE, "more than %d arguments", ARGUMENTS_MAX);
        seen[count++] = pair;
        if (out->size)
            buffer_u8(out, ';');
        put_word(out, pair.key, pair.key_size, false);
        buffer_u8(out, '=');
        put_word(out, pair.value, pair.value_size, true);
        from = to + 1;
    }
    return true;
}

/* Every pair, spelled as the runtime wants it; NULL when there is none. */
static bool parse_arguments(const char *text, char **out, struct error *err)
{
    struct buffer plain, normal;
    buffer_init(&plain, PROVIDER_TEXT_MAX);
    buffer_init(&normal, PROVIDER_TEXT_MAX);
    bool ok = unescape(text, strlen(text), &plain, err) &&
              put_arguments((const char *)plain.data, plain.size, &normal, err);
    if (ok && (plain.failed || normal.failed))
        ok = error_set(err, ERROR_USAGE, "the arguments do not fit into a request of 64 KiB");
    if (ok) {
        bool any = normal.size;
        buffer_u8(&normal, 0);
        *out = any ? mem_copy_string((const char *)normal.data) : NULL;
    }
    buffer_done(&plain);
    buffer_done(&normal);
    return ok;
}

/* Ends a field at its ':' and yields what follows, or NULL. */
static char *next_field(char *field)
{
    char *colon = field ? strchr(field, ':') : NULL;
    if (!colon)
        return NULL;
    *colon = '\0';
    return colon + 1;
}

static bool parse_one(struct event_providers *p, char *text, struct error *err)
{
    char *keywords = next_field(text), *level = next_field(keywords), *args = next_field(level);
    struct event_provider one = { .name = text,
                                  .level = EVENT_LEVEL_INFORMATIONAL,
                                  .asked_by = "--providers" };
    if (!*text)
        return error_set(err, ERROR_USAGE, "a provider without a name");
    if (keywords && *keywords && !parse_keywords(keywords, &one.keywords)) {
        error_set(err, ERROR_USAGE, "'%s' are no keywords of provider '%s'", keywords, text);
        return error_hint(err, "keywords are bits in hex, 0x1F or 1F; for the runtime's by name: --clrevents "
                               "gc+jit");
    }
    if (level && *level && !event_level_parse(level, &one.level)) {
        error_set(err, ERROR_USAGE, "'%s' is no level of provider '%s'", level, text);
        return error_hint(err,
                          "0 to 5, or one of LogAlways, Critical, Error, Warning, Informational, Verbose");
    }
    if (args && !parse_arguments(args, &one.args, err))
        return error_context(err, "provider '%s'", text);
    bool ok = event_providers_add(p, &one, err);
    free(one.args);
    return ok;
}

bool event_providers_parse(struct event_providers *p, const char *list, struct error *err)
{
    bool ok = true;
    AUTO_FREE char *copy = mem_copy_string(list);
    for (char *at = copy; ok && at;) {
        bool quoted = false;
        char *end = at;
        for (; *end && (quoted || *end != ','); end++)
            quoted ^= *end == '"';
        char *next = *end ? end + 1 : NULL;
        *end = '\0';
        ok = *at == '\0' || parse_one(p, at, err);
        at = next;
    }
    return ok;
}

/* The runtime's own providers are no EventSources: these alone have the session's bits checked. */
static bool is_event_source(const char *name)
{
    return strncasecmp(name, RUNTIME_PROVIDER, strlen(RUNTIME_PROVIDER)) != 0 &&
           strcasecmp(name, RUNTIME_SAMPLER_PROVIDER) != 0;
}

static bool chooses(const struct event_provider *one, uint32_t event_id)
{
    for (size_t i = 0; i < one->event_id_count; i++)
        if (one->event_ids[i] == event_id)
            return true;
    return false;
}

/*
 * Chosen by a list of what is to come, .NET 10 sends allocation ticks for a tenth of a second and then no
 * more (10.0.12: 4 of 128,000 in 2 s); by a list of what is not to come it sends them all. So where they are
 * wanted the rest that is talkative at their level is left out, and what is told is chosen again on our side.
 */
static void request_choice(const struct event_provider *one, struct ipc_provider *out)
{
    static const uint32_t talkative[] = { 145, 29,
                                          33 }; /* method is jitted, object is finalized, is pinned */
    bool ticks = strcasecmp(one->name, RUNTIME_PROVIDER) == 0 && chooses(one, RUNTIME_ALLOCATION_TICK);
    out->filter = IPC_FILTER_ALLOW;
    out->event_ids = one->event_ids;
    out->event_id_count = one->event_id_count;
    if (!ticks)
        return;
    size_t wanted = chooses(one, talkative[0]); /* the topics choose none of the others */
    out->filter = IPC_FILTER_DENY;
    out->event_ids = talkative + wanted;
    out->event_id_count = ARRAY_LEN(talkative) - wanted;
}

static void request_providers(const struct event_providers *p, bool choose, struct ipc_provider *out)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct event_provider *one = &p->items[i];
        bool chosen = choose && one->event_id_count;
        bool light = !chosen && one->event_id_count && one->light_keywords == one->keywords;
        out[i] = (struct ipc_provider){
            .name = one->name,
            .keywords = one->keywords,
            .level = light ? one->light_level : one->level,
            .args = one->args,
            .is_event_source = is_event_source(one->name),
        };
        if (chosen)
            request_choice(one, &out[i]);
    }
}

bool event_providers_clash(const struct event_providers *p)
{
    const struct event_provider *runtime = event_providers_find(p, RUNTIME_PROVIDER);
    if (!runtime || !(runtime->keywords & RUNTIME_KEYWORD_ALLOCATION_SAMPLING))
        return false;
    bool ticks = runtime->event_id_count == 0;
    for (size_t i = 0; i < runtime->event_id_count; i++)
        ticks |= runtime->event_ids[i] == RUNTIME_ALLOCATION_TICK;
    return ticks && runtime->keywords & RUNTIME_KEYWORD_GC &&
           (runtime->level == EVENT_LEVEL_VERBOSE || runtime->level == EVENT_LEVEL_ALWAYS);
}

void event_request_done(struct event_request *r)
{
    event_providers_done(&r->providers);
}

struct ipc_session_request event_request_ipc(const struct event_request *r, bool choose,
                                             struct ipc_provider *providers)
{
    request_providers(&r->providers, choose, providers);
    return (struct ipc_session_request){
        .buffer_mb = r->buffer_mb,
        .stacks = r->stacks,
        .rundown_keywords = r->rundown_keywords,
        .rundown_chosen_only = r->rundown_chosen_only,
        .providers = providers,
        .provider_count = r->providers.count,
    };
}

bool event_request_check(const struct event_request *r, struct error *err)
{
    AUTO_FREE struct ipc_provider *providers = mem_alloc(r->providers.count + 1, sizeof *providers);
    struct ipc_session_request ipc = event_request_ipc(r, true, providers);
    struct buffer request;
    buffer_init(&request, IPC_MESSAGE_MAX);
    bool ok = ipc_append_collect(&request, IPC_COLLECT_TRACING5, &ipc, err);
    buffer_done(&request);
    return ok;
}
