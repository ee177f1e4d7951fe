#include "cli/option.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"

static void *value_at(void *values, size_t offset)
{
    return (uint8_t *)values + offset;
}

static bool is_last(const struct option_spec *spec)
{
    return spec->kind == 0;
}

/* An option found in a table or in one of its groups, with the struct its offset counts from. */
struct found {
    const struct option_spec *spec;
    void *values;
};

static struct found find(const struct option_spec *table, void *values, const char *name, size_t name_size,
                         char letter)
{
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        if (spec->kind == OPTION_GROUP) {
            struct found inner = find(spec->group, value_at(values, spec->offset), name, name_size, letter);
            if (inner.spec)
                return inner;
            continue;
        }
        if (spec->kind == OPTION_HEADING)
            continue;
        bool same = letter ? spec->letter == letter
                           : spec->name && strlen(spec->name) == name_size &&
                                 memcmp(spec->name, name, name_size) == 0;
        if (same)
            return (struct found){ spec, values };
    }
    return (struct found){ 0 };
}

static bool refuse(const char *option, const char *text, const char *wanted, struct error *err)
{
    error_set(err, ERROR_USAGE, "'%s' is no value for %s", text, option);
    return error_hint(err, "%s", wanted);
}

static bool read_switch(const char *text, uint8_t *out)
{
    bool on = !text || strcasecmp(text, "true") == 0;
    if (!on && strcasecmp(text, "false") != 0)
        return false;
    *out = on ? SWITCH_ON : SWITCH_OFF;
    return true;
}

/* `option` is how the user wrote it, for messages. */
static bool store(struct found found, const char *option, const char *text, struct error *err)
{
    void *slot = value_at(found.values, found.spec->offset);
    uint64_t number;
    switch (found.spec->kind) {
    case OPTION_FLAG:
        *(bool *)slot = true;
        return true;
    case OPTION_STRING:
        *(const char **)slot = text;
        return true;
    case OPTION_STRING_LIST: {
        struct option_list *list = slot;
        list->items = mem_grow(list->items, &list->capacity, list->count + 2, sizeof *list->items);
        list->items[list->count++] = text;
        return true;
    }
    case OPTION_COUNT:
        if (!units_parse_count(text, &number) || number > UINT32_MAX)
            return refuse(option, text, "give a whole number, for example 20", err);
        *(uint32_t *)slot = (uint32_t)number;
        return true;
    case OPTION_DURATION:
        if (!units_parse_duration(text, slot))
            return refuse(option, text, "give a duration such as 500ms, 10s, 2m, 1h or 00:01:30", err);
        return true;
    case OPTION_TIME_LIMIT:
        if (!units_parse_duration(text, &number) || (number == 0 && !strchr(text, ':')))
            return refuse(option, text,
                          "give a duration such as 500ms, 10s, 2m, 1h or 00:01:30; without one it goes on "
                          "until Ctrl-C",
                          err);
        *(uint64_t *)slot = number;
        return true;
    case OPTION_SIZE:
        if (!units_parse_size(text, slot))
            return refuse(option, text, "give a size such as 64k, 16M or 2G", err);
        return true;
    case OPTION_RATE:
        if (!units_parse_rate(text, slot))
            return refuse(option, text, "give a rate in Hz, for example 99 or 999", err);
        return true;
    case OPTION_SWITCH:
        if (!read_switch(text, slot))
            return refuse(option, text, "give true or false", err);
        return true;
    case OPTION_GROUP:
    case OPTION_HEADING:
        break;
    }
    abort();
}

/* Edit distance with transpositions, given up beyond `limit`. */
static size_t distance(const char *a, const char *b, size_t limit)
{
    enum { WORD_MAX = 40 };
    size_t rows[3][WORD_MAX + 1];
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > WORD_MAX || b_size > WORD_MAX)
        return limit + 1;
    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_size % 3][b_size];
}

const char *option_suggest(const char *typed, const char *const *words, size_t count)
{
    size_t size = strlen(typed);
    size_t limit = size < 5 ? 1 : size < 8 ? 2 : 3;
    const char *best = NULL;
    for (size_t i = 0; i < count; i++) {
        /* a beginning of the word is a guess too, when nothing is closer */
        if (!best && size >= 3 && strncmp(words[i], typed, size) == 0)
            best = words[i];
        size_t away = distance(typed, words[i], limit);
        if (away <= limit) {
            limit = away ? away - 1 : 0;
            best = words[i];
        }
    }
    return best;
}

enum { NAMES_MAX = 128 };

static size_t list_names(const struct option_spec *table, const char **names, size_t count)
{
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        if (spec->kind == OPTION_GROUP)
            count = list_names(spec->group, names, count);
        else if (spec->kind != OPTION_HEADING && spec->name && spec->help && count < NAMES_MAX)
            names[count++] = spec->name;
    }
    return count;
}

