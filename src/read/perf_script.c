#include "read/perf_script.h"

#include <string.h>

#include "base/units.h"

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    uint8_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static struct span span_from(struct span s, size_t from)
{
    return span_part(s, from, s.size - from);
}

static struct span trim(struct span s)
{
    while (s.size && is_blank(s.data[0]))
        s = span_from(s, 1);
    while (s.size && is_blank(s.data[s.size - 1]))
        s.size--;
    return s;
}

/* The next word at *pos, which moves behind it; empty at the end. */
static struct span next_word(struct span line, size_t *pos)
{
    size_t from = *pos;
    while (from < line.size && is_blank(line.data[from]))
        from++;
    size_t to = from;
    while (to < line.size && !is_blank(line.data[to]))
        to++;
    *pos = to;
    return span_part(line, from, to - from);
}

/* The word that ends at *end, which moves to its start. */
static struct span last_word(struct span line, size_t *end)
{
    size_t to = *end;
    while (to > 0 && is_blank(line.data[to - 1]))
        to--;
    size_t from = to;
    while (from > 0 && !is_blank(line.data[from - 1]))
        from--;
    *end = from;
    return span_part(line, from, to - from);
}

static bool parse_hex(struct span text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || text.size > 16)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_value(text.data[i]);
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *out = value;
    return true;
}

/* "4711", "4711/4712"; "-1" and "-1/-1" of a task that has gone */
static bool parse_ids(struct span word, struct perf_script_event *e)
{
    const uint8_t *slash = word.size ? memchr(word.data, '/', word.size) : NULL;
    size_t first = slash ? (size_t)(slash - word.data) : word.size;
    uint64_t a, b;
    if (span_equals(word, span_of("-1", 2)) || span_equals(word, span_of("-1/-1", 5))) {
        e->pid = e->tid = 0;
        e->has_both_ids = true;
        return true;
    }
    if (!units_parse_digits(span_part(word, 0, first), &a) || a > UINT32_MAX)
        return false;
    b = a;
    if (slash && (!units_parse_digits(span_from(word, first + 1), &b) || b > UINT32_MAX))
        return false;
    e->pid = (uint32_t)a;
    e->tid = (uint32_t)b;
    e->has_both_ids = slash != NULL;
    return true;
}

/* "[001]" */
static bool parse_cpu(struct span word, uint32_t *cpu)
{
    uint64_t value;
    if (word.size < 3 || word.data[0] != '[' || word.data[word.size - 1] != ']' ||
        !units_parse_digits(span_part(word, 1, word.size - 2), &value) || value > UINT16_MAX)
        return false;
    *cpu = (uint32_t)value;
    return true;
}

/* "1734.152189:" in seconds, with 6 or (--ns) 9 places */
static bool parse_time(struct span word, uint64_t *time_ns)
{
    const uint8_t *point = word.size ? memchr(word.data, '.', word.size) : NULL;
    uint64_t seconds, part;
    if (!point || word.data[word.size - 1] != ':')
        return false;
    size_t whole = (size_t)(point - word.data);
    struct span places = span_part(word, whole + 1, word.size - whole - 2);
    if (places.size > 9 || !units_parse_digits(span_part(word, 0, whole), &seconds) ||
        !units_parse_digits(places, &part) || seconds > UINT64_MAX / 2000000000)
        return false;
    for (size_t i = places.size; i < 9; i++)
        part *= 10;
    *time_ns = seconds * 1000000000 + part;
    return true;
}

/* A dso may itself hold parentheses: "(/memfd:doublemapper (deleted))". */
static struct span split_dso(struct span *text)
{
    struct span t = trim(*text);
    if (t.size < 2 || t.data[t.size - 1] != ')')
        return (struct span){ 0 };
    size_t depth = 0;
    for (size_t i = t.size; i-- > 0;) {
        if (t.data[i] == ')')
            depth++;
        else if (t.data[i] == '(' && --depth == 0) {
            /* "f(int)" is a name, not a dso */
            if (i > 0 && !is_blank(t.data[i - 1]))
                break;
            *text = trim(span_part(t, 0, i));
            return span_part(t, i + 1, t.size - i - 2);
        }
    }
    return (struct span){ 0 };
}

static struct span without_offset(struct span name)
{
    uint64_t offset;
    for (size_t i = name.size; i-- > 0;) {
        if (name.data[i] != '+')
            continue;
        struct span tail = span_from(name, i + 1);
        bool is_offset = tail.size > 2 && tail.data[0] == '0' && tail.data[1] == 'x' &&
                         parse_hex(span_from(tail, 2), &offset);
        return is_offset ? span_part(name, 0, i) : name;
    }
    return name;
}

static bool parse_frame(struct span line, bool need_addr, struct perf_script_frame *out)
{
    struct perf_script_frame f = { 0 };
    size_t pos = 0;
    struct span word = next_word(line, &pos);
    if (word.size == 0)
        return false;
    bool has_addr = parse_hex(word, &f.addr);
    if (!has_addr && need_addr)
        return false;
    struct span rest = trim(has_addr ? span_from(line, pos) : line);
    f.dso = split_dso(&rest);
    /* the dso may be all there is: perf script -F ip,dso */
    f.name = f.dso.size && rest.size && rest.data[0] == '(' && rest.data + 1 == f.dso.data
                 ? (struct span){ 0 }
                 : without_offset(rest);
    if (span_equals(f.name, span_of("[unknown]", 9)))
        f.name = (struct span){ 0 };
    *out = f;
    return true;
}

