#include "read/procfs.h"

#include <stdlib.h>
#include <string.h>

/* The next line without its newline; *complete says whether there was one. */
static bool next_line(struct span *rest, struct span *out, bool *complete)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    *out = (struct span){ rest->data, size };
    *complete = end != NULL;
    size_t taken = size + (end != NULL);
    *rest = (struct span){ rest->data + taken, rest->size - taken };
    return true;
}

static void skip_blanks(struct cursor *c)
{
    while (cursor_left(c) && (c->bytes.data[c->pos] == ' ' || c->bytes.data[c->pos] == '\t'))
        c->pos++;
}

static unsigned digit_of(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return (unsigned)(byte - '0');
    if (byte >= 'a' && byte <= 'f')
        return (unsigned)(byte - 'a') + 10;
    return 99;
}

/* Digits of `base` at the cursor; fails when there is none or they exceed 64 bits. */
static uint64_t take_number(struct cursor *c, unsigned base)
{
    uint64_t value = 0;
    size_t first = c->pos;
    while (cursor_left(c)) {
        unsigned digit = digit_of(c->bytes.data[c->pos]);
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            c->failed = true;
            return 0;
        }
        c->pos++;
    }
    if (c->pos == first)
        c->failed = true;
    return c->failed ? 0 : value;
}

static void take_char(struct cursor *c, char wanted)
{
    if (cursor_u8(c) != (uint8_t)wanted)
        c->failed = true;
}

static void skip_field(struct cursor *c)
{
    skip_blanks(c);
    while (cursor_left(c) && c->bytes.data[c->pos] != ' ' && c->bytes.data[c->pos] != '\n')
        c->pos++;
}

static uint64_t take_field(struct cursor *c)
{
    skip_blanks(c);
    return take_number(c, 10);
}

bool procfs_read_stat(struct span text, struct proc_stat *out, struct error *err)
{
    const uint8_t *open = text.size ? memchr(text.data, '(', text.size) : NULL;
    const uint8_t *close = text.size ? memrchr(text.data, ')', text.size) : NULL;
    if (!open || !close || close < open)
        return error_set(err, ERROR_INPUT, "a stat file has no name in parentheses");
    struct proc_stat stat = { .name = { open + 1, (size_t)(close - open - 1) } };
    struct cursor c = cursor_over(text);
    cursor_seek(&c, (uint64_t)(close + 1 - text.data));
    skip_blanks(&c);
    stat.state = (char)cursor_u8(&c);
    stat.parent = (pid_t)take_field(&c);
    for (int field = 5; field < 14; field++) /* group .. cmajflt */
        skip_field(&c);
    stat.user_ticks = take_field(&c);
    stat.system_ticks = take_field(&c);
    stat.child_user_ticks = take_field(&c);
    stat.child_system_ticks = take_field(&c);
    for (int field = 18; field < 20; field++) /* priority, nice */
        skip_field(&c);
    stat.threads = (uint32_t)take_field(&c);
    skip_field(&c); /* itrealvalue */
    stat.start_ticks = take_field(&c);
    stat.virtual_bytes = take_field(&c);
    if (!cursor_finish(&c, err, "a stat file"))
        return false;
    for (unsigned i = 0; i < 4; i++) /* rss rsslim startcode endcode */
        skip_field(&c);
    uint64_t stack_start = take_field(&c);
    stat.stack_start = cursor_ok(&c) ? stack_start : 0;
    *out = stat;
    return true;
}

/* `real effective saved fs` */
static void take_ids(struct cursor *c, uint32_t *real, uint32_t *fs)
{
    *real = (uint32_t)take_field(c);
    take_field(c);
    take_field(c);
    *fs = (uint32_t)take_field(c);
}

static void take_ns_pids(struct cursor *c, struct proc_status *status)
{
    uint32_t count = 0;
    for (skip_blanks(c); cursor_left(c); skip_blanks(c)) {
        status->ns_pid = (pid_t)take_number(c, 10);
        count++;
    }
    status->ns_depth = count ? count - 1 : 0;
}

bool procfs_read_status(struct span text, struct proc_status *out, struct error *err)
{
    struct proc_status status = { 0 };
    bool seen_uid = false, seen_gid = false, seen_tgid = false, complete;
    for (struct span line; next_line(&text, &line, &complete) && complete;) {
        const uint8_t *colon = memchr(line.data, ':', line.size);
        if (!colon)
            continue;
        struct cursor c = cursor_over(line);
        cursor_seek(&c, (uint64_t)(colon + 1 - line.data));
        if (span_begins(line, "Tgid:")) {
            status.tgid = (pid_t)take_field(&c);
            seen_tgid = cursor_ok(&c);
        } else if (span_begins(line, "Uid:")) {
            take_ids(&c, &status.uid, &status.fs_uid);
            seen_uid = cursor_ok(&c);
        } else if (span_begins(line, "Gid:")) {
            take_ids(&c, &status.gid, &status.fs_gid);
            seen_gid = cursor_ok(&c);
        } else if (span_begins(line, "NSpid:")) {
            take_ns_pids(&c, &status);
        } else if (span_begins(line, "TracerPid:")) {
            status.tracer = (pid_t)take_field(&c);
        } else if (span_begins(line, "CapEff:")) {
            skip_blanks(&c);
            status.effective_capabilities = take_number(&c, 16);
        } else if (span_begins(line, "Seccomp:")) {
            status.seccomp = (uint32_t)take_field(&c);
        }
    }
    if (!seen_uid || !seen_gid || !seen_tgid)
        return error_set(err, ERROR_INPUT, "a status file lacks Tgid, Uid or Gid");
    if (status.ns_pid <= 0)
        status.ns_pid = status.tgid;
    *out = status;
    return true;
}

