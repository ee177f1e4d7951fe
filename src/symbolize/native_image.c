#include "symbolize/native_image.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/code_starts.h"
#include "read/eh_frame.h"
#include "symbolize/aot_names.h"
#include "symbolize/demangle.h"
#include "symbolize/kept_index.h"
#include "symbolize/plt_stubs.h"
#include "symbolize/runtime_names.h"
#include "symbolize/symbol_table.h"
#include "symbolize/vdso_names.h"

enum {
    LAYERS_MAX = 8,
    UNPACKED_BYTES_MAX = 256 << 20,
    DYNAMIC_BYTES_MAX = 64 << 20,
    NAME_BYTES_MAX = ELF_NAME_MAX + 256,
    VDSO_BYTES_MAX = 1 << 20,
    ASKED_OFTEN = 256,
    STRINGS_KEPT_MAX = 8 << 20,
    AOT_STRINGS_MAX = 64 << 20,
};

/* One source of names. */
struct layer {
    enum resolver resolver;
    struct symbol_table symbols;
    struct source strings;
    struct buffer strings_memory; /* when `strings` is not the file */
    size_t asked;
};

struct native_image {
    struct elf elf;
    char *path;
    const char *module; /* in `path` */
    char build_id[2 * ELF_BUILD_ID_MAX + 1];
    bool runtime, vdso;
    struct layer layers[LAYERS_MAX];
    size_t layer_count;
    int debug_fd;            /* of the separate debug file, or -1 */
    struct buffer debugdata; /* unpacked .gnu_debugdata */
    struct plt_stubs stubs;
    const struct kept_folder *kept; /* or NULL */
    bool functions_tried, starts_tried;
    struct eh_ranges functions;
    struct code_starts starts;
    struct buffer raw, text; /* the last name, as found and as shown */
};

static bool is_runtime_file(const char *module)
{
    static const char *const patterns[] = { "libcoreclr.so",         "libclrjit.so*",  "libclrjit_*.so",
                                            "libclrgc*.so",          "libhostfxr.so",  "libhostpolicy.so",
                                            "libSystem.*Native*.so", "libmscordac*.so" };
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (fnmatch(patterns[i], module, 0) == 0)
            return true;
    return false;
}

static const char dac_table[] = "g_dacTable";

struct export_search {
    struct span strings;
    bool found;
};

static bool is_dac_table(void *user, const struct elf_symbol *s)
{
    struct export_search *search = user;
    search->found =
        s->type == ELF_SYMBOL_OBJECT && span_equals(span_part(search->strings, s->name, sizeof dac_table),
                                                    span_of(dac_table, sizeof dac_table));
    return !search->found;
}

/* A single-file host exports what debuggers need to find the runtime inside. */
static bool exports_dac_table(const struct elf *e)
{
    const struct elf_section *symbols = elf_section_of_type(e, ELF_SECTION_DYNSYM);
    const struct elf_section *strings = elf_section_named(e, ".dynstr");
    struct buffer unpacked, text;
    buffer_init(&unpacked, DYNAMIC_BYTES_MAX);
    buffer_init(&text, DYNAMIC_BYTES_MAX);
    struct export_search search = { 0 };
    struct source table;
    /* one look at the strings spares most images the walk over their symbols */
    if (symbols && strings && elf_section_load(e, strings, &text, NULL) &&
        memmem(text.data, text.size, dac_table, sizeof dac_table) &&
        elf_section_source(e, symbols, &unpacked, &table, NULL)) {
        search.strings = buffer_span(&text);
        elf_symbols(&table, is_dac_table, &search, NULL);
    }
    buffer_done(&text);
    buffer_done(&unpacked);
    return search.found;
}

