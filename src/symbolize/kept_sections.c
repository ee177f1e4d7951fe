#include "symbolize/kept_sections.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_write.h"
#include "base/own.h"
#include "read/debug_sections.h"

enum { SECTIONS_MAX = 16, NAMES_BYTES_MAX = 1024 };

static const char stamp_name[] = ".clrperf_stamp", names_name[] = ".shstrtab";

/* Finding. */

static bool has_stamp(const struct elf *e, const struct file_stamp *stamp)
{
    const struct elf_section *section = elf_section_named(e, stamp_name);
    struct buffer bytes;
    buffer_init(&bytes, sizeof *stamp);
    bool same = section && elf_section_load(e, section, &bytes, NULL) && bytes.size == sizeof *stamp &&
                memcmp(bytes.data, stamp, sizeof *stamp) == 0;
    buffer_done(&bytes);
    return same;
}

static bool is_of(int fd, const struct file_stamp *stamp)
{
    struct source file;
    struct elf elf;
    if (!source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !elf_open(&file, &elf, NULL))
        return false;
    bool same = has_stamp(&elf, stamp);
    elf_done(&elf);
    return same;
}

int kept_sections_find(const struct kept_folder *folder, const struct symbol_id *id,
                       const struct file_stamp *stamp)
{
    AUTO_FD int fd = kept_folder_find(folder, id, SYMBOL_CACHE_SECTIONS);
    return fd >= 0 && is_of(fd, stamp) ? take_fd(&fd) : -1;
}

/* Keeping. */

/* An ELF file that is being written: its sections, then their names and headers, then its own. */
struct section_writer {
    int fd;
    uint64_t at; /* bytes so far */
    Elf64_Shdr headers[SECTIONS_MAX];
    size_t count;
    struct buffer names;
};

static bool write_section(struct section_writer *w, const char *name, uint32_t type, struct span bytes)
{
    w->headers[w->count++] = (Elf64_Shdr){
        .sh_name = (uint32_t)w->names.size,
        .sh_type = type,
        .sh_offset = w->at,
        .sh_addralign = 1,
    };
    buffer_append(&w->names, name, strlen(name) + 1);
    if (type == SHT_STRTAB) /* itself among them */
        bytes = buffer_span(&w->names);
    w->headers[w->count - 1].sh_size = bytes.size;
    w->at += bytes.size;
    return !w->names.failed && fd_write(w->fd, bytes);
}

static bool write_headers(struct section_writer *w, uint16_t machine)
{
    Elf64_Ehdr header = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_REL,
        .e_machine = machine,
        .e_version = EV_CURRENT,
        .e_shoff = w->at,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (uint16_t)w->count,
        .e_shstrndx = (uint16_t)(w->count - 1),
    };
    return fd_write(w->fd, span_of(w->headers, w->count * sizeof *w->headers)) &&
           pwrite(w->fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

static bool write_unpacked(struct section_writer *w, const struct elf *e, enum debug_section which)
{
    const struct elf_section *section = debug_section_of(e, which);
    struct buffer bytes;
    if (!section)
        return true;
    buffer_init(&bytes, KEPT_SECTIONS_BYTES_MAX - (size_t)w->at);
    bool ok = elf_section_load(e, section, &bytes, NULL) &&
              write_section(w, debug_section_name(which), SHT_PROGBITS, buffer_span(&bytes));
    buffer_done(&bytes);
    return ok;
}

struct kept_work {
    const struct file_stamp *stamp;
    const struct elf *elf;
};

static bool write_all(void *user, int fd)
{
    const struct kept_work *work = user;
    const struct elf *e = work->elf;
    struct section_writer w = { .fd = fd, .at = sizeof(Elf64_Ehdr), .count = 1 };
    uint8_t room[sizeof(Elf64_Ehdr)] = { 0 };
    buffer_init(&w.names, NAMES_BYTES_MAX);
    buffer_append(&w.names, "", 1);
    bool ok = fd_write(fd, span_of(room, sizeof room)) &&
              write_section(&w, stamp_name, SHT_PROGBITS, span_of(work->stamp, sizeof *work->stamp));
    for (size_t i = 0; ok && i < DEBUG_SECTIONS; i++)
        ok = write_unpacked(&w, e, (enum debug_section)i);
    ok = ok && write_section(&w, names_name, SHT_STRTAB, (struct span){ 0 }) && write_headers(&w, e->machine);
    buffer_done(&w.names);
    return ok;
}

/* Whether they are compressed, and take no more than may be kept. */
static bool is_worth_it(const struct elf *e)
{
    uint64_t total = sizeof(Elf64_Ehdr), bytes;
    bool any_packed = false;
    for (size_t i = 0; i < DEBUG_SECTIONS; i++) {
        const struct elf_section *section = debug_section_of(e, (enum debug_section)i);
        struct source stored;
        bool packed;
        if (!section || !elf_section_stored(e, section, &stored, &packed, &bytes, NULL))
            continue;
        any_packed |= packed;
        if (bytes > KEPT_SECTIONS_BYTES_MAX - total)
            return false;
        total += bytes;
    }
    return any_packed;
}

bool kept_sections_save(const struct kept_folder *folder, const struct symbol_id *id,
                        const struct file_stamp *stamp, const struct elf *e)
{
    struct kept_work work = { stamp, e };
    return is_worth_it(e) && kept_folder_save(folder, id, SYMBOL_CACHE_SECTIONS, write_all, &work, NULL);
}
