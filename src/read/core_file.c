#include "read/core_file.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/elf.h"

enum {
    HEADER_BYTES = 64,
    SEGMENT_BYTES = 56,
    SEGMENTS_AT_ONCE = 1024,
    EXTENDED_COUNT = 0xffff,
    TYPE_CORE = 4,
    SEGMENT_LOAD = 1,
    SEGMENT_NOTE = 4,
    SEGMENT_X = 1,
    SEGMENT_W = 2,
    SEGMENT_R = 4,
    NOTE_PRSTATUS = 1,
    NOTE_PRPSINFO = 3,
    NOTE_AUXV = 6,
    NOTE_FILE = 0x46494c45,
    NOTE_SIGINFO = 0x53494749,
    AUXILIARY_BYTES = 16, /* of an entry: its type and its value */
    AUXILIARY_END = 0,
    NOTE_HEADER_BYTES = 12,
    PRSTATUS_SIGNAL = 12,
    PRSTATUS_PID = 32,
    PRSTATUS_REGS = 112,
    X86_64_USER_REGS_BYTES = 27 * 8,
    ARM64_USER_REGS_BYTES = 34 * 8,
    PRPSINFO_PID = 24,
    PRPSINFO_NAME = 40,
    PRPSINFO_ARGS = 56,
    SIGINFO_CODE = 8,
    SIGINFO_ADDR = 16,
    SIGINFO_BYTES = 24,       /* of what is read */
    SIGINFO_OF_KERNEL = 0x80, /* no address is told from there on, and below 1 */
    NOTES_MAX = 1 << 20,
    FILE_NOTE_BYTES_MAX = 64 << 20,
    NAMES_BYTES_MAX = 64 << 20,
    FILE_NAME_MAX = 4096,
};

struct core_segment {
    uint32_t type, flags;
    uint64_t file_off, addr, file_bytes, memory_bytes;
};

struct opening {
    struct core_file *core;
    struct core_segment *loads; /* PT_LOAD, as they come */
    size_t load_count, load_capacity;
    struct core_segment *notes;
    size_t note_count, note_capacity;
    uint32_t notes_seen;
    struct memory_mapping *files; /* of NT_FILE */
    size_t file_count, file_capacity;
};

/* Reading. */