/* Adds the symbol table of type `type` in `e` as a layer; false when that names no function. */
static bool add_layer(struct native_image *image, const struct elf *e, enum elf_section_type type,
                      enum resolver resolver)
{
    const struct elf_section *section = elf_section_of_type(e, type);
    if (!section || section->link == 0 || section->link >= e->section_count ||
        image->layer_count == LAYERS_MAX)
        return false;
    struct layer layer = { .resolver = resolver };
    struct buffer unpacked;
    struct source symbols;
    buffer_init(&unpacked, UNPACKED_BYTES_MAX);
    buffer_init(&layer.strings_memory, UNPACKED_BYTES_MAX);
    symbol_table_init(&layer.symbols, elf_base_addr(&image->elf), type == ELF_SECTION_SYMTAB);
    bool ok =
        elf_section_source(e, section, &unpacked, &symbols, NULL) &&
        elf_section_source(e, &e->sections[section->link], &layer.strings_memory, &layer.strings, NULL) &&
        symbol_table_add_elf(&layer.symbols, e, &symbols, NULL) && layer.symbols.count > 0;
    buffer_done(&unpacked);
    if (!ok) {
        symbol_table_done(&layer.symbols);
        buffer_done(&layer.strings_memory);
        return false;
    }
    symbol_table_sort(&layer.symbols);
    image->layers[image->layer_count++] = layer;
    return true;
}

static void add_debug_file(struct native_image *image, const struct debug_finder *find)
{
    struct debug_file debug;
    if (!debug_file_open(&image->elf, image->path, find, &debug))
        return;
    add_layer(image, &debug.elf, ELF_SECTION_SYMTAB, RESOLVER_ELF_DEBUG);
    image->debug_fd = take_fd(&debug.fd);
    elf_done(&debug.elf);
}

static void add_debugdata(struct native_image *image)
{
    if (!elf_section_named(&image->elf, ".gnu_debugdata") ||
        !elf_unpack_debugdata(&image->elf, &image->debugdata, NULL))
        return;
    struct source file = source_over_span(buffer_span(&image->debugdata));
    struct elf debug;
    if (!elf_open(&file, &debug, NULL))
        return;
    add_layer(image, &debug, ELF_SECTION_SYMTAB, RESOLVER_ELF_MINIDEBUG);
    elf_done(&debug);
}

/* Before all others: what they say of methods are names that the compiler made for its linker. */
static void add_aot_names(struct native_image *image)
{
    struct layer layer = { .resolver = RESOLVER_AOT, .asked = ASKED_OFTEN };
    buffer_init(&layer.strings_memory, AOT_STRINGS_MAX);
    symbol_table_init(&layer.symbols, elf_base_addr(&image->elf), false);
    aot_names_find(&image->elf, &layer.symbols, &layer.strings_memory);
    symbol_table_sort(&layer.symbols);
    layer.strings = source_over_span(buffer_span(&layer.strings_memory));
    image->layers[image->layer_count++] = layer;
}

static void read_build_id(struct native_image *image)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size = 0;
    if (elf_build_id(&image->elf, id, &size))
        for (size_t i = 0; i < size; i++)
            snprintf(image->build_id + 2 * i, 3, "%02x", id[i]);
}

bool native_image_open(const struct source *file, const char *path, const struct debug_finder *find,
                       struct native_image **out, struct error *err)
{
    struct elf e;
    if (!elf_open(file, &e, err))
        return error_context(err, "'%s'", path);
    struct native_image *image = mem_alloc(1, sizeof *image);
    image->elf = e;
    image->debug_fd = -1;
    image->path = mem_copy_string(path);
    const char *slash = strrchr(image->path, '/');
    image->module = slash ? slash + 1 : image->path;
    buffer_init(&image->debugdata, UNPACKED_BYTES_MAX);
    buffer_init(&image->raw, NAME_BYTES_MAX);
    buffer_init(&image->text, NAME_BYTES_MAX);
    plt_stubs_init(&image->stubs, &image->elf);
    read_build_id(image);
    image->runtime = is_runtime_file(image->module) || exports_dac_table(&image->elf);
    if (elf_section_named(&image->elf, "__modules"))
        add_aot_names(image);
    size_t before = image->layer_count;
    if (!add_layer(image, &image->elf, ELF_SECTION_SYMTAB, RESOLVER_ELF_SYMTAB)) {
        if (find)
            add_debug_file(image, find);
        if (image->layer_count == before)
            add_debugdata(image);
    }
    add_layer(image, &image->elf, ELF_SECTION_DYNSYM, RESOLVER_ELF_DYNSYM);
    *out = image;
    return true;
}

