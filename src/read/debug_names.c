#include "read/debug_names.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "read/debug_units.h"
#include "read/elf.h"

enum {
    REFERENCES_MAX = 16, /* from instance to function; they could lead in a circle */
    UNITS_MAX = 1 << 22,
};

void debug_names_init(struct debug_names *names, const struct debug_sections *sections)
{
    *names = (struct debug_names){ .sections = sections };
    debug_unit_init(&names->other);
    buffer_init(&names->text, ELF_NAME_MAX);
}

void debug_names_done(struct debug_names *names)
{
    debug_unit_done(&names->other);
    buffer_done(&names->text);
    free(names->starts);
}

static bool unit_holds(const struct debug_unit *unit, uint64_t offset)
{
    return offset >= unit->offset && offset - unit->offset < unit->size_bytes;
}

static void list_units(struct debug_names *names)
{
    for (uint64_t at = 0; at < names->sections->info.size && names->start_count < UNITS_MAX;
         at += names->other.size_bytes, names->steps++) {
        debug_unit_peek(&names->other, names->sections, at);
        if (!names->other.size_bytes)
            break;
        names->starts =
            mem_grow(names->starts, &names->start_capacity, names->start_count + 1, sizeof *names->starts);
        names->starts[names->start_count++] = at;
    }
    names->steps += names->other.abbrevs.looked;
}

/* The unit around an offset: `unit`, or the other one; NULL when there is none. */
static struct debug_unit *unit_around(struct debug_names *names, struct debug_unit *unit, uint64_t offset)
{
    if (unit_holds(unit, offset))
        return unit;
    if (names->other_open && unit_holds(&names->other, offset))
        return &names->other;
    if (!names->starts)
        list_units(names);
    if (!names->starts)
        return NULL;
    size_t next = sorted_from(names->starts, names->start_count, offset + 1);
    names->other_open = next && debug_unit_open(&names->other, names->sections, names->starts[next - 1]);
    names->steps += names->other.size_bytes / 64;
    return names->other_open && unit_holds(&names->other, offset) ? &names->other : NULL;
}

static bool read_entry(struct debug_unit *unit, uint64_t offset, struct debug_entry *out)
{
    struct cursor c = unit->entries;
    c.pos = 0;
    cursor_seek(&c, offset - unit->offset);
    const struct debug_abbrev *abbrev = debug_unit_next(unit, &c);
    if (!abbrev)
        return false;
    debug_unit_read(unit, &c, abbrev, out);
    return cursor_ok(&c);
}

const char *debug_names_find(struct debug_names *names, struct debug_unit *unit, uint64_t offset)
{
    bool found = false;
    for (unsigned i = 0; i < REFERENCES_MAX; i++, names->steps++) {
        struct debug_entry entry;
        unit = unit_around(names, unit, offset);
        if (!unit || !read_entry(unit, offset, &entry))
            break;
        struct debug_value linkage = entry.fields[DEBUG_LINKAGE_NAME];
        if (linkage.kind != DEBUG_VALUE_NONE) {
            found = debug_unit_text(unit, names->sections, linkage, &names->text);
            break;
        }
        if (!found)
            found = debug_unit_text(unit, names->sections, entry.fields[DEBUG_NAME], &names->text);
        struct debug_value origin = entry.fields[DEBUG_ORIGIN];
        if (origin.kind != DEBUG_VALUE_ENTRY && origin.kind != DEBUG_VALUE_ENTRY_ANYWHERE)
            break;
        offset = origin.number + (origin.kind == DEBUG_VALUE_ENTRY ? unit->offset : 0);
    }
    return found ? (const char *)names->text.data : NULL;
}
