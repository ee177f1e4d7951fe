/*
 * verb_addr: `clrperf addr`, what lives at an address of a process or its core dump, and who says so.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cli/address_facts.h"
#include "cli/core_notes.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "read/il_map.h"

enum { ADDRESSES_MAX = 1 << 20, ADDRESS_ARGS_MAX = 4096, INPUT_BYTES_MAX = 64 << 20 };

struct addr_values {
    struct target_options target;
    const char *core;
    bool raw_names, json;
};

static const struct option_spec addr_options[] = {
    { "core", 0, OPTION_STRING, offsetof(struct addr_values, core),
      "of the process that left this core dump (kernel, gcore, createdump)", "FILE" },
    { "raw-names", 0, OPTION_FLAG, offsetof(struct addr_values, raw_names),
      "the runtime's own spelling of names" },
    { "json", 0, OPTION_FLAG, offsetof(struct addr_values, json), "print JSON instead of text" },
    { .kind = OPTION_GROUP,
      .offset = offsetof(struct addr_values, target),
      .group = one_target_option_specs },
    { 0 },
};

struct address_list {
    uint64_t *items;
    size_t count, capacity;
};

/* Hex, with or without 0x. */
static bool add_address(struct address_list *list, const char *text, struct error *err)
{
    char *end = NULL;
    errno = 0;
    uint64_t addr = isxdigit((unsigned char)text[0]) ? strtoull(text, &end, 16) : 0;
    if (!end || *end || errno)
        return error_set(err, ERROR_USAGE, "'%.64s' is no address: hex digits, with or without 0x", text);
    if (list->count == ADDRESSES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d addresses", ADDRESSES_MAX);
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = addr;
    return true;
}

static bool read_addresses(struct address_list *list, struct error *err)
{
    AUTO_FREE char *line = NULL;
    size_t capacity = 0, read = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, stdin)) >= 0) {
        read += (size_t)size;
        if (read > INPUT_BYTES_MAX)
            return error_set(err, ERROR_LIMIT, "more than %d bytes of addresses", INPUT_BYTES_MAX);
        char *rest = NULL;
        for (char *word = strtok_r(line, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest))
            if (!add_address(list, word, err))
                return false;
    }
    return !ferror(stdin) || error_system(err, errno, "cannot read addresses from standard input");
}

static bool gather_addresses(const struct verb_call *call, struct address_list *list, struct error *err)
{
    for (size_t i = 0; i < call->arg_count; i++) {
        bool all = strcmp(call->args[i], "-") == 0;
        if (!(all ? read_addresses(list, err) : add_address(list, call->args[i], err)))
            return false;
    }
    return call->arg_count > 0 ||
           error_set(err, ERROR_USAGE,
                     "which address? clrperf addr -p PID 7f12a3b4c5d6; - reads them from stdin");
}

static void member(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_quoted(w, text);
}

static void number(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    json_key(w, key);
    if (known)
        json_u64(w, value);
    else
        json_absent(w);
}

