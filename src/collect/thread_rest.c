#include "collect/thread_rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "collect/proc_file.h"

enum { FILE_BYTES_MAX = 8192, SYSCALL_SP = 7 };

static bool read_text(pid_t pid, pid_t tid, const char *name, struct buffer *out)
{
    bool ok = proc_file_read_task(pid, tid, name, out, NULL);
    buffer_u8(out, 0);
    return ok && !out->failed;
}

static uint64_t number_of(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line ? strtoull(line + strlen(key), NULL, 10) : 0;
}

/* "number arg1 ... arg6 sp pc", or "running", or "-1 sp pc" outside of a system call. */
static bool read_stack_pointer(const char *text, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    for (unsigned i = 0; i < SYSCALL_SP && text; i++) {
        text = strchr(text, ' ');
        text = text ? text + 1 : NULL;
    }
    if (!text)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

bool thread_rest_read(pid_t pid, pid_t tid, struct thread_rest *out)
{
    struct buffer text;
    bool rests = false;
    buffer_init(&text, FILE_BYTES_MAX);
    if (read_text(pid, tid, "status", &text)) {
        const char *status = (const char *)text.data;
        const char *state = strstr(status, "\nState:\t");
        out->switches = number_of(status, "\nvoluntary_ctxt_switches:\t") +
                        number_of(status, "\nnonvoluntary_ctxt_switches:\t");
        rests = state && (state[8] == 'S' || state[8] == 'T');
    }
    rests = rests && read_text(pid, tid, "syscall", &text) &&
            read_stack_pointer((const char *)text.data, &out->stack_pointer);
    buffer_done(&text);
    return rests;
}
