#include "symbolize/kernel_list_writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/fd_write.h"
#include "base/mem.h"
#include "base/replaced_file.h"
#include "symbolize/kernel_list.h"
#include "symbolize/symbol_cache.h"

/* Parts to be whose range is not known yet: of the kernel proper one, of a module all of its parts. */
struct kernel_list_writer {
    struct symbol_cache folder;
    struct replaced_file file;
    const struct kernel_boot *boot;
    bool *seen;  /* by module: its lines have begun. Later ones are of code that is gone */
    bool failed; /* nothing will be kept */
    struct kernel_list_part *parts;
    size_t part_count, part_capacity, open_count; /* the last `open_count` have no range yet */
    uint64_t offset;                              /* in the file, where `text` will be */
    struct buffer text;
    char group[64];                     /* the module as the lines have it, "" for the kernel proper */
    const struct kernel_module *module; /* NULL: of the kernel proper, or not to be kept */
    uint64_t core_start, core_last;     /* addresses of the kernel proper */
    uint64_t part_start;                /* of the part of it that is being made */
    uint64_t low, high;                 /* code of `module`; low > high: none yet */
};

struct kernel_list_writer *kernel_list_writer_begin(const char *path, const struct kernel_boot *boot)
{
    struct kernel_list_writer *w = mem_alloc(1, sizeof *w);
    w->boot = boot;
    w->seen = mem_alloc(boot->module_count, sizeof *w->seen);
    w->file.fd = -1;
    w->offset = KERNEL_LIST_HEAD_BYTES;
    w->core_start = UINT64_MAX;
    buffer_init(&w->text, KERNEL_LIST_PART_BYTES);
    static const uint8_t head[KERNEL_LIST_HEAD_BYTES];
    if (symbol_cache_open(path, true, &w->folder, NULL) &&
        replaced_file_open(w->folder.directory_fd, KERNEL_LIST_NAME, &w->file, NULL) &&
        fd_write(w->file.fd, span_of(head, sizeof head)))
        return w;
    kernel_list_writer_end(w, false);
    return NULL;
}

/* Makes a part of the text so far. */
static void end_part(struct kernel_list_writer *w)
{
    if (w->failed || w->text.size == 0)
        return;
    if (w->part_count == KERNEL_LIST_PARTS_MAX || !fd_write(w->file.fd, buffer_span(&w->text))) {
        w->failed = true;
        return;
    }
    w->parts = mem_grow(w->parts, &w->part_capacity, w->part_count + 1, sizeof *w->parts);
    w->parts[w->part_count++] = (struct kernel_list_part){
        .offset = w->offset,
        .size = w->text.size,
        .hash = kernel_list_hash(buffer_span(&w->text)),
    };
    w->open_count++;
    w->offset += w->text.size;
    buffer_clear(&w->text);
}

/* The open parts are for addresses [start, end); for none: they are dropped. */
static void close_parts(struct kernel_list_writer *w, uint64_t start, uint64_t end)
{
    if (start >= end)
        w->part_count -= w->open_count;
    for (size_t i = w->part_count - (start < end ? w->open_count : 0); i < w->part_count; i++) {
        w->parts[i].start = start;
        w->parts[i].end = end;
    }
    w->open_count = 0;
}

static void add_line(struct kernel_list_writer *w, struct span line)
{
    buffer_append(&w->text, line.data, line.size);
    buffer_u8(&w->text, '\n');
    w->failed |= w->text.failed;
}

/*
 * The symbols of the kernel proper are sorted and its image has nothing else in it. Those at one address are
 * in one part.
 */
static void take_core(struct kernel_list_writer *w, const struct kernel_symbol_line *symbol, struct span line)
{
    if (w->core_start == UINT64_MAX)
        w->core_start = w->core_last = w->part_start = symbol->addr;
    w->failed |= symbol->addr < w->core_last || w->group[0];
    if (symbol->addr > w->core_last && w->text.size + KERNEL_LIST_PART_BYTES / 4 > KERNEL_LIST_PART_BYTES) {
        end_part(w);
        close_parts(w, w->part_start, symbol->addr);
        w->part_start = symbol->addr;
    }
    w->core_last = symbol->addr;
    add_line(w, line);
}

static void end_group(struct kernel_list_writer *w)
{
    end_part(w);
    if (w->group[0])
        close_parts(w, w->low, w->high);
    else
        close_parts(w, w->part_start, w->core_last);
    w->low = UINT64_MAX;
    w->high = 0;
    w->module = NULL;
}

/* One that is inside the kernel's image, as it seems: what lies around it is not known. */
static bool is_apart(const struct kernel_list_writer *w, const struct kernel_module *m)
{
    return m->start > w->core_last || m->end < w->core_start;
}

