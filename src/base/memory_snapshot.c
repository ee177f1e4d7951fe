#include "base/memory_snapshot.h"

#include <string.h>

static const char magic[8] = "CLRPMEM1";
enum { ARENA_BYTES_MAX = 16 << 20, MAPPING_BYTES_MIN = 35, RUN_BYTES_MIN = 12 };

/* How many of the bytes at `addr` one run has, or lie before the next run of the same mapping and are zero.
 */
static size_t read_some(const struct memory_snapshot *s, uint64_t addr, uint8_t *into, size_t size)
{
    const struct memory_mapping *mapping = memory_mapping_at(&s->memory, addr);
    if (!mapping)
        return 0;
    if (size > mapping->end - addr)
        size = (size_t)(mapping->end - addr);
    for (size_t i = 0; i < s->run_count; i++) {
        const struct memory_run *run = &s->runs[i];
        uint64_t offset = addr - run->addr;
        if (addr >= run->addr && offset < run->bytes.size) {
            size_t part = run->bytes.size - (size_t)offset;
            if (part > size)
                part = size;
            memcpy(into, run->bytes.data + offset, part);
            return part;
        }
        if (run->addr > addr && run->addr - addr < size)
            size = (size_t)(run->addr - addr);
    }
    memset(into, 0, size);
    return size;
}

static void read_snapshot(void *user, struct memory_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *p = &pieces[i];
        p->got = 0;
        for (size_t part; p->got < p->size; p->got += part) {
            part = read_some(user, p->addr + p->got, (uint8_t *)p->into + p->got, p->size - p->got);
            if (part == 0)
                break;
        }
    }
}

static void read_mapping(struct cursor *c, struct arena *arena, struct memory_mapping *m)
{
    m->start = cursor_u64le(c);
    m->end = cursor_u64le(c);
    m->file_off = cursor_u64le(c);
    m->inode = cursor_u64le(c);
    uint8_t flags = cursor_u8(c);
    m->readable = flags & 1;
    m->writable = flags & 2;
    m->executable = flags & 4;
    m->shared = flags & 8;
    m->path = arena_string(arena, cursor_bytes(c, cursor_u16le(c)));
    if (!m->path || m->start >= m->end)
        c->failed = true;
}

static bool read_tables(struct cursor *c, struct memory_snapshot *s)
{
    struct span head = cursor_bytes(c, sizeof magic);
    uint32_t mappings = cursor_u32le(c), runs = cursor_u32le(c);
    if (head.size != sizeof magic || memcmp(head.data, magic, sizeof magic) != 0 ||
        mappings > cursor_left(c) / MAPPING_BYTES_MIN || runs > cursor_left(c) / RUN_BYTES_MIN)
        return false;
    struct memory_mapping *table = arena_array(&s->arena, mappings, sizeof *table);
    s->runs = arena_array(&s->arena, runs, sizeof *s->runs);
    if (!table || !s->runs)
        return false;
    for (uint32_t i = 0; i < mappings && cursor_ok(c); i++) {
        read_mapping(c, &s->arena, &table[i]);
        if (i && table[i].start < table[i - 1].end)
            return false;
    }
    for (uint32_t i = 0; i < runs && cursor_ok(c); i++) {
        s->runs[i].addr = cursor_u64le(c);
        s->runs[i].bytes = cursor_bytes(c, cursor_u32le(c));
    }
    s->run_count = runs;
    s->memory.mappings = table;
    s->memory.mapping_count = mappings;
    return cursor_ok(c);
}

bool memory_snapshot_open(struct span bytes, struct memory_snapshot *out, struct error *err)
{
    struct cursor c = cursor_over(bytes);
    *out = (struct memory_snapshot){ .memory = { .read = read_snapshot, .user = out } };
    arena_init(&out->arena, ARENA_BYTES_MAX);
    if (read_tables(&c, out))
        return true;
    memory_snapshot_done(out);
    return error_set(err, ERROR_INPUT, "the memory snapshot is malformed (at byte %zu)", c.pos);
}

void memory_snapshot_done(struct memory_snapshot *snapshot)
{
    arena_done(&snapshot->arena);
    snapshot->runs = NULL;
    snapshot->run_count = 0;
}
