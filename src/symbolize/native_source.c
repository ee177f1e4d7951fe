#include "symbolize/native_source.h"

#include <stdlib.h>

#include "base/intern.h"
#include "base/mem.h"
#include "read/debug_info.h"
#include "symbolize/demangle.h"

enum { TEXT_BYTES_MAX = 64 << 20 };

_Static_assert(SOURCE_FRAMES_MAX == DEBUG_INLINED_MAX + 1, "they and the function itself");

struct source_line {
    uint32_t file; /* of `texts`; 0: not known */
    uint32_t line;
};

struct source_search {
    struct debug_sections sections;
    const uint64_t *addrs;
    size_t count;
    struct source_line *lines; /* by address: the innermost function's */
    bool *answered;
    struct intern texts;
    uint32_t *shown; /* by text: how a function of that name is shown; 0: not known yet */
    size_t shown_capacity, shown_count;
    struct buffer demangled;
    native_source_fn *answer;
    void *user;
};

static void take_line(void *user, size_t index, const char *file, uint32_t line)
{
    struct source_search *s = user;
    s->lines[index] = (struct source_line){ intern_cstr(&s->texts, file), line };
}

static const char *shown_function(struct source_search *s, const char *name)
{
    uint32_t id = intern_cstr(&s->texts, name);
    if (id >= s->shown_count) {
        s->shown = mem_grow(s->shown, &s->shown_capacity, id + 1, sizeof *s->shown);
        while (s->shown_count <= id)
            s->shown[s->shown_count++] = 0;
    }
    if (!s->shown[id]) {
        bool mangled = demangle(name, &s->demangled);
        s->shown[id] = mangled ? intern_cstr(&s->texts, (const char *)s->demangled.data) : id;
    }
    return intern_text(&s->texts, s->shown[id]);
}

static struct source_frame frame_at(const struct source_search *s, const struct source_line *place)
{
    const char *file = intern_text(&s->texts, place->file);
    return (struct source_frame){ .file = file[0] ? file : NULL, .line = file[0] ? place->line : 0 };
}

/* A function is where the next inner one was called; the innermost where the code is. */
static void take_inlined(void *user, size_t index, const struct debug_inlined *inlined, size_t count)
{
    struct source_search *s = user;
    struct source_frame frames[SOURCE_FRAMES_MAX];
    frames[0] = frame_at(s, &s->lines[index]);
    for (size_t i = 0; i < count; i++) {
        bool known = inlined[i].call_line != 0;
        frames[i].function = shown_function(s, inlined[i].function);
        frames[i + 1] = (struct source_frame){
            .file = known ? inlined[i].call_file : NULL,
            .line = inlined[i].call_line,
        };
    }
    s->answered[index] = true;
    s->answer(s->user, index, frames, count + 1);
}

static void find_lines(struct source_search *s, const uint64_t *programs, size_t program_count)
{
    debug_line_find(&s->sections.lines, programs, program_count, s->addrs, s->count, take_line, s, NULL);
}

/* Only units with code at the addresses are read. */
static void find_by_units(struct source_search *s)
{
    struct debug_units units;
    if (!debug_units_find(&s->sections, s->addrs, s->count, &units, NULL))
        return;
    uint64_t *programs = mem_alloc(units.count + 1, sizeof *programs);
    find_lines(s, programs, debug_units_line_programs(&units, &s->sections, programs));
    debug_info_find(&s->sections, &units, s->addrs, take_inlined, s, NULL);
    free(programs);
    debug_units_done(&units);
}

static void search_done(struct source_search *s)
{
    debug_sections_close(&s->sections);
    intern_done(&s->texts);
    buffer_done(&s->demangled);
    free(s->shown);
    free(s->lines);
    free(s->answered);
}

bool native_source_has(const struct elf *e)
{
    return elf_section_named(e, ".debug_line") != NULL;
}

void native_source_find(const struct elf *e, const uint64_t *addrs, size_t count, native_source_fn *answer,
                        void *user)
{
    if (!native_source_has(e))
        return;
    struct source_search s = { .addrs = addrs,
                               .count = count,
                               .lines = mem_alloc(count + 1, sizeof *s.lines),
                               .answered = mem_alloc(count + 1, sizeof *s.answered),
                               .answer = answer,
                               .user = user };
    intern_init(&s.texts, TEXT_BYTES_MAX);
    buffer_init(&s.demangled, DEMANGLED_BYTES_MAX + 1);
    debug_sections_open(e, &s.sections);
    if (s.sections.info.size)
        find_by_units(&s);
    else
        find_lines(&s, NULL, 0);
    for (size_t i = 0; i < count; i++)
        if (!s.answered[i] && s.lines[i].line) {
            struct source_frame frame = frame_at(&s, &s.lines[i]);
            answer(user, i, &frame, 1);
        }
    search_done(&s);
}