/* "comm pid [cpu]", what stands before the time. */
static bool parse_who(struct span text, struct perf_script_event *e)
{
    size_t end = text.size;
    struct span word = last_word(text, &end);
    for (unsigned extra = 0; extra < 2; extra++) {
        uint32_t cpu;
        if (parse_ids(word, e)) {
            e->comm = trim(span_part(text, 0, end));
            return true;
        }
        if (parse_cpu(word, &cpu)) {
            e->cpu = cpu;
            e->has_cpu = true;
        }
        /* else flags, such as those of -F misc */
        word = last_word(text, &end);
    }
    bool ok = parse_ids(word, e);
    e->comm = trim(span_part(text, 0, end));
    return ok;
}

/* "period event: frame", what stands behind the time. */
static bool parse_what(struct span text, struct perf_script_event *e)
{
    size_t pos = 0;
    struct span word = next_word(text, &pos);
    if (units_parse_digits(word, &e->period)) {
        e->has_period = true;
        word = next_word(text, &pos);
    }
    if (word.size == 0)
        return true;
    if (word.size < 2 || word.data[word.size - 1] != ':')
        return false;
    e->event = span_part(word, 0, word.size - 1);
    struct perf_script_frame f;
    /* a tracepoint prints its fields there */
    if (parse_frame(span_from(text, pos), true, &f) && (f.name.size || f.dso.size) && f.addr > 0xfff) {
        e->has_frame = true;
        e->frame = f;
    }
    return true;
}

static bool parse_event_with_time(struct span line, struct perf_script_event *e)
{
    for (size_t pos = 0; pos < line.size;) {
        size_t before = pos;
        struct span word = next_word(line, &pos);
        if (!parse_time(word, &e->time_ns))
            continue;
        e->has_time = true;
        return parse_who(span_part(line, 0, before), e) && parse_what(span_from(line, pos), e);
    }
    return false;
}

/* "comm pid/tid [cpu] period event:" */
static bool parse_event_without_time(struct span line, struct perf_script_event *e)
{
    for (size_t pos = 0; pos < line.size;) {
        size_t before = pos;
        struct span word = next_word(line, &pos);
        if (word.size == 0 || !parse_ids(word, e))
            continue;
        size_t behind = pos;
        if (parse_cpu(next_word(line, &behind), &e->cpu)) {
            e->has_cpu = true;
            pos = behind;
        }
        if (parse_what(span_from(line, pos), e)) {
            e->comm = trim(span_part(line, 0, before));
            return true;
        }
        e->has_period = e->has_cpu = false;
    }
    return false;
}

/* "comm pid time: PERF_RECORD_MMAP2 ...": of "PERF_RECORD_LOST lost 7" how many, too. */
static bool parse_record(struct span line, struct perf_script_event *e)
{
    static const char begins[] = "PERF_RECORD_", loss[] = "PERF_RECORD_LOST";
    struct span before = { 0 };
    for (size_t pos = 0; pos < line.size;) {
        struct span word = next_word(line, &pos);
        if (span_begins(word, begins)) {
            size_t end = line.size;
            e->has_time = parse_time(before, &e->time_ns);
            if (!span_begins(word, loss) || !units_parse_digits(last_word(line, &end), &e->lost))
                e->lost = 0;
            return true;
        }
        before = word;
    }
    return false;
}

enum perf_script_line perf_script_read_line(struct span line, struct perf_script_event *out_event,
                                            struct perf_script_frame *out_frame)
{
    struct perf_script_event e = { 0 };
    struct span text = trim(line);
    if (text.size == 0)
        return PERF_SCRIPT_BLANK;
    if (line.data[0] == '#')
        return PERF_SCRIPT_COMMENT;
    if (line.data[0] == '\t')
        return parse_frame(line, false, out_frame) ? PERF_SCRIPT_FRAME : PERF_SCRIPT_OTHER;
    if (parse_record(line, &e)) {
        *out_event = e;
        return PERF_SCRIPT_RECORD;
    }
    e = (struct perf_script_event){ 0 };
    if (parse_event_with_time(line, &e)) {
        *out_event = e;
        return PERF_SCRIPT_EVENT;
    }
    if (line.data[0] == ' ' && parse_frame(line, true, out_frame))
        return PERF_SCRIPT_FRAME;
    e = (struct perf_script_event){ 0 };
    if (!parse_event_without_time(line, &e))
        return PERF_SCRIPT_OTHER;
    *out_event = e;
    return PERF_SCRIPT_EVENT;
}

static struct span next_line(struct span text, size_t *pos)
{
    size_t from = *pos;
    const uint8_t *newline = memchr(text.data + from, '\n', text.size - from);
    size_t to = newline ? (size_t)(newline - text.data) : text.size;
    *pos = newline ? to + 1 : to;
    return span_part(text, from, to - from);
}

bool perf_script_recognises(struct span head)
{
    enum { LINES_MAX = 200 };
    struct perf_script_event e = { 0 };
    struct perf_script_frame f;
    size_t pos = 0;
    bool has_event = false;
    if (head.size == 0 || memchr(head.data, 0, head.size))
        return false;
    for (unsigned i = 0; i < LINES_MAX && pos < head.size; i++) {
        switch (perf_script_read_line(next_line(head, &pos), &e, &f)) {
        case PERF_SCRIPT_EVENT:
            if (e.has_time)
                return true;
            /* "main 12" may also be a folded stack: only frames below it decide */
            has_event = true;
            break;
        case PERF_SCRIPT_FRAME:
            return has_event;
        case PERF_SCRIPT_RECORD:
            return true;
        case PERF_SCRIPT_OTHER:
            return false;
        default:
            break;
        }
    }
    return false;
}
