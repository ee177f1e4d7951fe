#include "collect/process_mappings.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/own.h"
#include "collect/proc_file.h"

enum {
    MAPPINGS_MAX = 1 << 20,
    LINES_BYTES_MAX = 1 << 20, /* of a part, and the line that it begins with */
};

/* Linux's struct procmap_query (include/uapi/linux/fs.h, from 6.11 on). */
struct mapping_query {
    uint64_t size, flags, addr;      /* what is asked */
    uint64_t start, end;             /* the answer */
    uint64_t permissions, page_size; /* permissions: QUERY_READABLE, ... */
    uint64_t file_off, inode;
    uint32_t device_major, device_minor;
    uint32_t name_size; /* of the room for it, then of the name with its NUL */
    uint32_t build_id_size;
    uint64_t name_addr, build_id_addr;
};

enum {
    QUERY_READABLE = 1,
    QUERY_WRITABLE = 2,
    QUERY_EXECUTABLE = 4,
    QUERY_SHARED = 8,
    QUERY_OR_NEXT = 16,
    QUERY_OF_FILES = 32,
};

#define QUERY_MAPPING _IOWR('f', 17, struct mapping_query)

static uint64_t query_flags(enum mappings_wanted wanted)
{
    static const uint8_t flags[] = {
        [MAPPINGS_OF_FILES] = QUERY_OF_FILES,
        [MAPPINGS_EXECUTABLE] = QUERY_EXECUTABLE,
        [MAPPINGS_READABLE] = QUERY_READABLE,
    };
    return QUERY_OR_NEXT | (uint64_t)flags[wanted];
}

static struct proc_mapping mapping_of(const struct mapping_query *q, const char *name)
{
    struct proc_mapping m = {
        .start = q->start,
        .end = q->end,
        .file_off = q->file_off,
        .inode = q->inode,
        .device_major = q->device_major,
        .device_minor = q->device_minor,
        .readable = q->permissions & QUERY_READABLE,
        .writable = q->permissions & QUERY_WRITABLE,
        .executable = q->permissions & QUERY_EXECUTABLE,
        .shared = q->permissions & QUERY_SHARED,
        .path = span_of(name, q->name_size ? q->name_size - 1 : 0),
    };
    m.deleted = procfs_take_deleted(&m.path);
    return m;
}

/* The first mapping at `addr` or behind; its name is left out when there is no room for it. */
static bool ask(int fd, uint64_t flags, uint64_t addr, char name[PATH_MAX], struct mapping_query *out)
{
    *out = (struct mapping_query){
        .size = sizeof *out, .flags = flags, .addr = addr, .name_size = PATH_MAX, .name_addr = (uintptr_t)name
    };
    if (ioctl(fd, QUERY_MAPPING, out) == 0)
        return true;
    if (errno != ENAMETOOLONG)
        return false;
    *out = (struct mapping_query){ .size = sizeof *out, .flags = flags, .addr = addr };
    return ioctl(fd, QUERY_MAPPING, out) == 0;
}

static bool ask_each(pid_t pid, enum mappings_wanted wanted, process_mapping_fn *emit, void *user,
                     struct error *err)
{
    char name[PATH_MAX];
    AUTO_FD int fd = -1;
    struct mapping_query q = { 0 };
    if (!proc_file_open(pid, "maps", &fd, err))
        return false;
    size_t count = 0;
    while (count < MAPPINGS_MAX && ask(fd, query_flags(wanted), q.end, name, &q)) {
        struct proc_mapping m = mapping_of(&q, name);
        if (q.end <= q.start || !emit(user, &m))
            return true;
        count++;
    }
    /* ENOENT: there is none; ESRCH: nor is there memory; a filter of system calls refuses as it likes */
    if (count == 0 && errno != ENOENT && errno != ESRCH)
        return error_set(err, ERROR_UNSUPPORTED, "this kernel does not answer for single mappings");
    return true; /* there is none behind the last, or the process has ended */
}

/* [vsyscall] is the kernel's, and not among those that can be asked for. */
static bool is_wanted(const struct proc_mapping *m, enum mappings_wanted wanted)
{
    if (m->start >> 63)
        return false;
    return wanted == MAPPINGS_ALL || (wanted == MAPPINGS_OF_FILES && m->inode) ||
           (wanted == MAPPINGS_EXECUTABLE && m->executable) || (wanted == MAPPINGS_READABLE && m->readable);
}

/* The text of all of them, a part after the other: what wants few of them stops early. */
struct mappings_text {
    enum mappings_wanted wanted;
    process_mapping_fn *emit;
    void *user;
    struct buffer lines; /* that were read, the last one perhaps not to its end */
    struct buffer path;  /* unescaped */
    bool going;
};

static void unescape(struct proc_mapping *m, struct buffer *into)
{
    if (!m->path.size || (m->path.size < PATH_MAX && !memchr(m->path.data, '\\', m->path.size)))
        return;
    buffer_clear(into);
    procfs_unescape(m->path, into);
    m->path = into->failed ? (struct span){ 0 } : buffer_span(into);
}

/* Tells of the lines that are whole, and keeps the rest. */
static void tell_lines(struct mappings_text *text)
{
    struct proc_mapping m;
    size_t whole = text->lines.size;
    while (whole && text->lines.data[whole - 1] != '\n')
        whole--;
    struct span rest = { text->lines.data, whole };
    while (text->going && procfs_next_mapping(&rest, &m, NULL)) {
        if (!is_wanted(&m, text->wanted))
            continue;
        unescape(&m, &text->path);
        text->going = text->emit(text->user, &m);
    }
    text->lines.size -= whole;
    if (text->lines.size)
        memmove(text->lines.data, text->lines.data + whole, text->lines.size);
}

static bool read_lines(pid_t pid, struct mappings_text *text, struct error *err)
{
    AUTO_FD int fd = -1;
    bool more = true;
    if (!proc_file_open(pid, "maps", &fd, err))
        return false;
    while (text->going && more) {
        if (!proc_file_read_more(fd, &text->lines, &more))
            return proc_file_explain(errno, pid, "maps", err);
        tell_lines(text);
    }
    return true;
}

static bool read_each(pid_t pid, enum mappings_wanted wanted, process_mapping_fn *emit, void *user,
                      struct error *err)
{
    struct mappings_text text = { .wanted = wanted, .emit = emit, .user = user, .going = true };
    buffer_init(&text.lines, LINES_BYTES_MAX);
    buffer_init(&text.path, PATH_MAX - 1);
    bool ok = read_lines(pid, &text, err);
    buffer_done(&text.lines);
    buffer_done(&text.path);
    return ok;
}

bool process_mappings_each_by(pid_t pid, enum mappings_way way, enum mappings_wanted wanted,
                              process_mapping_fn *emit, void *user, struct error *err)
{
    return (way == MAPPINGS_ASKED ? ask_each : read_each)(pid, wanted, emit, user, err);
}

bool process_mappings_each(pid_t pid, enum mappings_wanted wanted, process_mapping_fn *emit, void *user,
                           struct error *err)
{
    struct error why;
    if (wanted != MAPPINGS_EXECUTABLE) /* the text of all costs a third of so many questions */
        return read_each(pid, wanted, emit, user, err);
    if (ask_each(pid, wanted, emit, user, &why))
        return true;
    if (why.kind == ERROR_UNSUPPORTED)
        return read_each(pid, wanted, emit, user, err);
    if (err)
        *err = why;
    return false;
}