static size_t load_at(const struct core_file *core, uint64_t addr)
{
    size_t low = 0, high = core->load_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->loads[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void read_piece(const struct core_file *core, struct memory_piece *piece)
{
    piece->got = 0;
    for (size_t i = load_at(core, piece->addr); i < core->load_count && piece->got < piece->size; i++) {
        const struct core_load *load = &core->loads[i];
        uint64_t at = piece->addr + piece->got;
        if (at < piece->addr || load->start > at)
            return;
        uint64_t left = load->end - at;
        size_t part = piece->size - piece->got < left ? piece->size - piece->got : (size_t)left;
        if (!source_read(&core->file, load->file_off + (at - load->start),
                         (uint8_t *)piece->into + piece->got, part, NULL))
            return;
        piece->got += part;
    }
}

static void read_core(void *user, struct memory_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        read_piece(user, &pieces[i]);
}

/* Segments. */

static struct core_segment segment_of(struct cursor *c)
{
    struct core_segment s = { .type = cursor_u32le(c), .flags = cursor_u32le(c) };
    s.file_off = cursor_u64le(c);
    s.addr = cursor_u64le(c);
    cursor_skip(c, 8);
    s.file_bytes = cursor_u64le(c);
    s.memory_bytes = cursor_u64le(c);
    cursor_skip(c, 8);
    return s;
}

static void take_segment(struct opening *o, const struct core_segment *s)
{
    uint64_t end;
    if (s->type == SEGMENT_NOTE) {
        o->notes = mem_grow(o->notes, &o->note_capacity, o->note_count + 1, sizeof *o->notes);
        o->notes[o->note_count++] = *s;
    } else if (s->type == SEGMENT_LOAD && s->memory_bytes &&
               !__builtin_add_overflow(s->addr, s->memory_bytes, &end) && s->file_bytes <= s->memory_bytes) {
        o->loads = mem_grow(o->loads, &o->load_capacity, o->load_count + 1, sizeof *o->loads);
        o->loads[o->load_count++] = *s;
    }
}

/* More segments than the header has room to count: the first section's header does. */
static bool extended_count(const struct source *file, uint64_t sections_off, uint64_t *out, struct error *err)
{
    uint8_t bytes[4];
    if (sections_off > UINT64_MAX - 44 || !source_read(file, sections_off + 44, bytes, sizeof bytes, err))
        return false;
    *out = load_u32le(bytes);
    return true;
}

static bool read_segments(struct opening *o, struct error *err)
{
    const struct source *file = &o->core->file;
    uint8_t header[HEADER_BYTES];
    AUTO_FREE uint8_t *bytes = mem_alloc(SEGMENTS_AT_ONCE, SEGMENT_BYTES);
    if (file->size >= sizeof header && !source_read(file, 0, header, sizeof header, err))
        return false;
    if (file->size < sizeof header || !core_file_recognises(span_of(header, sizeof header)))
        return error_set(err, ERROR_INPUT, "not a core dump");
    o->core->machine = load_u16le(header + 18);
    if (o->core->machine != ELF_X86_64 && o->core->machine != ELF_AARCH64)
        return error_set(err, ERROR_UNSUPPORTED, "a core dump of another machine than x86-64 and arm64");
    uint64_t at = load_u64le(header + 32), count = load_u16le(header + 56);
    if (load_u16le(header + 54) != SEGMENT_BYTES)
        return error_set(err, ERROR_INPUT, "a core dump with segments of a strange size");
    if (count == EXTENDED_COUNT && !extended_count(file, load_u64le(header + 40), &count, err))
        return false;
    if (count > CORE_SEGMENTS_MAX)
        return error_set(err, ERROR_LIMIT, "a core dump with more than %d segments", CORE_SEGMENTS_MAX);
    while (count) {
        size_t part = count < SEGMENTS_AT_ONCE ? (size_t)count : SEGMENTS_AT_ONCE;
        if (at > file->size || !source_read(file, at, bytes, part * SEGMENT_BYTES, err))
            return error_set(err, ERROR_INPUT, "the core dump ends within its list of segments");
        struct cursor c = cursor_over(span_of(bytes, part * SEGMENT_BYTES));
        for (size_t i = 0; i < part; i++) {
            struct core_segment s = segment_of(&c);
            take_segment(o, &s);
        }
        at += part * SEGMENT_BYTES;
        count -= part;
    }
    return true;
}

static int compare_segments(const void *a, const void *b)
{
    uint64_t x = ((const struct core_segment *)a)->addr, y = ((const struct core_segment *)b)->addr;
    return (x > y) - (x < y);
}

/* What of the segments' bytes is in the file; one that overlaps the one before is left out. */
static void take_loads(struct opening *o)
{
    struct core_file *core = o->core;
    uint64_t size = core->file.size, end = 0;
    if (o->load_count)
        qsort(o->loads, o->load_count, sizeof *o->loads, compare_segments);
    core->loads = mem_alloc(o->load_count + 1, sizeof *core->loads);
    for (size_t i = 0; i < o->load_count; i++) {
        struct core_segment *s = &o->loads[i];
        uint64_t there = s->file_off < size ? size - s->file_off : 0;
        uint64_t bytes = s->file_bytes < there ? s->file_bytes : there;
        if (s->addr < end) {
            s->memory_bytes = 0;
            continue;
        }
        end = s->addr + s->memory_bytes;
        core->lost_bytes += s->file_bytes - bytes;
        if (bytes)
            core->loads[core->load_count++] = (struct core_load){ s->addr, s->addr + bytes, s->file_off };
    }
}

/* Notes. */

static size_t user_regs_bytes(const struct core_file *core)
{
    return core->machine == ELF_AARCH64 ? ARM64_USER_REGS_BYTES : X86_64_USER_REGS_BYTES;
}

static void take_status(struct core_file *core, const uint8_t *desc)
{
    core->threads =
        mem_grow(core->threads, &core->thread_capacity, core->thread_count + 1, sizeof *core->threads);
    struct core_thread *thread = &core->threads[core->thread_count++];
    *thread = (struct core_thread){ .tid = (pid_t)load_u32le(desc + PRSTATUS_PID),
                                    .signal = load_u16le(desc + PRSTATUS_SIGNAL) };
    memcpy(thread->user_regs, desc + PRSTATUS_REGS, user_regs_bytes(core));
}

static void take_process(struct core_file *core, const uint8_t *desc)
{
    core->pid = (pid_t)load_u32le(desc + PRPSINFO_PID);
    memcpy(core->name, desc + PRPSINFO_NAME, sizeof core->name - 1);
    memcpy(core->command_line, desc + PRPSINFO_ARGS, sizeof core->command_line - 1);
}

static bool is_of_address(uint16_t number, int32_t code)
{
    bool faults = number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;
    return faults && code > 0 && code < SIGINFO_OF_KERNEL;
}

static void take_fault(struct core_file *core, const uint8_t *desc)
{
    uint16_t number = (uint16_t)load_u32le(desc);
    core->fault = (struct core_fault){
        .signal = number,
        .has_addr = is_of_address(number, (int32_t)load_u32le(desc + SIGINFO_CODE)),
        .addr = load_u64le(desc + SIGINFO_ADDR),
    };
}

/* u64 count, u64 page size, count times {start, end, offset in pages}, then the names. */
static bool take_files(struct opening *o, struct span desc, struct error *err)
{
    struct cursor c = cursor_over(desc), names = c;
    uint64_t count = cursor_u64le(&c), page = cursor_u64le(&c);
    if (count > CORE_FILES_MAX)
        return error_set(err, ERROR_LIMIT, "a core dump of more than %d mapped files", CORE_FILES_MAX);
    cursor_seek(&names, 16 + 24 * count);
    for (uint64_t i = 0; i < count && cursor_ok(&c) && cursor_ok(&names); i++) {
        struct memory_mapping m = { .start = cursor_u64le(&c), .end = cursor_u64le(&c), .inode = 1 };
        uint64_t pages = cursor_u64le(&c);
        struct span name = cursor_zstring(&names);
        if (span_ends(name, " (deleted)"))
            name.size -= strlen(" (deleted)");
        if (!cursor_ok(&names) || m.start >= m.end || name.size > FILE_NAME_MAX ||
            __builtin_mul_overflow(pages, page, &m.file_off))
            continue;
        m.path = arena_string(&o->core->names, name);
        if (!m.path)
            return error_set(err, ERROR_LIMIT, "the names of a core dump's files are too long");
        o->files = mem_grow(o->files, &o->file_capacity, o->file_count + 1, sizeof *o->files);
        o->files[o->file_count++] = m;
    }
    o->core->has_files = o->file_count > 0;
    return true;
}

static bool take_note(struct opening *o, uint32_t type, uint64_t file_off, uint32_t bytes, struct error *err)
{
    struct core_file *core = o->core;
    uint8_t desc[PRSTATUS_REGS + CORE_USER_REGS_BYTES_MAX];
    size_t status_bytes = PRSTATUS_REGS + user_regs_bytes(core);
    if (type == NOTE_PRSTATUS && bytes >= status_bytes && core->thread_count < CORE_THREADS_MAX &&
        source_read(&core->file, file_off, desc, status_bytes, NULL)) {
        take_status(core, desc);
    } else if (type == NOTE_PRPSINFO && bytes >= PRPSINFO_ARGS + sizeof core->command_line - 1 &&
               source_read(&core->file, file_off, desc, PRPSINFO_ARGS + sizeof core->command_line - 1,
                           NULL)) {
        take_process(core, desc);
    } else if (type == NOTE_SIGINFO && !core->fault.signal && bytes >= SIGINFO_BYTES &&
               source_read(&core->file, file_off, desc, SIGINFO_BYTES, NULL)) {
        take_fault(core, desc);
    } else if (type == NOTE_AUXV && !core->auxiliary_bytes) {
        size_t size = bytes < sizeof core->auxiliary ? bytes : sizeof core->auxiliary;
        core->auxiliary_bytes = source_read(&core->file, file_off, core->auxiliary, size, NULL) ? size : 0;
    } else if (type == NOTE_FILE && !o->file_count) {
        struct buffer text;
        buffer_init(&text, FILE_NOTE_BYTES_MAX);
        bool ok =
            source_load(&core->file, file_off, bytes, &text, err) && take_files(o, buffer_span(&text), err);
        buffer_done(&text);
        return ok;
    }
    return true;
}

static bool read_notes(struct opening *o, const struct core_segment *segment, struct error *err)
{
    const struct source *file = &o->core->file;
    uint64_t at = segment->file_off, size = segment->file_bytes;
    while (size >= NOTE_HEADER_BYTES && o->notes_seen++ < NOTES_MAX) {
        uint8_t header[NOTE_HEADER_BYTES];
        if (!source_read(file, at, header, sizeof header, NULL))
            return true; /* cut: what came before counts */
        uint64_t name_bytes = ((uint64_t)load_u32le(header) + 3) & ~UINT64_C(3);
        uint32_t bytes = load_u32le(header + 4);
        uint64_t whole = NOTE_HEADER_BYTES + name_bytes + (((uint64_t)bytes + 3) & ~UINT64_C(3));
        if (!take_note(o, load_u32le(header + 8), at + NOTE_HEADER_BYTES + name_bytes, bytes, err))
            return false;
        if (whole > size)
            break;
        at += whole;
        size -= whole;
    }
    return true;
}

/* Mappings. */

static int compare_mappings(const void *a, const void *b)
{
    uint64_t x = ((const struct memory_mapping *)a)->start, y = ((const struct memory_mapping *)b)->start;
    return (x > y) - (x < y);
}

static void add_mapping(struct core_file *core, const struct memory_mapping *m)
{
    core->mappings =
        mem_grow(core->mappings, &core->mapping_capacity, core->mapping_count + 1, sizeof *core->mappings);
    core->mappings[core->mapping_count++] = *m;
}

static struct memory_mapping mapping_of(const struct core_segment *s, uint64_t start, uint64_t end)
{
    return (struct memory_mapping){
        .start = start,
        .end = end,
        .readable = s->flags & SEGMENT_R,
        .writable = s->flags & SEGMENT_W,
        .executable = s->flags & SEGMENT_X,
        .path = "",
    };
}

/*
 * A file's mapping has the rights of a segment in it. One of which nothing was dumped was not written to, and
 * may be code. So may one in a segment that begins before it: createdump joins neighbours, and tells the
 * rights of the first.
 */
static void add_file(struct core_file *core, const struct memory_mapping *file, const struct core_segment *s)
{
    struct memory_mapping m = *file;
    m.readable = !s || s->flags & SEGMENT_R;
    m.writable = s && s->flags & SEGMENT_W;
    m.executable = !s || s->flags & SEGMENT_X || s->addr < file->start;
    add_mapping(core, &m);
}

/* Files, and between them what segments there are. */
static void make_mappings(struct opening *o)
{
    struct core_file *core = o->core;
    size_t segment = 0;
    uint64_t done = 0; /* addresses below have their mapping */
    if (o->file_count)
        qsort(o->files, o->file_count, sizeof *o->files, compare_mappings);
    for (size_t i = 0; i <= o->file_count; i++) {
        const struct memory_mapping *file = i < o->file_count ? &o->files[i] : NULL;
        if (file && file->start < done)
            continue; /* overlaps the one before */
        uint64_t until = file ? file->start : UINT64_MAX;
        for (; segment < o->load_count; segment++) {
            const struct core_segment *s = &o->loads[segment];
            uint64_t end = s->addr + s->memory_bytes, start = s->addr < done ? done : s->addr;
            if (end <= done) /* in the file before */
                continue;
            if (start >= until)
                break;
            if (start < end) {
                struct memory_mapping m = mapping_of(s, start, end < until ? end : until);
                add_mapping(core, &m);
            }
            if (end > until)
                break;
        }
        if (!file)
            break;
        const struct core_segment *inside = segment < o->load_count ? &o->loads[segment] : NULL;
        add_file(core, file, inside && inside->memory_bytes && inside->addr < file->end ? inside : NULL);
        done = file->end;
    }
}

bool core_file_recognises(struct span start)
{
    return start.size >= 20 && memcmp(start.data, "\177ELF\2\1", 6) == 0 &&
           load_u16le(start.data + 16) == TYPE_CORE;
}

static bool open_whole(struct opening *o, struct error *err)
{
    struct core_file *core = o->core;
    if (!read_segments(o, err))
        return false;
    for (size_t i = 0; i < o->note_count; i++)
        if (!read_notes(o, &o->notes[i], err))
            return false;
    if (core->thread_count == 0)
        return error_set(err, ERROR_INPUT, "the core dump tells of no thread");
    take_loads(o);
    make_mappings(o);
    core->memory = (struct memory){ read_core, core, core->mappings, core->mapping_count, true };
    return true;
}

bool core_file_open(const struct source *file, struct core_file *out, struct error *err)
{
    *out = (struct core_file){ .file = *file };
    arena_init(&out->names, NAMES_BYTES_MAX);
    struct opening o = { .core = out };
    bool ok = open_whole(&o, err);
    free(o.loads);
    free(o.notes);
    free(o.files);
    if (!ok)
        core_file_close(out);
    return ok;
}

void core_file_close(struct core_file *core)
{
    free(core->threads);
    free(core->loads);
    free(core->mappings);
    arena_done(&core->names);
    *core = (struct core_file){ 0 };
}

size_t core_file_auxiliary_bytes(const struct core_file *core)
{
    size_t at = 0;
    while (at + AUXILIARY_BYTES <= core->auxiliary_bytes && load_u64le(core->auxiliary + at) != AUXILIARY_END)
        at += AUXILIARY_BYTES;
    return at;
}

uint64_t core_file_auxiliary(const struct core_file *core, enum core_auxiliary type)
{
    size_t size = core_file_auxiliary_bytes(core);
    for (size_t at = 0; at < size; at += AUXILIARY_BYTES)
        if (load_u64le(core->auxiliary + at) == type)
            return load_u64le(core->auxiliary + at + AUXILIARY_BYTES / 2);
    return 0;
}