/* The innermost first. */
static void write_inlined(struct json_writer *w, const struct address_facts *facts,
                          const struct address_fact *row)
{
    json_key(w, "inlined");
    json_begin_array(w);
    for (uint32_t i = 0; i < row->inlined_count; i++) {
        const struct trace_inlined *inlined = address_facts_inlined(facts, row, i);
        json_begin_object(w);
        member(w, "function", address_facts_function(facts, inlined));
        member(w, "file", inlined->line ? address_facts_text(facts, inlined->file) : NULL);
        number(w, "line", inlined->line != 0, inlined->line);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_row(struct json_writer *w, const struct address_facts *facts,
                      const struct address_fact *row)
{
    bool named = row->resolver != RESOLVER_NONE;
    json_begin_object(w);
    json_key(w, "address");
    json_hex(w, row->addr);
    member(w, "mapping", address_facts_text(facts, row->mapping));
    member(w, "image", address_facts_text(facts, row->image));
    member(w, "build_id", address_facts_text(facts, row->build_id));
    member(w, "mvid", address_facts_text(facts, row->mvid));
    member(w, "kind", named ? code_kind_name((enum code_kind)row->kind) : NULL);
    member(w, "function", address_facts_text(facts, row->function));
    member(w, "module", address_facts_text(facts, row->module));
    member(w, "tier", code_tier_name((enum code_tier)row->tier));
    number(w, "offset", row->has_offset, row->offset);
    number(w, "il_offset", row->il_off < IL_EPILOG, row->il_off);
    member(w, "file", address_facts_text(facts, row->file));
    number(w, "line", row->line != 0, row->line);
    member(w, "resolver", named ? resolver_name((enum resolver)row->resolver) : NULL);
    write_inlined(w, facts, row);
    json_end_object(w);
}

static bool print_json(const struct address_facts *facts, struct error *err)
{
    struct json_writer w;
    struct buffer buffer;
    stdout_json(&w, &buffer);
    json_begin_object(&w);
    member(&w, "schema", "clrperf.addr/1");
    json_key(&w, "rows");
    json_begin_array(&w);
    for (size_t i = 0; i < facts->count; i++)
        write_row(&w, facts, &facts->rows[i]);
    json_end_array(&w);
    json_end_object(&w);
    bool ok = json_finish(&w, err);
    buffer_done(&buffer);
    return ok;
}

static void append_text(struct buffer *out, const char *before, const char *text)
{
    if (!text)
        return;
    buffer_string(out, before);
    utf8_escape(out, span_of(text, strlen(text)));
}

/* "~": the line is the method's first. */
static void append_line(struct buffer *out, const struct address_facts *facts, const struct address_fact *row)
{
    static const char *const marks[] = { "epilog", "prolog" };
    const char *file = address_facts_text(facts, row->file);
    if (!file && row->il_off == IL_NO_MAPPING)
        return;
    append_text(out, "    source    ", file ? file : "line not known");
    if (file)
        buffer_format(out, ":%s%" PRIu32, row->line_of_method ? "~" : "", row->line);
    if (row->il_off < IL_EPILOG)
        buffer_format(out, ", IL offset 0x%" PRIx32, row->il_off);
    else if (row->il_off != IL_NO_MAPPING)
        buffer_format(out, ", %s", marks[row->il_off - IL_EPILOG]);
    buffer_u8(out, '\n');
}

static void append_inlined(struct buffer *out, const struct address_facts *facts,
                           const struct address_fact *row)
{
    for (uint32_t i = 0; i < row->inlined_count; i++) {
        const struct trace_inlined *inlined = address_facts_inlined(facts, row, i);
        append_text(out, "    inlined   ", address_facts_function(facts, inlined));
        if (inlined->line) {
            append_text(out, " in ", address_facts_text(facts, inlined->file));
            buffer_format(out, ":%" PRIu32, inlined->line);
        }
        buffer_u8(out, '\n');
    }
}

static void append_row(struct buffer *out, const struct address_facts *facts, const struct address_fact *row)
{
    const char *function = address_facts_text(facts, row->function);
    buffer_format(out, "0x%" PRIx64, row->addr);
    append_text(out, "  ", function ? function : "[unknown]");
    if (row->has_offset)
        buffer_format(out, "+0x%" PRIx64, row->offset);
    buffer_u8(out, '\n');
    if (row->resolver != RESOLVER_NONE) {
        append_text(out, "    code      ", code_kind_name((enum code_kind)row->kind));
        append_text(out, ", ", code_tier_name((enum code_tier)row->tier));
        append_text(out, ", of ", address_facts_text(facts, row->module));
        append_text(out, "; named by ", resolver_name((enum resolver)row->resolver));
        buffer_u8(out, '\n');
    }
    append_inlined(out, facts, row);
    append_line(out, facts, row);
    const char *nothing = facts->census.core ? "not in the dump" : "none";
    append_text(out, "    mapping   ", row->mapping ? address_facts_text(facts, row->mapping) : nothing);
    append_text(out, "  ", address_facts_text(facts, row->image));
    append_text(out, "\n    build id  ", address_facts_text(facts, row->build_id));
    append_text(out, "\n    MVID      ", address_facts_text(facts, row->mvid));
    buffer_u8(out, '\n');
}

static bool print_text(const struct address_facts *facts, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < facts->count; i++)
        append_row(&out, facts, &facts->rows[i]);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

/* Only where jitted code was asked for and nobody could tell. */
static void warn(const struct target *target, const struct code_census *census)
{
    if (target->runtime == RUNTIME_CORECLR && census->told_by == RESOLVER_NONE)
        message_warning("jitted methods have no names: %s; %s%s%s", census->memory_error.what,
                        census->runtime_error.what, census->runtime_error.hint[0] ? "; " : "",
                        census->runtime_error.hint);
}

static bool print(const struct addr_values *values, const struct address_facts *facts, struct error *err)
{
    return values->json ? print_json(facts, err) : print_text(facts, err);
}

/* Nobody can name what was left out, as small dumps do with code that was on no stack. */
static void warn_left_out(const struct address_facts *facts)
{
    size_t count = 0;
    uint8_t byte;
    for (size_t i = 0; i < facts->count; i++)
        count += facts->rows[i].resolver == RESOLVER_NONE &&
                 !memory_read(&facts->census.core->memory, facts->rows[i].addr, &byte, 1);
    if (count)
        message_warning(
            "%zu of %zu addresses are not in this dump, which may leave code out that was on no stack; "
            "createdump --full and gcore keep it",
            count, facts->count);
}

static bool addr_core(const struct addr_values *values, const struct address_list *addrs, struct error *err)
{
    struct core_target core;
    struct address_facts facts;
    const struct address_question question = { .addrs = addrs->items,
                                               .count = addrs->count,
                                               .raw_names = values->raw_names };
    if (!core_target_open(values->core, &core, err))
        return false;
    address_facts_find_core(&core, &question, &facts);
    core_notes_warn(&core, facts.census.told_by == RESOLVER_NONE ? &facts.census.memory_error : NULL);
    warn_left_out(&facts);
    bool ok = print(values, &facts, err);
    address_facts_done(&facts);
    core_target_close(&core);
    return ok;
}

static bool addr_target(const struct addr_values *values, const struct target *target,
                        const struct address_list *addrs, struct error *err)
{
    struct address_facts facts;
    const struct address_question question = { .addrs = addrs->items,
                                               .count = addrs->count,
                                               .raw_names = values->raw_names };
    if (!address_facts_find(target, &question, &facts, err))
        return false;
    warn(target, &facts.census);
    bool ok = print(values, &facts, err);
    address_facts_done(&facts);
    return ok;
}

static bool addr_run(struct verb_call *call, struct error *err)
{
    const struct addr_values *values = call->values;
    struct target_query query = target_options_query(&values->target);
    struct target_list list;
    struct address_list addrs = { 0 };
    if (values->core && !target_query_is_empty(&query))
        return error_set(err, ERROR_USAGE, "--core and a running process exclude each other");
    query.one = true;
    bool ok = gather_addresses(call, &addrs, err);
    if (ok && values->core) {
        ok = addr_core(values, &addrs, err);
    } else if (ok && (ok = target_select(&query, &list, err))) {
        ok = addr_target(values, &list.items[0], &addrs, err);
        target_list_done(&list);
    }
    free(addrs.items);
    return ok;
}

const struct verb verb_addr = {
    .name = "addr",
    .args = "ADDRESS...",
    .summary = "say what lives at addresses of a process or a core dump",
    .details =
        "  Addresses are hex, with or without 0x; - reads them from standard input, separated by white "
        "space.\n"
        "  Native, precompiled and jitted code, stubs and the kernel: the function, the source line where "
        "there "
        "is\n"
        "  a PDB or DWARF (:~LINE is where the method begins), the IL offset, and which resolver named it.",
    .options = addr_options,
    .values_size = sizeof(struct addr_values),
    .args_max = ADDRESS_ARGS_MAX,
    .run = addr_run,
};
