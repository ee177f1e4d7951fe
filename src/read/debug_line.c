#include "read/debug_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "read/debug_form.h"

enum {
    LENGTH_BYTES_MAX = 12,
    UNIT_BYTES_MAX = 128 << 20,
    VERSION_MIN = 2,
    VERSION_MAX = 5,
    FORMATS_MAX = 16,
    CONTENT_PATH = 1,
    CONTENT_DIRECTORY = 2,
    OP_EXTENDED = 0,
    OP_COPY,
    OP_ADVANCE_PC,
    OP_ADVANCE_LINE,
    OP_SET_FILE,
    OP_CONST_ADD_PC = 8,
    OP_FIXED_ADVANCE_PC = 9,
    EXTENDED_END = 1,
    EXTENDED_ADDRESS = 2,
    STANDARD_MAX = 255,
    /* entries and addresses looked at, which is not bounded by the size of the section */
    STEPS_MAX = 1 << 26,
};

/* A table of a version 5 header: its columns, then its rows. */
struct entry_table {
    struct {
        uint64_t content, form;
    } formats[FORMATS_MAX];
    unsigned format_count;
    uint64_t count;
    struct cursor rows;
};

struct unit {
    struct cursor program;
    bool is_64;
    unsigned version;
    uint8_t instruction_bytes, line_range, opcode_base;
    int8_t line_base;
    uint8_t operands[STANDARD_MAX]; /* of standard opcodes, from 1 on */
    /* before version 5: lists of strings and of files, each from 1 on */
    struct cursor directories, files;
    struct entry_table directory_table, file_table; /* version 5: from 0 on */
};

/* A row of the table that the program makes. */
struct row {
    uint64_t addr, file;
    uint32_t line;
};

struct search {
    struct span strings;
    const uint64_t *addrs;
    size_t count;
    bool *answered;
    debug_line_fn *answer;
    void *user;
    uint64_t steps;
    char path[DEBUG_LINE_PATH_MAX];
};

/* As much as a path can take. */
static struct span strings_from(struct span strings, uint64_t offset)
{
    uint64_t left = offset < strings.size ? strings.size - offset : 0;
    return span_part(strings, offset, left < DEBUG_LINE_PATH_MAX ? left : DEBUG_LINE_PATH_MAX);
}

/* Of a value that stands in `c`, or in the strings that several tables share. */
static struct span text_of(const struct cursor *c, struct debug_value value, struct span strings)
{
    struct cursor text = cursor_over(c->bytes);
    if (value.kind == DEBUG_VALUE_TEXT)
        cursor_seek(&text, value.number);
    else if (value.kind == DEBUG_VALUE_LINE_STRING)
        text = cursor_over(strings_from(strings, value.number));
    else
        return (struct span){ 0 };
    return cursor_zstring(&text);
}

/* A row of a table: a file or directory, in whose directory it lies. A row takes bytes, whatever its forms
 * say. */
static struct span read_entry(struct cursor *c, const struct entry_table *table, bool is_64,
                              struct span strings, uint64_t *out_directory)
{
    const struct debug_encoding how = { .version = VERSION_MAX, .is_64 = is_64 };
    struct span path = { 0 };
    size_t start = c->pos;
    for (unsigned i = 0; i < table->format_count; i++) {
        struct debug_value value = debug_form_read(c, table->formats[i].form, 0, how);
        if (table->formats[i].content == CONTENT_PATH)
            path = text_of(c, value, strings);
        else if (table->formats[i].content == CONTENT_DIRECTORY)
            *out_directory = value.number;
    }
    c->failed |= c->pos == start;
    return path;
}

/* Leaves the cursor behind the table: rows are of any length. */
static bool read_table(struct cursor *c, bool is_64, struct entry_table *out)
{
    out->format_count = cursor_u8(c);
    if (out->format_count > FORMATS_MAX || !cursor_ok(c))
        return false;
    for (unsigned i = 0; i < out->format_count; i++) {
        out->formats[i].content = cursor_varuint64(c);
        out->formats[i].form = cursor_varuint64(c);
    }
    out->count = cursor_varuint64(c);
    out->rows = *c;
    uint64_t directory, i = 0;
    while (out->format_count && i < out->count && cursor_left(c)) {
        read_entry(c, out, is_64, (struct span){ 0 }, &directory);
        i++;
    }
    return cursor_ok(c) && i == out->count;
}

/* Up to the empty string that ends the list. */
static void skip_strings(struct cursor *c)
{
    while (cursor_zstring(c).size)
        ;
}