/* The bytes of the vdso: its headers say how far they reach, and the kernel wrote them. */
static size_t vdso_bytes(const uint8_t *base)
{
    uint64_t end = load_u64le(base + 40) + (uint64_t)load_u16le(base + 58) * load_u16le(base + 60);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return end > VDSO_BYTES_MAX ? 0 : (size_t)((end + page - 1) / page * page);
}

bool native_image_open_vdso(struct native_image **out, struct error *err)
{
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    if (base == 0)
        return error_set(err, ERROR_UNSUPPORTED, "the kernel provides no vdso");
    const uint8_t *bytes = (const uint8_t *)base;
    struct source memory = source_over_span(span_of(bytes, vdso_bytes(bytes)));
    if (!native_image_open(&memory, "[vdso]", NULL, out, err))
        return false;
    (*out)->vdso = true;
    return true;
}

void native_image_close(struct native_image *image)
{
    if (!image)
        return;
    for (size_t i = 0; i < image->layer_count; i++) {
        symbol_table_done(&image->layers[i].symbols);
        buffer_done(&image->layers[i].strings_memory);
    }
    if (image->debug_fd >= 0)
        close(image->debug_fd);
    buffer_done(&image->debugdata);
    plt_stubs_done(&image->stubs);
    code_starts_done(&image->starts);
    eh_ranges_done(&image->functions);
    elf_done(&image->elf);
    buffer_done(&image->raw);
    buffer_done(&image->text);
    free(image->path);
    free(image);
}

const char *native_image_build_id(const struct native_image *image)
{
    return image->build_id;
}

bool native_image_is_runtime(const struct native_image *image)
{
    return image->runtime;
}

/* There is room for those of a runtime behind all others. */
static void add_runtime_layers(struct native_image *image, struct runtime_names *names)
{
    static const enum resolver resolvers[RUNTIME_TABLES] = {
        [RUNTIME_QCALLS] = RESOLVER_QCALL,
        [RUNTIME_JIT_HELPERS] = RESOLVER_JIT_HELPER,
        [RUNTIME_FCALLS] = RESOLVER_FCALL,
    };
    for (size_t i = 0; i < RUNTIME_TABLES; i++)
        image->layers[image->layer_count++] = (struct layer){
            .resolver = resolvers[i],
            .symbols = names->tables[i],
            .strings =
                i == RUNTIME_QCALLS ? image->elf.file : source_over_span(buffer_span(&names->strings[i])),
            .strings_memory = names->strings[i],
            .asked = ASKED_OFTEN, /* a whole file is not to be kept */
        };
}

/* Of a part of the runtime, as earlier looks found them. */
static bool read_kept_functions(struct native_image *image, struct runtime_names *names)
{
    struct buffer bytes;
    kept_index_load(image->kept, &image->elf.file, &bytes);
    struct cursor c = cursor_over(buffer_span(&bytes));
    bool ok = bytes.size && eh_ranges_take(&c, &image->elf, &image->functions);
    if (ok && !runtime_names_read(&c, &image->elf, names)) {
        eh_ranges_done(&image->functions);
        ok = false;
    }
    buffer_done(&bytes);
    return ok;
}

static void keep_functions(const struct native_image *image, const struct runtime_names *names)
{
    struct buffer bytes;
    if (!kept_index_wants(image->kept, &image->elf.file))
        return;
    buffer_init(&bytes, KEPT_INDEX_BYTES_MAX);
    eh_ranges_append(&image->functions, &bytes);
    runtime_names_write(names, &bytes);
    if (!bytes.failed)
        kept_index_save(image->kept, &image->elf.file, buffer_span(&bytes));
    buffer_done(&bytes);
}

static void read_runtime_functions(struct native_image *image)
{
    struct runtime_names names;
    if (!read_kept_functions(image, &names)) {
        if (!eh_ranges_read(&image->elf, &image->functions, NULL))
            return;
        runtime_names_find(&image->elf, &image->functions, &names);
        keep_functions(image, &names);
    }
    add_runtime_layers(image, &names);
}

static void read_functions(struct native_image *image)
{
    if (image->functions_tried)
        return;
    image->functions_tried = true;
    if (image->runtime)
        read_runtime_functions(image);
    else
        eh_ranges_read(&image->elf, &image->functions, NULL);
}