static bool unknown(const struct option_spec *table, const char *option, struct error *err)
{
    const char *names[NAMES_MAX];
    size_t count = list_names(table, names, 0);
    AUTO_FREE char *typed = mem_copy_string(option + strspn(option, "-"));
    typed[strcspn(typed, "=:")] = 0;
    error_set(err, ERROR_USAGE, "there is no option '%.*s'", (int)strcspn(option, "="), option);
    const char *close = strlen(typed) > 1 ? option_suggest(typed, names, count) : NULL;
    if (close)
        return error_hint(err, "did you mean --%s?", close);
    return error_hint(err, "--help lists the options");
}

struct parser {
    const struct option_spec *table;
    void *values;
    const char **argv;
    int argc;
    int at; /* the word under way */
    struct error *err;
};

/* The next word, when it says which way. */
static const char *switch_value(struct parser *p)
{
    uint8_t value;
    bool has = p->at + 1 < p->argc && read_switch(p->argv[p->at + 1], &value);
    return has ? p->argv[++p->at] : NULL;
}

/* Whether a word is an option, alone: no value, unless it is attached with `=`. */
static bool is_option(const struct parser *p, const char *word)
{
    if (word[0] != '-' || !word[1])
        return false;
    if (word[1] == '-')
        return !word[2] || find(p->table, p->values, word + 2, strcspn(word + 2, "=:"), 0).spec;
    return !word[2] && find(p->table, p->values, NULL, 0, word[1]).spec;
}

static bool take_value(struct parser *p, struct found found, const char *option, const char *attached)
{
    if (attached)
        return store(found, option, attached, p->err);
    if (found.spec->kind == OPTION_SWITCH)
        return store(found, option, switch_value(p), p->err);
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : "--";
    if (is_option(p, next)) {
        error_set(p->err, ERROR_USAGE, "%s needs a value", option);
        return strcmp(next, "--") == 0 ? error_hint(p->err, "--help says which")
                                       : error_hint(p->err, "if '%s' is it: %s=%s", next, option, next);
    }
    return store(found, option, p->argv[++p->at], p->err);
}

/* --name, --name=value, --name:value, --name value */
static bool parse_long(struct parser *p, const char *word)
{
    size_t name_size = strcspn(word + 2, "=:");
    const char *attached = word[2 + name_size] ? word + 2 + name_size + 1 : NULL;
    struct found found = find(p->table, p->values, word + 2, name_size, 0);
    if (!found.spec)
        return unknown(p->table, word, p->err);
    char option[64];
    snprintf(option, sizeof option, "--%s", found.spec->name);
    if (found.spec->kind != OPTION_FLAG)
        return take_value(p, found, option, attached);
    if (attached)
        return error_set(p->err, ERROR_USAGE, "%s takes no value", option);
    return store(found, option, NULL, p->err);
}

/* -a, -ab for flags, -n20, -n 20, -n=20, -n:20 */
static bool parse_short(struct parser *p, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        char option[3] = { '-', *letter, 0 };
        struct found found = find(p->table, p->values, NULL, 0, *letter);
        if (!found.spec)
            return unknown(p->table, letter == word + 1 ? word : option, p->err);
        if (found.spec->kind != OPTION_FLAG) {
            const char *attached = letter[1] ? letter + 1 + (letter[1] == '=' || letter[1] == ':') : NULL;
            return take_value(p, found, option, attached);
        }
        if (!store(found, option, NULL, p->err))
            return false;
    }
    return true;
}

bool option_parse(const struct option_spec *table, int argc, const char **argv, void *values,
                  struct option_rest *out, struct error *err)
{
    struct parser p = { .table = table, .values = values, .argv = argv, .argc = argc, .err = err };
    struct option_rest rest = { .args = argv };
    for (p.at = 0; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        if (strcmp(word, "--") == 0) {
            rest.command = argv + p.at + 1;
            rest.command_count = (size_t)(argc - p.at - 1);
            break;
        }
        if (strcmp(word, "--help") == 0 ||
            (strcmp(word, "-h") == 0 && !find(table, values, NULL, 0, 'h').spec)) {
            rest.help = true;
            break;
        }
        if (word[0] != '-' || !word[1])
            rest.args[rest.arg_count++] = word;
        else if (!(word[1] == '-' ? parse_long(&p, word) : parse_short(&p, word)))
            return false;
    }
    *out = rest;
    return true;
}

void option_values_done(const struct option_spec *table, void *values)
{
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        void *slot = value_at(values, spec->offset);
        if (spec->kind == OPTION_GROUP)
            option_values_done(spec->group, slot);
        if (spec->kind != OPTION_STRING_LIST)
            continue;
        free(((struct option_list *)slot)->items);
        *(struct option_list *)slot = (struct option_list){ 0 };
    }
}

