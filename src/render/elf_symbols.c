#include "render/elf_symbols.h"

#include <elf.h>
#include <string.h>

#include "base/own.h"

enum {
    BUILD_ID_MAX = 64,
    NOTE_HEAD_BYTES = 16, /* sizes, type, "GNU\0" */
};

#ifdef __aarch64__
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_X86_64 };
#endif

enum section {
    SECTION_NULL,
    SECTION_TEXT,
    SECTION_SYMTAB,
    SECTION_STRTAB,
    SECTION_SHSTRTAB,
    SECTION_NOTE,
    SECTIONS
};

/* Names of the sections, and where they begin in it. */
static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab\0.note.gnu.build-id";
static const uint32_t section_name_at[SECTIONS] = { 0, 1, 7, 15, 23, 33 };

struct layout {
    uint64_t extent; /* of the code, from the start of the file */
    uint64_t note_off, symtab_off, strtab_off, shstrtab_off, headers_off;
    uint64_t note_size, symtab_size, strtab_size;
};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static void pad(struct output *out, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        output_char(out, 0);
}

/* Bytes of a build id given in hex; 0 when it is none. */
static size_t read_hex(const char *text, uint8_t *bytes)
{
    size_t size = strlen(text) / 2;
    if (size > BUILD_ID_MAX)
        return 0;
    for (size_t i = 0; i < 2 * size; i++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
        if (!digit)
            return 0;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
    }
    return size;
}

static struct layout plan(const struct elf_symbols_row *symbols, size_t count, size_t string_size,
                          size_t id_size)
{
    struct layout l = { .note_off = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) };
    l.extent = count ? symbols[count - 1].file_off + symbols[count - 1].size_bytes : 0;
    l.note_size = id_size ? NOTE_HEAD_BYTES + round_up(id_size, 4) : 0;
    l.symtab_off = round_up(l.note_off + l.note_size, 8);
    l.symtab_size = (count + 1) * sizeof(Elf64_Sym);
    l.strtab_off = l.symtab_off + l.symtab_size;
    l.strtab_size = string_size;
    l.shstrtab_off = l.strtab_off + l.strtab_size;
    l.headers_off = round_up(l.shstrtab_off + sizeof section_names, 8);
    return l;
}

static void write_head(const struct layout *l, bool has_note, struct output *out)
{
    Elf64_Ehdr head = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_DYN,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_shoff = l->headers_off,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = has_note ? SECTIONS : SECTION_NOTE,
        .e_shstrndx = SECTION_SHSTRTAB,
    };
    /* one address is one offset */
    Elf64_Phdr code = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = l->extent, .p_align = 1 };
    output_write(out, &head, sizeof head);
    output_write(out, &code, sizeof code);
}

static void write_note(const uint8_t *id, size_t id_size, struct output *out)
{
    const uint32_t head[3] = { 4, (uint32_t)id_size, NT_GNU_BUILD_ID };
    output_write(out, head, sizeof head);
    output_write(out, "GNU", 4);
    output_write(out, id, id_size);
    pad(out, id_size, round_up(id_size, 4));
}

static void write_symbols(const struct elf_symbols_row *symbols, size_t count, struct output *out)
{
    Elf64_Sym none = { 0 };
    output_write(out, &none, sizeof none);
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol = {
            .st_name = (uint32_t)symbols[i].name,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
            .st_shndx = SECTION_TEXT,
            .st_value = symbols[i].file_off,
            .st_size = symbols[i].size_bytes,
        };
        output_write(out, &symbol, sizeof symbol);
    }
}

static void write_sections(const struct layout *l, bool has_note, struct output *out)
{
    Elf64_Shdr sections[SECTIONS] = {
        [SECTION_TEXT] = { .sh_type = SHT_NOBITS,
                           .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                           .sh_size = l->extent,
                           .sh_addralign = 1 },
        [SECTION_SYMTAB] = { .sh_type = SHT_SYMTAB,
                             .sh_offset = l->symtab_off,
                             .sh_size = l->symtab_size,
                             .sh_link = SECTION_STRTAB,
                             .sh_info = 1, /* the first that is not local */
                             .sh_addralign = 8,
                             .sh_entsize = sizeof(Elf64_Sym) },
        [SECTION_STRTAB] = { .sh_type = SHT_STRTAB,
                             .sh_offset = l->strtab_off,
                             .sh_size = l->strtab_size,
                             .sh_addralign = 1 },
        [SECTION_SHSTRTAB] = { .sh_type = SHT_STRTAB,
                               .sh_offset = l->shstrtab_off,
                               .sh_size = sizeof section_names,
                               .sh_addralign = 1 },
        [SECTION_NOTE] = { .sh_type = SHT_NOTE,
                           .sh_offset = l->note_off,
                           .sh_size = l->note_size,
                           .sh_addralign = 4 },
    };
    for (unsigned i = 0; i < SECTIONS; i++)
        sections[i].sh_name = section_name_at[i];
    output_write(out, sections, (has_note ? SECTIONS : SECTION_NOTE) * sizeof *sections);
}

void elf_symbols_write(const struct elf_symbols_row *symbols, size_t count, const struct buffer *strings,
                       const char *build_id, struct output *out)
{
    uint8_t id[BUILD_ID_MAX] = { 0 };
    size_t id_size = read_hex(build_id, id);
    struct layout l = plan(symbols, count, strings->size, id_size);
    write_head(&l, id_size, out);
    if (id_size)
        write_note(id, id_size, out);
    pad(out, l.note_off + l.note_size, l.symtab_off);
    write_symbols(symbols, count, out);
    output_span(out, buffer_span(strings));
    output_write(out, section_names, sizeof section_names);
    pad(out, l.shstrtab_off + sizeof section_names, l.headers_off);
    write_sections(&l, id_size, out);
}