static void take_permissions(struct cursor *c, struct proc_mapping *m)
{
    struct span p = cursor_bytes(c, 4);
    if (p.size == 0)
        return;
    m->readable = p.data[0] == 'r';
    m->writable = p.data[1] == 'w';
    m->executable = p.data[2] == 'x';
    m->shared = p.data[3] == 's';
    if (!m->shared && p.data[3] != 'p')
        c->failed = true;
}

bool procfs_take_deleted(struct span *path)
{
    if (!span_ends(*path, PROCFS_DELETED) || path->size == strlen(PROCFS_DELETED))
        return false;
    path->size -= strlen(PROCFS_DELETED);
    return true;
}

/* 7f00-7f10 r-xp 00001000 fd:01 1234     /path */
static bool parse_mapping(struct span line, struct proc_mapping *out)
{
    struct proc_mapping m = { 0 };
    struct cursor c = cursor_over(line);
    m.start = take_number(&c, 16);
    take_char(&c, '-');
    m.end = take_number(&c, 16);
    take_char(&c, ' ');
    take_permissions(&c, &m);
    take_char(&c, ' ');
    m.file_off = take_number(&c, 16);
    take_char(&c, ' ');
    m.device_major = (uint32_t)take_number(&c, 16);
    take_char(&c, ':');
    m.device_minor = (uint32_t)take_number(&c, 16);
    take_char(&c, ' ');
    m.inode = take_number(&c, 10);
    if (!cursor_ok(&c) || m.start >= m.end)
        return false;
    skip_blanks(&c);
    m.path = cursor_bytes(&c, cursor_left(&c));
    m.deleted = procfs_take_deleted(&m.path);
    *out = m;
    return true;
}

bool procfs_next_mapping(struct span *rest, struct proc_mapping *out, uint64_t *malformed)
{
    bool complete;
    for (struct span line; next_line(rest, &line, &complete) && complete;) {
        if (parse_mapping(line, out))
            return true;
        if (malformed)
            ++*malformed;
    }
    return false;
}

void procfs_unescape(struct span path, struct buffer *out)
{
    for (size_t i = 0; i < path.size; i++) {
        const uint8_t *p = path.data + i;
        bool octal = path.size - i >= 4 && p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' &&
                     p[2] <= '7' && p[3] >= '0' && p[3] <= '7';
        buffer_u8(out, octal ? (uint8_t)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0')) : p[0]);
        i += octal ? 3 : 0;
    }
}

bool procfs_next_argument(struct span *rest, struct span *out)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, 0, rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    *out = (struct span){ rest->data, size };
    size_t taken = size + (end != NULL);
    *rest = (struct span){ rest->data + taken, rest->size - taken };
    return true;
}

bool procfs_environ_find(struct span text, const char *name, struct span *out)
{
    size_t size = strlen(name);
    for (struct span entry; procfs_next_argument(&text, &entry);) {
        if (entry.size > size && entry.data[size] == '=' && memcmp(entry.data, name, size) == 0) {
            *out = (struct span){ entry.data + size + 1, entry.size - size - 1 };
            return true;
        }
    }
    return false;
}

struct span procfs_cgroup_path(struct span text)
{
    struct span best = { 0 };
    bool complete;
    for (struct span line; next_line(&text, &line, &complete) && complete;) {
        const uint8_t *first = memchr(line.data, ':', line.size);
        size_t left = first ? line.size - (size_t)(first + 1 - line.data) : 0;
        const uint8_t *second = left ? memchr(first + 1, ':', left) : NULL;
        if (!second)
            continue;
        struct span path = { second + 1, line.size - (size_t)(second + 1 - line.data) };
        bool unified = span_begins(line, "0::");
        /* mixed set-ups have an unused unified hierarchy: "/" there tells less than a path of version 1 */
        if (best.size <= 1 || (unified && path.size > 1))
            best = path;
        if (unified && path.size > 1)
            break;
    }
    return best;
}

static struct span hex_id(struct span component)
{
    enum { ID_DIGITS = 64 };
    size_t run = 0;
    for (size_t i = 0; i < component.size; i++) {
        run = digit_of(component.data[i]) < 16 ? run + 1 : 0;
        bool ends = i + 1 == component.size || digit_of(component.data[i + 1]) >= 16;
        if (run == ID_DIGITS && ends)
            return (struct span){ component.data + i + 1 - ID_DIGITS, ID_DIGITS };
    }
    return (struct span){ 0 };
}

/* What is left of `component` between the two; empty when it is not of that shape. */
static struct span between(struct span component, const char *prefix, const char *suffix)
{
    size_t before = strlen(prefix), after = strlen(suffix);
    if (component.size <= before + after || !span_begins(component, prefix) ||
        memcmp(component.data + component.size - after, suffix, after) != 0)
        return (struct span){ 0 };
    return (struct span){ component.data + before, component.size - before - after };
}

struct span procfs_container_id(struct span path)
{
    struct span id = { 0 }, before = { 0 };
    while (path.size) {
        const uint8_t *slash = memchr(path.data, '/', path.size);
        struct span component = { path.data, slash ? (size_t)(slash - path.data) : path.size };
        size_t taken = component.size + (slash != NULL);
        path = (struct span){ path.data + taken, path.size - taken };
        struct span found = hex_id(component);
        if (!found.size)
            found = between(component, "lxc.payload.", "");
        if (!found.size)
            found = between(component, "machine-", ".scope");
        if (!found.size && before.size == 3 && memcmp(before.data, "lxc", 3) == 0)
            found = component;
        /* the innermost one: containers may run inside containers */
        if (found.size)
            id = found;
        before = component;
    }
    return id;
}