/* The header; `c` is over the unit without its length. */
static bool read_header(struct cursor c, struct unit *u)
{
    u->version = cursor_u16le(&c);
    if (u->version < VERSION_MIN || u->version > VERSION_MAX)
        return false;
    if (u->version >= 5)
        cursor_skip(&c, 2); /* sizes of an address and of a segment */
    uint64_t header_bytes = debug_offset_read(&c, u->is_64);
    u->program = c;
    cursor_skip(&u->program, header_bytes);
    u->instruction_bytes = cursor_u8(&c);
    if (u->version >= 4)
        cursor_skip(&c, 1); /* operations of an instruction: more than one only on machines we do not know */
    cursor_skip(&c, 1);     /* whether rows begin statements */
    u->line_base = (int8_t)cursor_u8(&c);
    u->line_range = cursor_u8(&c);
    u->opcode_base = cursor_u8(&c);
    for (unsigned i = 1; i < u->opcode_base; i++)
        u->operands[i - 1] = cursor_u8(&c);
    if (!cursor_ok(&c) || u->line_range == 0 || u->opcode_base == 0)
        return false;
    u->directories = c;
    if (u->version >= 5)
        return read_table(&c, u->is_64, &u->directory_table) && read_table(&c, u->is_64, &u->file_table) &&
               cursor_ok(&u->program);
    skip_strings(&c);
    u->files = c;
    return cursor_ok(&c) && cursor_ok(&u->program);
}

static struct span table_path(struct search *s, const struct unit *u, const struct entry_table *table,
                              uint64_t index, uint64_t *out_directory)
{
    struct cursor c = table->rows;
    struct span path = { 0 };
    *out_directory = 0;
    if (index >= table->count)
        return path;
    for (uint64_t i = 0; i <= index && cursor_left(&c); i++, s->steps++)
        path = read_entry(&c, table, u->is_64, i == index ? s->strings : (struct span){ 0 }, out_directory);
    return cursor_ok(&c) ? path : (struct span){ 0 };
}

/* Before version 5: entry `index`, from 1 on, of a list that an empty string ends. */
static struct span list_path(struct search *s, struct cursor c, uint64_t index, bool is_file,
                             uint64_t *out_directory)
{
    for (uint64_t i = 1; cursor_left(&c); i++, s->steps++) {
        struct span name = cursor_zstring(&c);
        if (name.size == 0)
            break;
        if (is_file) {
            *out_directory = cursor_varuint64(&c);
            cursor_varuint64(&c); /* when it was changed */
            cursor_varuint64(&c); /* its size */
        }
        if (i == index)
            return name;
    }
    return (struct span){ 0 };
}

static struct span directory_of(struct search *s, const struct unit *u, uint64_t index)
{
    uint64_t ignored;
    if (u->version >= 5)
        return table_path(s, u, &u->directory_table, index, &ignored);
    return index ? list_path(s, u->directories, index, false, &ignored) : (struct span){ 0 };
}

static bool append(char path[DEBUG_LINE_PATH_MAX], size_t *used, struct span text)
{
    if (text.size >= DEBUG_LINE_PATH_MAX - *used)
        return false;
    if (text.size)
        memcpy(path + *used, text.data, text.size);
    *used += text.size;
    path[*used] = 0;
    return true;
}

/* Behind its directory, which may lie in the compiler's. */
static bool spell_path(struct search *s, const struct unit *u, uint64_t file)
{
    uint64_t index = 0;
    size_t used = 0;
    struct span name = u->version >= 5 ? table_path(s, u, &u->file_table, file, &index)
                                       : list_path(s, u->files, file, true, &index);
    static const uint8_t slash[] = { '/' };
    struct span parts[3] = { { 0 }, { 0 }, name };
    if (name.size == 0)
        return false;
    if (name.data[0] != '/')
        parts[1] = directory_of(s, u, index);
    if (u->version >= 5 && parts[1].size && parts[1].data[0] != '/' && index)
        parts[0] = directory_of(s, u, 0);
    for (unsigned i = 0; i < 3; i++)
        if (parts[i].size &&
            (!append(s->path, &used, parts[i]) || (i < 2 && !append(s->path, &used, span_of(slash, 1)))))
            return false;
    return true;
}

/* Answers what lies from `from` up to the next row. */
static void answer_range(struct search *s, const struct unit *u, const struct row *from, uint64_t end,
                         size_t *next)
{
    for (; *next < s->count && s->addrs[*next] < end && s->steps < STEPS_MAX; ++*next, s->steps++) {
        if (s->answered[*next] || s->addrs[*next] < from->addr || from->line == 0 ||
            !spell_path(s, u, from->file))
            continue;
        s->answered[*next] = true;
        s->answer(s->user, *next, s->path, from->line);
    }
}

/* Where a program stands. */
struct machine {
    struct row now, last;
    bool in_sequence; /* `last` is a row of it */
    bool dead;        /* the sequence is of code that the linker left out */
    size_t next;
};

static void emit_row(struct machine *m, struct search *s, const struct unit *u, bool ends)
{
    if (!m->in_sequence) {
        m->dead = m->now.addr == 0;
        m->next = sorted_from(s->addrs, s->count, m->now.addr);
    } else if (!m->dead && m->now.addr > m->last.addr) {
        answer_range(s, u, &m->last, m->now.addr, &m->next);
    }
    m->last = m->now;
    m->in_sequence = !ends;
    if (ends)
        m->now = (struct row){ .file = 1, .line = 1 };
}

static void run_extended(struct machine *m, struct search *s, struct unit *u)
{
    uint64_t size = cursor_varuint64(&u->program);
    struct cursor c = cursor_over(cursor_bytes(&u->program, size));
    uint8_t opcode = cursor_u8(&c);
    if (opcode == EXTENDED_END)
        emit_row(m, s, u, true);
    else if (opcode == EXTENDED_ADDRESS && cursor_left(&c) == 8)
        m->now.addr = cursor_u64le(&c);
}

