#include "analyse/frame_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "clr/method_name.h"

enum { FRAME_TEXT_BYTES = 1 << 20 };

static const char *text_keep(struct frame_table *table, struct span text)
{
    const char *copy = arena_string(&table->profile->arena, text);
    table->is_full |= !copy;
    return copy ? copy : "";
}

const char *frame_table_text(struct frame_table *table, struct span raw)
{
    buffer_clear(&table->text);
    utf8_escape(&table->text, raw);
    return text_keep(table, buffer_span(&table->text));
}

const char *frame_table_string(struct frame_table *table, uint32_t id)
{
    const char *text = trace_string(table->trace, id);
    return frame_table_text(table, span_of(text, strlen(text)));
}

struct frame_key {
    struct span name, module;
    const struct profile_frame *like; /* with lines: the line */
};

static bool line_same(const struct profile_frame *a, const struct profile_frame *b)
{
    return a->line == b->line && a->line_of_method == b->line_of_method && a->inlined == b->inlined &&
           (a->file == b->file || (a->file && b->file && strcmp(a->file, b->file) == 0));
}

static bool frame_same(const void *profile, uint32_t id, const void *key)
{
    const struct profile *p = profile;
    const struct frame_key *wanted = key;
    const struct profile_frame *f = &p->frames[id];
    return span_equals(span_of(f->module, strlen(f->module)), wanted->module) &&
           span_equals(span_of(f->name, strlen(f->name)), wanted->name) &&
           (!wanted->like || line_same(f, wanted->like));
}

/* The frame of a name in a module, both as strangers spelled them. `like` says the rest when it is new. */
static uint32_t frame_get(struct frame_table *table, struct span name, const char *module,
                          const struct profile_frame *like)
{
    buffer_clear(&table->text);
    utf8_escape(&table->text, name);
    buffer_clear(&table->module);
    utf8_escape(&table->module, span_of(module, strlen(module)));
    struct frame_key key = { buffer_span(&table->text), buffer_span(&table->module),
                             table->lines ? like : NULL };
    uint64_t hash =
        hash_pair(hash_bytes(key.name.data, key.name.size), hash_bytes(key.module.data, key.module.size));
    if (table->lines)
        hash = hash_pair(hash, like->line);
    uint32_t id = id_map_find(&table->frames, hash, frame_same, table->profile, &key);
    if (id)
        return id;
    struct profile *p = table->profile;
    p->frames = mem_grow(p->frames, &table->capacity, p->frame_count + 1, sizeof *p->frames);
    id = p->frame_count++;
    p->frames[id] = *like;
    p->frames[id].name = text_keep(table, key.name);
    p->frames[id].module = text_keep(table, key.module);
    id_map_add(&table->frames, hash, id);
    if (table->filter->count) {
        table->matched =
            mem_grow(table->matched, &table->matched_capacity, p->frame_count, sizeof *table->matched);
        table->matched[id] = stack_filter_match(table->filter, p->frames[id].name);
    }
    return id;
}

/* The file's name, kept once; NULL for none. */
static const char *frame_file(struct frame_table *table, uint32_t id)
{
    if (!trace_string(table->trace, id)[0]) /* also of a string that is not there */
        return NULL;
    if (!table->file_of_string[id])
        table->file_of_string[id] = frame_table_string(table, id);
    return table->file_of_string[id];
}

/* How much of a method's name, as a frame keeps it, is its type's. */
static uint16_t type_bytes_of(struct frame_table *table, struct span raw, const char *type_params)
{
    struct buffer type;
    buffer_init(&type, UINT16_MAX);
    method_name_show_type(raw, type_params, &type);
    buffer_clear(&table->text);
    if (!type.failed)
        utf8_escape(&table->text, buffer_span(&type));
    buffer_done(&type);
    return table->text.size <= UINT16_MAX ? (uint16_t)table->text.size : 0;
}

static uint32_t frame_of_function(struct frame_table *table, const struct trace_location *row)
{
    const struct trace_function *f = &table->trace->functions.rows[row->function];
    const char *raw = trace_string(table->trace, f->name), *module = trace_string(table->trace, f->module);
    struct span name = span_of(raw, strlen(raw));
    struct profile_frame like = {
        .kind = f->kind, .tier = row->tier, .resolver = row->resolver, .unnamed = row->unnamed
    };
    if (row->line && table->lines)
        like.file = frame_file(table, row->file);
    if (like.file) {
        like.line = row->line;
        like.line_of_method = row->line_of_method;
    }
    if (!code_kind_is_managed(f->kind) || table->raw_names)
        return frame_get(table, name, module, &like);
    struct buffer shown;
    const char *type_params = trace_string(table->trace, f->type_params);
    buffer_init(&shown, FRAME_TEXT_BYTES);
    method_name_show(name, type_params, &shown);
    like.type_bytes = type_bytes_of(table, name, type_params);
    uint32_t id = frame_get(table, buffer_span(&shown), module, &like);
    buffer_done(&shown);
    return id;
}