void native_image_keep(struct native_image *image, const struct kept_folder *kept)
{
    image->kept = kept;
}

void native_image_read_functions(struct native_image *image)
{
    if (image->runtime) /* its tables of names come with the functions */
        read_functions(image);
}

/* The function around `addr` by its unwind information, which is read when first needed. */
static bool find_function(struct native_image *image, uint64_t addr, uint64_t *out_start)
{
    uint64_t size_bytes = 0;
    read_functions(image);
    return eh_ranges_find(&image->functions, addr, out_start, &size_bytes);
}

/* A symbol without a size must not reach over the start of a later function or out of its section. */
static bool reaches(struct native_image *image, const struct symbol_match *match, uint64_t addr)
{
    uint64_t start = 0;
    if (match->size_bytes != 0)
        return true;
    if (find_function(image, addr, &start) && start > match->start)
        return false;
    return elf_section_at(&image->elf, match->start) == elf_section_at(&image->elf, addr);
}

/* Most images are asked a few times, when a read for each name is cheapest; some very often. */
static void count_question(struct layer *layer)
{
    if (++layer->asked != ASKED_OFTEN || layer->strings.fd < 0 || layer->strings.size > STRINGS_KEPT_MAX)
        return;
    if (source_load(&layer->strings, 0, layer->strings.size, &layer->strings_memory, NULL))
        layer->strings = source_over_span(buffer_span(&layer->strings_memory));
}

static bool find_in_layers(struct native_image *image, uint64_t addr, enum resolver *out_resolver,
                           uint64_t *out_start)
{
    for (size_t i = 0; i < image->layer_count; i++) {
        struct layer *layer = &image->layers[i];
        struct symbol_match match;
        count_question(layer);
        /* the vdso's weak names are those of libc's functions, which call it */
        if (!symbol_table_find(&layer->symbols, addr, &layer->strings, image->vdso, &image->raw, &match) ||
            !reaches(image, &match, addr))
            continue;
        *out_start = match.start;
        *out_resolver = layer->resolver;
        return true;
    }
    return false;
}

/* The name in `raw` as it is shown, with `suffix` behind. */
static const char *shown_name(struct native_image *image, const char *suffix)
{
    /* a .symtab spells the version out: "memcpy@@GLIBC_2.14" */
    char *version = strchr((char *)image->raw.data + (image->raw.data[0] == '@'), '@');
    if (version)
        *version = 0;
    if (!demangle((const char *)image->raw.data, &image->text)) {
        buffer_clear(&image->text);
        buffer_string(&image->text, (const char *)image->raw.data);
    } else {
        image->text.size--; /* its NUL */
    }
    buffer_append(&image->text, suffix, strlen(suffix) + 1);
    return image->text.failed ? "" : (const char *)image->text.data;
}

static bool find_stub(struct native_image *image, uint64_t addr, struct code_name *out, uint64_t *out_start)
{
    struct plt_stub stub;
    uint64_t resolver_start = 0;
    if (!plt_stubs_find(&image->stubs, addr, &image->raw, &stub))
        return false;
    out->resolver = RESOLVER_ELF_DYNSYM;
    bool named = image->raw.data[0] ||
                 (stub.resolver && find_in_layers(image, stub.resolver, &out->resolver, &resolver_start));
    out->name = named ? shown_name(image, "@plt") : "[plt]";
    *out_start = stub.start;
    return true;
}

/* By its code; NULL: it is not known. */
static const char *vdso_function_name(const struct native_image *image, uint64_t start)
{
    uint8_t code[VDSO_FUNCTION_BYTES_MAX];
    uint64_t begin, size, file_off;
    if (!image->vdso || !eh_ranges_find(&image->functions, start, &begin, &size) || size > sizeof code ||
        !elf_file_off_of_addr(&image->elf, begin, &file_off) ||
        !source_read(&image->elf.file, file_off, code, (size_t)size, NULL))
        return NULL;
    return vdso_name_of(span_of(code, (size_t)size));
}

