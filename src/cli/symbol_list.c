#include "cli/symbol_list.h"

#include <string.h>

#include "base/own.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/symbol_store.h"
#include "cli/text_table.h"

static const char *where_text(const struct symbol_image *image)
{
    static const char *const texts[] = {
        [SYMBOLS_NOWHERE] = "missing", [SYMBOLS_INSIDE] = "inside",  [SYMBOLS_MINIMAL] = "minimal",
        [SYMBOLS_IN_FILE] = "file",    [SYMBOLS_IN_CACHE] = "cache",
    };
    const struct image_symbols *s = &image->symbols;
    if (s->place.where == SYMBOLS_NOWHERE && s->id.size == 0)
        return image->problem ? "unknown" : "none"; /* an image that was built without asks for none */
    return texts[s->place.where];
}

bool symbol_list_is_missing(const struct symbol_image *image)
{
    const struct image_symbols *s = &image->symbols;
    return s->id.size && (s->place.where == SYMBOLS_NOWHERE || s->place.where == SYMBOLS_MINIMAL);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool symbol_list_text(const struct symbol_images *images, struct error *err)
{
    static const struct text_column columns[] = {
        { "IMAGE", TEXT_LEFT }, { "SYMBOLS", TEXT_LEFT }, { "LINES", TEXT_LEFT },
        { "ID", TEXT_LEFT },    { "WHERE", TEXT_LEFT },
    };
    struct text_table table;
    struct buffer out;
    text_table_init(&table, columns, ARRAY_LEN(columns));
    buffer_init(&out, OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < images->count; i++) {
        const struct symbol_image *row = &images->rows[i];
        AUTO_FREE char *found = symbol_images_found(images, row);
        char id[SYMBOL_ID_TEXT_BYTES];
        symbol_id_text(&row->symbols.id, id);
        text_table_add(&table, file_name(row->path));
        text_table_add(&table, where_text(row));
        text_table_add(&table, row->symbols.lines ? "yes" : "no");
        text_table_add(&table, id[0] ? id : NULL);
        text_table_add(&table, found[0] ? found : row->problem);
    }
    text_table_print(&table, stdout_width(), &out);
    bool ok = stdout_text(&out, err);
    text_table_done(&table);
    buffer_done(&out);
    return ok;
}

static void write_row(struct json_writer *w, const struct symbol_images *images,
                      const struct symbol_image *row)
{
    const struct image_symbols *s = &row->symbols;
    AUTO_FREE char *found = symbol_images_found(images, row);
    char id[SYMBOL_ID_TEXT_BYTES];
    symbol_id_text(&s->id, id);
    json_begin_object(w);
    json_put_string(w, "path", row->path);
    json_put_string(w, "kind", s->managed ? "assembly" : "native");
    json_put_string(w, "build_id", id[0] && !s->managed ? id : NULL);
    json_put_string(w, "pdb", s->pdb_name[0] ? s->pdb_name : NULL);
    json_put_string(w, "pdb_id", id[0] && s->managed ? id : NULL);
    json_put_string(w, "symbols", where_text(row));
    json_put_string(w, "found", found[0] ? found : NULL);
    json_put_bool(w, "lines", s->lines);
    json_put_string(w, "problem", row->problem);
    json_end_object(w);
}

bool symbol_list_json(const struct symbol_images *images, struct error *err)
{
    struct json_writer w;
    struct buffer buffer;
    AUTO_FREE char *store = symbol_store_path();
    stdout_json(&w, &buffer);
    json_begin_object(&w);
    json_put_string(&w, "schema", "clrperf.symbols/1");
    json_put_known_u64(&w, "pid", images->pid > 0, (uint64_t)images->pid);
    json_put_string(&w, "name", images->label);
    json_put_string(&w, "cache", store);
    json_put_array(&w, "images");
    for (size_t i = 0; i < images->count; i++)
        write_row(&w, images, &images->rows[i]);
    json_end_array(&w);
    json_end_object(&w);
    bool ok = json_finish(&w, err);
    buffer_done(&buffer);
    return ok;
}

void symbol_list_advise(const struct symbol_images *images, const char *of)
{
    size_t missing[2] = { 0 }, all[2] = { 0 };
    for (size_t i = 0; i < images->count; i++) {
        bool managed = images->rows[i].symbols.managed;
        all[managed]++;
        missing[managed] += symbol_list_is_missing(&images->rows[i]);
    }
    message_note("%s: symbols are missing of %zu of %zu native images and %zu of %zu assemblies",
                 images->label, missing[false], all[false], missing[true], all[true]);
    if (missing[false] || missing[true])
        message_note("to get what a symbol server has: clrperf symbols fetch %s --server URL", of);
}
