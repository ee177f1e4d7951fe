#include "symbolize/debug_file.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/own.h"

enum { PATH_BYTES_MAX = 4096 };

#define CHECKSUMMED_BYTES_MAX ((uint64_t)256 << 20)

/* What the debug file must agree with. */
struct identity {
    uint8_t build_id[ELF_BUILD_ID_MAX];
    size_t build_id_size; /* 0: the checksum counts */
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
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size = 0;
    if (expected->build_id_size == 0)
        return checksum_agrees(&debug->file, expected->checksum);
    return elf_build_id(debug, id, &size) && size == expected->build_id_size &&
           memcmp(id, expected->build_id, size) == 0;
}

static bool try_path(const char *path, const struct debug_finder *find, const struct identity *expected,
                     int *out_fd, struct elf *out)
{
    AUTO_FD int fd = find->open(find->user, path);
    struct source file;
    struct elf debug;
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !elf_open(&file, &debug, NULL))
        return false;
    if (!elf_section_of_type(&debug, ELF_SECTION_SYMTAB) || !belongs(&debug, expected)) {
        elf_done(&debug);
        return false;
    }
    *out = debug;
    *out_fd = take_fd(&fd);
    return true;
}

static bool try_build_id(const struct identity *id, const struct debug_finder *find, int *out_fd,
                         struct elf *out)
{
    char path[64 + 2 * ELF_BUILD_ID_MAX] = "/usr/lib/debug/.build-id/";
    size_t used = strlen(path);
    for (size_t i = 0; i < id->build_id_size; i++)
        used += (size_t)snprintf(path + used, sizeof path - used, i == 0 ? "%02x/" : "%02x", id->build_id[i]);
    snprintf(path + used, sizeof path - used, ".debug");
    return try_path(path, find, id, out_fd, out);
}

static bool try_link(const char *path, const char *link, const struct identity *id,
                     const struct debug_finder *find, int *out_fd, struct elf *out)
{
    static const struct {
        const char *before, *after;
    } places[] = { { "", "/" }, { "", "/.debug/" }, { "/usr/lib/debug", "/" } };
    const char *slash = strrchr(path, '/');
    if (!slash || slash - path > PATH_BYTES_MAX)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char candidate[PATH_BYTES_MAX + 512];
        snprintf(candidate, sizeof candidate, "%s%.*s%s%s", places[i].before, (int)(slash - path), path,
                 places[i].after, link);
        if (try_path(candidate, find, id, out_fd, out))
            return true;
    }
    return false;
}

bool debug_file_open(const struct elf *e, const char *path, const struct debug_finder *find, int *out_fd,
                     struct elf *out)
{
    struct identity id = { 0 };
    char link[256];
    bool has_id = elf_build_id(e, id.build_id, &id.build_id_size);
    bool has_link = elf_debug_link(e, link, &id.checksum);
    return (has_id && id.build_id_size > 1 && try_build_id(&id, find, out_fd, out)) ||
           (has_link && try_link(path, link, &id, find, out_fd, out));
}