static const char *value_name(const struct option_spec *spec)
{
    static const char *const names[] = {
        [OPTION_COUNT] = "N",           [OPTION_STRING] = "TEXT",         [OPTION_STRING_LIST] = "TEXT",
        [OPTION_DURATION] = "DURATION", [OPTION_TIME_LIMIT] = "DURATION", [OPTION_SIZE] = "SIZE",
        [OPTION_RATE] = "HZ",           [OPTION_HEADING] = NULL,
    };
    return spec->value ? spec->value : names[spec->kind];
}

/* Breaks `help` between words so that it stays within 100 columns. */
static void append_wrapped(struct buffer *out, const char *help, size_t indent)
{
    enum { COLUMNS = 100 };
    size_t column = indent;
    for (const char *word = help; *word;) {
        size_t size = strcspn(word, " ");
        if (column > indent && column + 1 + size > COLUMNS) {
            buffer_format(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buffer_u8(out, ' ');
            column++;
        }
        buffer_append(out, word, size);
        column += size;
        word += size;
        word += strspn(word, " ");
    }
    buffer_u8(out, '\n');
}

void option_help(const struct option_spec *table, struct buffer *out)
{
    enum { INDENT = 28 };
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        if (spec->kind == OPTION_GROUP) {
            option_help(spec->group, out);
            continue;
        }
        if (!spec->help)
            continue;
        if (spec->kind == OPTION_HEADING) {
            buffer_format(out, "\n%s:\n", spec->help);
            continue;
        }
        size_t start = out->size;
        buffer_string(out, "  ");
        if (spec->letter)
            buffer_format(out, "-%c%s", spec->letter, spec->name ? ", " : "");
        else
            buffer_string(out, "    ");
        if (spec->name)
            buffer_format(out, "--%s", spec->name);
        if (value_name(spec))
            buffer_format(out, " %s", value_name(spec));
        size_t used = out->size - start;
        if (used + 2 > INDENT)
            buffer_format(out, "\n%*s", INDENT, "");
        else
            buffer_format(out, "%*s", (int)(INDENT - used), "");
        append_wrapped(out, spec->help, INDENT);
    }
}

void option_complete(const struct option_spec *table, const char *prefix, struct buffer *out)
{
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        if (spec->kind == OPTION_GROUP) {
            option_complete(spec->group, prefix, out);
            continue;
        }
        if (spec->kind == OPTION_HEADING || !spec->help || !spec->name)
            continue;
        AUTO_FREE char *word = mem_format("--%s", spec->name);
        if (strncmp(word, prefix, strlen(prefix)) == 0)
            buffer_format(out, "%s\n", word);
    }
}

/* Of one with several spellings only the one that is listed. */
static bool is_given(const struct option_spec *spec, const void *value, const void *otherwise)
{
    static const size_t sizes[] = {
        [OPTION_FLAG] = sizeof(bool),           [OPTION_COUNT] = sizeof(uint32_t),
        [OPTION_STRING] = sizeof(const char *), [OPTION_DURATION] = sizeof(uint64_t),
        [OPTION_TIME_LIMIT] = sizeof(uint64_t), [OPTION_SIZE] = sizeof(uint64_t),
        [OPTION_RATE] = sizeof(uint64_t),       [OPTION_SWITCH] = sizeof(uint8_t),
    };
    static const uint64_t zero = 0;
    if (!spec->help)
        return false;
    if (spec->kind == OPTION_STRING_LIST)
        return ((const struct option_list *)value)->count != 0;
    return spec->kind != OPTION_HEADING &&
           memcmp(value, otherwise ? otherwise : &zero, sizes[spec->kind]) != 0;
}

static bool is_among(const char *name, const char *names)
{
    size_t size = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += size)
        if ((at == names || at[-1] == ' ') && (at[size] == ' ' || !at[size]))
            return true;
    return false;
}

const struct option_spec *option_given_besides(const struct option_spec *table, const char *names,
                                               const void *values, const void *defaults)
{
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        const uint8_t *value = (const uint8_t *)values + spec->offset;
        const uint8_t *otherwise = defaults ? (const uint8_t *)defaults + spec->offset : NULL;
        const struct option_spec *inner =
            spec->kind == OPTION_GROUP ? option_given_besides(spec->group, names, value, otherwise)
            : is_given(spec, value, otherwise) && !is_among(spec->name, names) ? spec
                                                                               : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

const struct option_spec *option_find(const struct option_spec *table, const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    char letter = word[1] == '-' ? 0 : word[1];
    if (letter && word[2])
        return NULL;
    for (const struct option_spec *spec = table; !is_last(spec); spec++) {
        if (spec->kind == OPTION_GROUP) {
            const struct option_spec *inner = option_find(spec->group, word);
            if (inner)
                return inner;
        } else if (spec->kind != OPTION_HEADING &&
                   (letter ? spec->letter == letter : spec->name && strcmp(spec->name, word + 2) == 0)) {
            return spec;
        }
    }
    return NULL;
}
