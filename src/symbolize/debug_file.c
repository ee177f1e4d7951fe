#include "symbolize/debug_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/own.h"

#define CHECKSUMMED_BYTES_MAX ((uint64_t)256 << 20)

/* What the debug file must agree with. */
struct identity {
    struct symbol_id build_id; /* size 0: the checksum counts */
    uint32_t checksum;
};

static bool checksum_agrees(const struct source *file, uint32_t expected)
{
    uint8_t bytes[64 * 1024];
    if (file->size > CHECKSUMMED_BYTES_MAX)
        return false;
    uLong sum = crc32(0, NULL, 0);
    for (uint64_t done = 0; done < file->size;) {
        uint64_t left = file->size - done;
        size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
        if (!source_read(file, done, bytes, size, NULL))
            return false;
        sum = crc32(sum, bytes, (uInt)size);
        done += size;
    }
    return sum == expected;
}

static bool belongs(const struct elf *debug, const struct identity *expected)
{
    if (expected->build_id.size == 0)
        return checksum_agrees(&debug->file, expected->checksum);
    struct symbol_id found = symbol_id_of_elf(debug);
    return symbol_id_equals(&found, &expected->build_id);
}

/* Takes over the descriptor. */
static bool try_fd(int opened, const struct identity *expected, struct debug_file *out)
{
    AUTO_FD int fd = opened;
    struct source file;
    struct elf debug;
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !elf_open(&file, &debug, NULL))
        return false;
    if (!elf_section_of_type(&debug, ELF_SECTION_SYMTAB) || !belongs(&debug, expected)) {
        elf_done(&debug);
        return false;
    }
    out->elf = debug;
    out->fd = take_fd(&fd);
    return true;
}

static bool try_path(const char *path, const struct debug_finder *find, const struct identity *expected,
                     struct debug_file *out)
{
    if (!find->open || !try_fd(find->open(find->user, path), expected, out))
        return false;
    out->place.where = SYMBOLS_IN_FILE;
    snprintf(out->place.path, sizeof out->place.path, "%s", path);
    return true;
}

static bool try_build_id(const struct identity *id, const struct debug_finder *find, struct debug_file *out)
{
    char path[64 + SYMBOL_ID_TEXT_BYTES], text[SYMBOL_ID_TEXT_BYTES];
    if (id->build_id.size < 2)
        return false;
    symbol_id_text(&id->build_id, text);
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", text, text + 2);
    return try_path(path, find, id, out);
}

static bool try_link(const char *path, const char *link, const struct identity *id,
                     const struct debug_finder *find, struct debug_file *out)
{
    static const struct {
        const char *before, *after;
    } places[] = { { "", "/" }, { "", "/.debug/" }, { "/usr/lib/debug", "/" } };
    const char *slash = strrchr(path, '/');
    if (!slash || slash - path > PATH_MAX)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char candidate[PATH_MAX + 512];
        snprintf(candidate, sizeof candidate, "%s%.*s%s%s", places[i].before, (int)(slash - path), path,
                 places[i].after, link);
        if (try_path(candidate, find, id, out))
            return true;
    }
    return false;
}

static bool try_cache(const struct identity *id, const struct symbol_cache *cache, struct debug_file *out)
{
    if (!try_fd(symbol_cache_find(cache, &id->build_id), id, out))
        return false;
    out->place.where = SYMBOLS_IN_CACHE;
    symbol_cache_name(&id->build_id, out->place.path);
    return true;
}

bool debug_file_open(const struct elf *e, const char *path, const struct debug_finder *find,
                     struct debug_file *out)
{
    struct identity id = { .build_id = symbol_id_of_elf(e) };
    char link[256];
    bool has_link = elf_debug_link(e, link, &id.checksum);
    return try_build_id(&id, find, out) || (has_link && try_link(path, link, &id, find, out)) ||
           try_cache(&id, find->cache, out);
}

bool debug_file_open_by_id(const struct symbol_id *id, const struct debug_finder *find,
                           struct debug_file *out)
{
    struct identity expected = { .build_id = *id };
    return try_build_id(&expected, find, out) || try_cache(&expected, find->cache, out);
}

void debug_file_close(struct debug_file *file)
{
    elf_done(&file->elf);
    close(file->fd);
}