static void run_standard(struct machine *m, struct search *s, struct unit *u, uint8_t opcode)
{
    struct cursor *c = &u->program;
    switch (opcode) {
    case OP_COPY:
        emit_row(m, s, u, false);
        break;
    case OP_ADVANCE_PC:
        m->now.addr += cursor_varuint64(c) * u->instruction_bytes;
        break;
    case OP_ADVANCE_LINE:
        m->now.line += (uint32_t)cursor_sleb64(c);
        break;
    case OP_SET_FILE:
        m->now.file = cursor_varuint64(c);
        break;
    case OP_CONST_ADD_PC:
        m->now.addr += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->instruction_bytes;
        break;
    case OP_FIXED_ADVANCE_PC:
        m->now.addr += cursor_u16le(c);
        break;
    default:
        for (unsigned i = 0; i < u->operands[opcode - 1]; i++)
            cursor_varuint64(c);
    }
}

static void run_program(struct search *s, struct unit *u)
{
    struct machine m = { .now = { .file = 1, .line = 1 } };
    while (cursor_left(&u->program) && s->steps < STEPS_MAX) {
        uint8_t opcode = cursor_u8(&u->program);
        if (opcode >= u->opcode_base) {
            unsigned special = opcode - u->opcode_base;
            m.now.addr += (uint64_t)(special / u->line_range) * u->instruction_bytes;
            m.now.line += (uint32_t)(u->line_base + (int)(special % u->line_range));
            emit_row(&m, s, u, false);
        } else if (opcode == OP_EXTENDED) {
            run_extended(&m, s, u);
        } else {
            run_standard(&m, s, u, opcode);
        }
    }
}

/*
 * Opens the unit at `offset`, with its bytes in `memory`. False for one that is left out; *out_size is 0 when
 * not even the next one can be found.
 */
static bool open_unit(const struct elf_bytes *line, uint64_t offset, struct buffer *memory, struct unit *u,
                      uint64_t *out_size)
{
    *u = (struct unit){ 0 };
    *out_size = 0;
    uint64_t left = offset < line->size ? line->size - offset : 0;
    struct cursor c =
        cursor_over(elf_bytes_get(line, offset, left < LENGTH_BYTES_MAX ? left : LENGTH_BYTES_MAX, memory));
    uint64_t size = debug_length_read(&c, &u->is_64);
    if (!cursor_ok(&c) || size > left - c.pos)
        return false;
    *out_size = c.pos + size;
    return read_header(cursor_over(elf_bytes_get(line, offset + c.pos, size, memory)), u);
}

/* All units, or those at `programs`. */
static bool run_units(struct search *s, const struct elf_bytes *line, const uint64_t *programs,
                      size_t program_count)
{
    struct buffer memory;
    bool ok = true;
    uint64_t at = 0, size = 0;
    buffer_init(&memory, UNIT_BYTES_MAX);
    for (size_t i = 0; ok && s->steps < STEPS_MAX; i++, at += size) {
        struct unit u;
        if (programs ? i == program_count : at >= line->size)
            break;
        if (programs) {
            at = programs[i];
            size = 0;
        }
        if (open_unit(line, at, &memory, &u, &size))
            run_program(s, &u);
        ok = size != 0;
    }
    buffer_done(&memory);
    return ok;
}

bool debug_line_find(const struct debug_line_sections *sections, const uint64_t *programs,
                     size_t program_count, const uint64_t *addrs, size_t count, debug_line_fn *answer,
                     void *user, struct error *err)
{
    struct search *s = mem_alloc(1, sizeof *s);
    *s = (struct search){ .strings = sections->strings,
                          .addrs = addrs,
                          .count = count,
                          .answered = mem_alloc(count + 1, sizeof(bool)),
                          .answer = answer,
                          .user = user };
    bool ok = run_units(s, &sections->line, programs, program_count);
    bool cut = s->steps >= STEPS_MAX;
    free(s->answered);
    free(s);
    if (cut)
        return error_set(err, ERROR_LIMIT, ".debug_line asks for too much work");
    return ok || error_set(err, ERROR_INPUT, ".debug_line breaks off");
}

bool debug_line_path(const struct debug_line_sections *sections, uint64_t program, uint64_t file,
                     char path[DEBUG_LINE_PATH_MAX], uint64_t *work)
{
    struct search *s = mem_alloc(1, sizeof *s);
    struct buffer memory;
    struct unit u;
    uint64_t size;
    buffer_init(&memory, UNIT_BYTES_MAX);
    s->strings = sections->strings;
    bool found = open_unit(&sections->line, program, &memory, &u, &size) && spell_path(s, &u, file);
    *work += u.program.pos + 1; /* its header */
    if (memory.size)            /* it had to be read from the file */
        *work += size;
    if (found)
        memcpy(path, s->path, strlen(s->path) + 1);
    buffer_done(&memory);
    free(s);
    return found;
}