uint32_t frame_table_inlined(struct frame_table *table, uint32_t inlined, uint32_t location)
{
    const struct trace *t = table->trace;
    if (table->of_inlined[inlined])
        return table->of_inlined[inlined];
    const struct trace_inlined *row = &t->inlined.rows[inlined];
    const struct trace_function *f = &t->functions.rows[row->function];
    const char *name = row->function ? trace_string(t, f->name) : "[unknown]";
    struct profile_frame like = { .kind = f->kind,
                                  .resolver = t->locations.rows[location].resolver,
                                  .inlined = true };
    if (row->line)
        like.file = frame_file(table, row->file);
    if (like.file)
        like.line = row->line;
    uint32_t frame = frame_get(table, span_of(name, strlen(name)), trace_string(t, f->module), &like);
    return table->of_inlined[inlined] = frame;
}

/* What is shown of a location that nobody could name: its file and offset, or that it is unknown. */
static uint32_t frame_of_unnamed(struct frame_table *table, const struct trace_location *row)
{
    const struct trace_mapping *m = &table->trace->mappings.rows[row->mapping];
    const struct trace_image *image = &table->trace->images.rows[m->image];
    const char *path = trace_string(table->trace, image->path);
    const char *slash = strrchr(path, '/');
    const char *module = slash ? slash + 1 : path;
    struct profile_frame like = { .kind = CODE_UNKNOWN,
                                  .unnamed = row->unnamed ? row->unnamed : UNNAMED_NO_SYMBOL };
    if (image->kind == IMAGE_JIT || image->kind == IMAGE_ANON)
        like.kind = CODE_JIT;
    else if (row->mapping)
        like.kind = image->kind == IMAGE_PE ? CODE_R2R : CODE_NATIVE;
    if (!row->process)
        like.kind = CODE_KERNEL;
    return frame_get(table, span_of("[unknown]", 9), module, &like);
}

/* A whole function's line is the first one that ran; of several files the first seen. */
static void frame_note_line(struct frame_table *table, uint32_t frame, const struct trace_location *row)
{
    struct profile_frame *f = &table->profile->frames[frame];
    if (!row->line || (f->line && f->line <= row->line))
        return;
    const char *file = frame_file(table, row->file);
    if (!file || (f->line && strcmp(f->file, file) != 0))
        return;
    f->line = row->line;
    f->file = file;
    f->line_of_method = row->line_of_method;
}

uint32_t frame_table_location(struct frame_table *table, uint32_t location)
{
    if (table->of_location[location])
        return table->of_location[location];
    const struct trace_location *row = &table->trace->locations.rows[location];
    bool lines = table->lines;
    uint32_t frame = row->function && !lines ? table->of_function[row->function] : 0;
    if (!frame)
        frame = row->function ? frame_of_function(table, row) : frame_of_unnamed(table, row);
    if (row->function)
        table->of_function[row->function] = frame;
    if (!lines)
        frame_note_line(table, frame, row);
    return table->of_location[location] = frame;
}

uint32_t frame_table_work(struct frame_table *table, unsigned work)
{
    static const struct profile_frame like = { .kind = CODE_RUNTIME };
    if (!table->of_work[work]) {
        char name[64];
        snprintf(name, sizeof name, "[%s]",
                 work < WORK_CLASSES ? runtime_work_name((enum runtime_work_class)work) : "runtime");
        table->of_work[work] = frame_get(table, span_of(name, strlen(name)), "", &like);
    }
    return table->of_work[work];
}

uint32_t frame_table_own(struct frame_table *table, const char *name)
{
    static const struct profile_frame like = { .kind = CODE_UNKNOWN };
    return frame_get(table, span_of(name, strlen(name)), "", &like);
}

void frame_table_init(struct frame_table *table, const struct trace *t, const struct profile_options *options,
                      const struct stack_filter *filter, struct profile *p)
{
    *table = (struct frame_table){ .trace = t, .filter = filter, .profile = p };
    table->lines = options->lines;
    table->raw_names = options->raw_names;
    buffer_init(&table->text, FRAME_TEXT_BYTES);
    buffer_init(&table->module, FRAME_TEXT_BYTES);
    table->of_location = mem_alloc(t->locations.count, sizeof *table->of_location);
    table->of_function = mem_alloc(t->functions.count, sizeof *table->of_function);
    table->of_inlined = mem_alloc(t->inlined.count, sizeof *table->of_inlined);
    table->file_of_string = mem_alloc(t->strings.count, sizeof *table->file_of_string);
    p->frames = mem_grow(NULL, &table->capacity, 64, sizeof *p->frames);
    p->frames[0] = (struct profile_frame){ .name = "", .module = "" };
    p->frame_count = 1;
}

void frame_table_done(struct frame_table *table)
{
    id_map_done(&table->frames);
    buffer_done(&table->text);
    buffer_done(&table->module);
    free(table->of_location);
    free(table->of_function);
    free(table->of_inlined);
    free(table->file_of_string);
    free(table->matched);
}
