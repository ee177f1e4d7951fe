#include "collect/target_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/helper_process.h"

enum { ANSWER_BYTES_MAX = 16 * TARGET_TEXT_MAX, STRINGS = 8 };

/* The strings of a target, in the order they are sent. */
static void strings_of(struct target *t, char **out[STRINGS])
{
    char **const strings[STRINGS] = { &t->name,         &t->command_line,   &t->entry_assembly, &t->cgroup,
                                      &t->container_id, &t->container_name, &t->image,          &t->socket };
    memcpy(out, strings, sizeof strings);
}

void target_pack(const struct target *t, struct buffer *out)
{
    char **strings[STRINGS];
    strings_of((struct target *)t, strings);
    for (size_t i = 0; i < STRINGS; i++) {
        const char *text = *strings[i];
        /* 0 is NULL, else the size and one */
        buffer_u32le(out, text ? (uint32_t)strlen(text) + 1 : 0);
        buffer_string(out, text ? text : "");
    }
    buffer_append(out, t->version.text, sizeof t->version.text);
    buffer_u8(out, (uint8_t)t->runtime);
    buffer_u8(out, t->single_file);
    buffer_u8(out, t->sdk_tool);
    buffer_u8(out, t->diagnostics_off);
    buffer_u8(out, t->maps_denied);
    buffer_u32le(out, t->socket_owner);
    buffer_u64le(out, t->some_addr);
}

static char *take_string(struct cursor *c)
{
    uint32_t size = cursor_u32le(c);
    if (size == 0)
        return NULL;
    struct span text = cursor_bytes(c, size - 1);
    char *copy = mem_alloc(text.size + 1, 1);
    if (text.size)
        memcpy(copy, text.data, text.size);
    return copy;
}

bool target_unpack(struct span bytes, struct target *t, struct error *err)
{
    struct target got = *t;
    struct cursor c = cursor_over(bytes);
    char **strings[STRINGS];
    strings_of(&got, strings);
    for (size_t i = 0; i < STRINGS; i++)
        *strings[i] = take_string(&c);
    struct span version = cursor_bytes(&c, sizeof got.version.text);
    if (version.size)
        memcpy(got.version.text, version.data, version.size - 1);
    uint8_t runtime = cursor_u8(&c);
    got.runtime = runtime <= RUNTIME_MONO ? (enum runtime_kind)runtime : RUNTIME_NONE;
    got.single_file = cursor_u8(&c) != 0;
    got.sdk_tool = cursor_u8(&c) != 0;
    got.diagnostics_off = cursor_u8(&c) != 0;
    got.maps_denied = cursor_u8(&c) != 0;
    got.socket_owner = cursor_u32le(&c);
    got.some_addr = cursor_u64le(&c);
    bool ok = cursor_finish(&c, err, "the answer of a helper process") && got.name;
    /* whichever of the two is dropped gives its strings back */
    strings_of(ok ? t : &got, strings);
    for (size_t i = 0; i < STRINGS; i++)
        free(*strings[i]);
    if (ok)
        *t = got;
    return ok;
}

/* In the child. Nothing may reach the parent's files but through the pipe. */
_Noreturn static void answer(struct target *t, target_look_fn *look, int out_fd)
{
    helper_process_begin(out_fd);
    struct buffer out;
    buffer_init(&out, ANSWER_BYTES_MAX);
    look(t);
    target_pack(t, &out);
    _exit(out.failed || !fd_write(out_fd, buffer_span(&out)));
}

/* Everything up to the end of the pipe; false when that does not come in time. */
static bool receive(const struct target_probe *probe, struct buffer *out)
{
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        struct pollfd wait = { .fd = probe->fd, .events = POLLIN };
        int ready =
            now_ns < probe->end_ns ? poll(&wait, 1, (int)((probe->end_ns - now_ns) / 1000000u) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        uint8_t *room = buffer_reserve(out, 4096);
        if (!room)
            return false;
        ssize_t got = read(probe->fd, room, 4096);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        out->size += (size_t)got;
    }
}

bool target_probe_begin(struct target *t, target_look_fn *look, unsigned timeout_ms, struct target_probe *out,
                        struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_system(err, errno, "cannot make a pipe");
    AUTO_FD int from_child = ends[0];
    AUTO_FD int to_parent = ends[1];
    pid_t child = fork();
    if (child < 0)
        return error_system(err, errno, "cannot start a helper process");
    if (child == 0)
        answer(t, look, to_parent);
    *out = (struct target_probe){ child, take_fd(&from_child),
                                  clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000u };
    return true;
}

void target_probe_drop(struct target_probe *probe)
{
    close(probe->fd);
    helper_process_end(probe->child);
}

bool target_probe_finish(struct target_probe *probe, struct target *t, struct error *err)
{
    struct buffer out;
    buffer_init(&out, ANSWER_BYTES_MAX + 4096);
    bool ok = receive(probe, &out) ||
              error_set(err, ERROR_TARGET, "process %d did not let itself be looked at in time", (int)t->pid);
    target_probe_drop(probe);
    ok = ok && target_unpack(buffer_span(&out), t, err);
    buffer_done(&out);
    return ok;
}
