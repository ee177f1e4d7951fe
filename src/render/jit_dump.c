#include "render/jit_dump.h"

#include <elf.h>
#include <string.h>

#include "render/shown_text.h"

enum {
    MAGIC = 0x4a695444, /* "JiTD" in the reader's byte order */
    VERSION = 1,
    CODE_LOAD = 0,
    DEBUG_INFO = 2,
    HEADER_BYTES = 40,
    PREFIX_BYTES = 16,
    LOAD_BYTES = PREFIX_BYTES + 40,
    INFO_BYTES = PREFIX_BYTES + 16,
    LINE_BYTES = 16,
    NAME_BYTES_MAX = 1 << 16,
};

static void put_u32(struct jit_dump *dump, uint32_t value)
{
    output_write(dump->out, &value, sizeof value);
}

static void put_u64(struct jit_dump *dump, uint64_t value)
{
    output_write(dump->out, &value, sizeof value);
}

static void put_prefix(struct jit_dump *dump, uint32_t kind, size_t bytes)
{
    put_u32(dump, kind);
    put_u32(dump, (uint32_t)bytes);
    put_u64(dump, dump->time_ns);
}

void jit_dump_begin(struct jit_dump *dump, uint32_t pid, uint64_t time_ns, struct output *out)
{
    *dump = (struct jit_dump){ .out = out, .pid = pid, .time_ns = time_ns };
    put_u32(dump, MAGIC);
    put_u32(dump, VERSION);
    put_u32(dump, HEADER_BYTES);
    put_u32(dump, EM_X86_64);
    put_u32(dump, 0);
    put_u32(dump, pid);
    put_u64(dump, time_ns);
    put_u64(dump, 0); /* flags: times are CLOCK_MONOTONIC */
}

/* Lines go before the code that they are of. */
static void put_lines(struct jit_dump *dump, const struct jit_dump_method *method)
{
    size_t bytes = INFO_BYTES;
    for (size_t i = 0; i < method->line_count; i++)
        bytes += LINE_BYTES + strlen(method->lines[i].file) + 1;
    if (!method->line_count || bytes > UINT32_MAX)
        return;
    put_prefix(dump, DEBUG_INFO, bytes);
    put_u64(dump, method->addr);
    put_u64(dump, method->line_count);
    for (size_t i = 0; i < method->line_count; i++) {
        const char *file = method->lines[i].file; /* perf 6.1 knows no short form of the same one */
        put_u64(dump, method->lines[i].addr);
        put_u32(dump, method->lines[i].line);
        put_u32(dump, 0); /* discriminator */
        output_write(dump->out, file, strlen(file) + 1);
    }
}

void jit_dump_add(struct jit_dump *dump, const struct jit_dump_method *method)
{
    struct buffer name;
    buffer_init(&name, NAME_BYTES_MAX);
    shown_text_plain(&name, method->name);
    size_t bytes = LOAD_BYTES + name.size + 1 + method->code.size;
    if (method->code.size && bytes <= UINT32_MAX) {
        put_lines(dump, method);
        put_prefix(dump, CODE_LOAD, bytes);
        put_u32(dump, dump->pid);
        put_u32(dump, dump->pid); /* the thread, which perf does not look at */
        put_u64(dump, method->addr);
        put_u64(dump, method->addr);
        put_u64(dump, method->code.size);
        put_u64(dump, ++dump->written);
        output_span(dump->out, buffer_span(&name));
        output_char(dump->out, 0);
        output_span(dump->out, method->code);
    }
    buffer_done(&name);
}