/* NULL when its lines are not to be kept. */
static const struct kernel_module *find_module(struct kernel_list_writer *w, struct span name)
{
    for (size_t i = 0; i < w->boot->module_count; i++) {
        const struct kernel_module *m = &w->boot->modules[i];
        if (!span_equals(name, span_of(m->name, strlen(m->name))))
            continue;
        bool again = w->seen[i];
        w->seen[i] = true;
        return !again && is_apart(w, m) ? m : NULL;
    }
    return NULL;
}

static void begin_group(struct kernel_list_writer *w, struct span module)
{
    end_group(w);
    if (module.size >= sizeof w->group || module.size < 3 || module.data[0] != '[') {
        w->failed = true;
        return;
    }
    memcpy(w->group, module.data, module.size);
    w->group[module.size] = 0;
    w->module = find_module(w, span_of(module.data + 1, module.size - 2));
}

/*
 * Between two functions of a module there is only code of its own: since Linux 6.4 it has an allocation for
 * its code and others for its data. Behind the last one may be anything.
 */
static void take_of_module(struct kernel_list_writer *w, const struct kernel_symbol_line *symbol,
                           struct span line)
{
    const struct kernel_module *m = w->module;
    if (!m)
        return;
    bool code = symbol->type == 't' || symbol->type == 'T';
    if (code && symbol->addr >= m->start && symbol->addr < m->end) {
        w->low = symbol->addr < w->low ? symbol->addr : w->low;
        w->high = symbol->addr > w->high ? symbol->addr : w->high;
    }
    if (w->text.size + line.size + 1 > KERNEL_LIST_PART_BYTES)
        end_part(w);
    add_line(w, line);
}

static void take_line(struct kernel_list_writer *w, struct span line)
{
    struct kernel_symbol_line symbol;
    if (!kernel_symbol_line_read(line, &symbol))
        return;
    if (!symbol.module.size) {
        take_core(w, &symbol, line);
        return;
    }
    if (!span_equals(symbol.module, span_of(w->group, strlen(w->group))))
        begin_group(w, symbol.module);
    take_of_module(w, &symbol, line);
}

void kernel_list_writer_take(void *user, struct span lines)
{
    struct kernel_list_writer *w = user;
    const uint8_t *line = lines.data, *end = lines.data + lines.size;
    for (const uint8_t *newline;
         !w->failed && line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
        take_line(w, span_of(line, (size_t)(newline - line)));
}

static void append_index(const struct kernel_list_writer *w, struct buffer *out)
{
    for (size_t i = 0; i < w->part_count; i++) {
        const struct kernel_list_part *part = &w->parts[i];
        buffer_u64le(out, part->start);
        buffer_u64le(out, part->end);
        buffer_u64le(out, part->offset);
        buffer_u64le(out, part->size);
        buffer_u64le(out, part->hash);
    }
}

static void append_head(const struct kernel_list_writer *w, struct span index, struct buffer *out)
{
    buffer_string(out, KERNEL_LIST_MAGIC);
    buffer_u64le(out, w->boot->key[0]);
    buffer_u64le(out, w->boot->key[1]);
    buffer_u64le(out, w->offset);
    buffer_u32le(out, (uint32_t)w->part_count);
    buffer_u32le(out, 0);
    buffer_u64le(out, kernel_list_hash_index(buffer_span(out), index));
}

static bool write_index(struct kernel_list_writer *w)
{
    struct buffer head, index;
    buffer_init(&head, KERNEL_LIST_HEAD_BYTES);
    buffer_init(&index, (size_t)KERNEL_LIST_PARTS_MAX * KERNEL_LIST_ROW_BYTES);
    append_index(w, &index);
    append_head(w, buffer_span(&index), &head);
    bool ok = !head.failed && !index.failed && fd_write(w->file.fd, buffer_span(&index)) &&
              pwrite(w->file.fd, head.data, head.size, 0) == (ssize_t)head.size;
    buffer_done(&head);
    buffer_done(&index);
    return ok;
}

void kernel_list_writer_end(struct kernel_list_writer *w, bool whole)
{
    if (!w)
        return;
    if (whole)
        end_group(w);
    /* a kernel that hides its addresses shows zeros */
    bool keep = whole && !w->failed && w->part_count && w->core_last && write_index(w);
    if (!keep)
        replaced_file_abandon(&w->file);
    else if (replaced_file_commit(&w->file, NULL))
        symbol_cache_trim(&w->folder, UINT64_MAX); /* only what runs that were killed left */
    symbol_cache_close(&w->folder);
    buffer_done(&w->text);
    free(w->parts);
    free(w->seen);
    free(w);
}