static const char *identity_name(struct native_image *image, uint64_t start)
{
    const char *known = vdso_function_name(image, start);
    buffer_clear(&image->text);
    if (start == image->elf.entry)
        known = "_start"; /* by its use: linkers look for that name */
    if (known)
        buffer_string(&image->text, known);
    else
        buffer_format(&image->text, "%s!0x%" PRIx64, image->module, start);
    buffer_u8(&image->text, 0);
    return (const char *)image->text.data;
}

/*
 * The function around `addr`, of which no table tells, by the references in the image's code; that is read
 * when first needed. A symbol that ends before `addr` has nothing to do with it.
 */
static bool find_start(struct native_image *image, uint64_t addr, uint64_t *out_start)
{
    enum resolver resolver;
    uint64_t start = 0;
    if (!image->starts_tried) {
        image->starts_tried = true;
        if (code_starts_are_worth_it(&image->elf, &image->functions))
            code_starts_read(&image->elf, &image->functions, &image->starts, NULL);
    }
    return code_starts_find(&image->starts, &image->elf, &image->functions, addr, out_start) &&
           !find_in_layers(image, *out_start, &resolver, &start);
}

/* A method's, whose assembly is before its name. */
static void take_method(struct native_image *image, struct code_name *out)
{
    char *assembly = (char *)image->raw.data, *end = strchr(assembly, '!');
    if (!end)
        return;
    *end = 0;
    out->module = assembly;
    out->name = end + 1;
    out->kind = CODE_R2R;
}

bool native_image_find_addr(struct native_image *image, uint64_t addr, struct code_name *out,
                            uint64_t *out_function_start)
{
    uint64_t start = 0;
    struct code_name found = { .module = image->module,
                               .type_params = "",
                               .kind = image->runtime ? CODE_RUNTIME : CODE_NATIVE };
    native_image_read_functions(image);
    if (find_in_layers(image, addr, &found.resolver, &start)) {
        found.name = shown_name(image, "");
        if (found.resolver == RESOLVER_AOT)
            take_method(image, &found);
    } else if (!find_stub(image, addr, &found, &start)) {
        bool told = find_function(image, addr, &start);
        if (!told && !find_start(image, addr, &start))
            return false;
        found.resolver = told ? RESOLVER_EH_FRAME : RESOLVER_CODE;
        found.name = identity_name(image, start);
    }
    if (image->vdso)
        found.resolver = RESOLVER_VDSO;
    *out_function_start = start;
    *out = found;
    return true;
}

bool native_image_find(struct native_image *image, uint64_t file_off, struct code_name *out,
                       uint64_t *out_function_start)
{
    uint64_t addr = 0, start = 0;
    if (!elf_addr_of_file_off(&image->elf, file_off, &addr) ||
        !native_image_find_addr(image, addr, out, &start))
        return false;
    if (!elf_file_off_of_addr(&image->elf, start, out_function_start))
        *out_function_start = file_off;
    return true;
}

/* An address that is asked for, and by which question. */
struct asked_addr {
    uint64_t addr;
    size_t index;
};

static int asked_compare(const void *a, const void *b)
{
    const struct asked_addr *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* The file that has the image's DWARF, or -1. */
static int source_fd(const struct native_image *image)
{
    return native_source_has(&image->elf) ? image->elf.file.fd : image->debug_fd;
}

struct source_lookup *native_image_ask_sources(const struct native_image *image, const uint64_t *file_offs,
                                               size_t count)
{
    int fd = source_fd(image);
    if (count == 0 || fd < 0)
        return NULL;
    AUTO_FREE struct asked_addr *pairs = mem_alloc(count, sizeof *pairs);
    AUTO_FREE uint64_t *addrs = mem_alloc(count, sizeof *addrs);
    AUTO_FREE size_t *indexes = mem_alloc(count, sizeof *indexes);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        pairs[known].index = i;
        known += elf_addr_of_file_off(&image->elf, file_offs[i], &pairs[known].addr);
    }
    qsort(pairs, known, sizeof *pairs, asked_compare);
    for (size_t i = 0; i < known; i++) {
        addrs[i] = pairs[i].addr;
        indexes[i] = pairs[i].index;
    }
    struct source_store store = { image->kept, symbol_id_of_elf(&image->elf) };
    return source_lookup_start(fd, &store, addrs, indexes, known);
}
