#include "symbolize/kernel_list.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/sorted.h"
#include "base/source.h"
#include "symbolize/symbol_cache.h"

enum { LIVE_BYTES = 512, HASHED_HEAD_BYTES = KERNEL_LIST_HEAD_BYTES - 8 };

struct kept_list {
    struct source file;
    uint32_t part_count;
    struct buffer index, text; /* of the part read last */
};

uint64_t kernel_list_hash(struct span text)
{
    return XXH3_64bits(text.data, text.size);
}

uint64_t kernel_list_hash_index(struct span head, struct span index)
{
    return XXH3_64bits_withSeed(index.data, index.size, XXH3_64bits(head.data, head.size));
}

int kernel_list_open(const char *path)
{
    struct symbol_cache folder;
    struct stat st;
    if (!symbol_cache_open(path, false, &folder, NULL))
        return -1;
    AUTO_FD int fd = openat(folder.directory_fd, KERNEL_LIST_NAME,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    symbol_cache_close(&folder);
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                !(st.st_mode & (S_IWGRP | S_IWOTH));
    return ours ? take_fd(&fd) : -1;
}

static bool read_head(struct kept_list *list, const struct kernel_boot *boot)
{
    uint8_t head[KERNEL_LIST_HEAD_BYTES];
    if (!source_read(&list->file, 0, head, sizeof head, NULL) ||
        memcmp(head, KERNEL_LIST_MAGIC, sizeof KERNEL_LIST_MAGIC - 1) != 0 ||
        load_u64le(head + 8) != boot->key[0] || load_u64le(head + 16) != boot->key[1])
        return false;
    list->part_count = load_u32le(head + 32);
    return list->part_count > 0 && list->part_count <= KERNEL_LIST_PARTS_MAX &&
           source_load(&list->file, load_u64le(head + 24), (uint64_t)list->part_count * KERNEL_LIST_ROW_BYTES,
                       &list->index, NULL) &&
           kernel_list_hash_index(span_of(head, HASHED_HEAD_BYTES), buffer_span(&list->index)) ==
               load_u64le(head + HASHED_HEAD_BYTES);
}

static struct kernel_list_part part_at(const struct kept_list *list, size_t i)
{
    const uint8_t *row = list->index.data + i * KERNEL_LIST_ROW_BYTES;
    return (struct kernel_list_part){ load_u64le(row), load_u64le(row + 8), load_u64le(row + 16),
                                      load_u64le(row + 24), load_u64le(row + 32) };
}

static bool load_part(struct kept_list *list, const struct kernel_list_part *part)
{
    return source_load(&list->file, part->offset, part->size, &list->text, NULL) &&
           kernel_list_hash(buffer_span(&list->text)) == part->hash;
}

/* The first lines say where the kernel lies, and that it still shows it to us. */
static bool begins_as_live(struct kept_list *list, int live_fd)
{
    char live[LIVE_BYTES];
    struct kernel_list_part first = part_at(list, 0);
    ssize_t size = pread(live_fd, live, sizeof live, 0);
    while (size > 0 && live[size - 1] != '\n')
        size--;
    return size > 0 && load_part(list, &first) &&
           span_equals(span_part(buffer_span(&list->text), 0, (uint64_t)size), span_of(live, (size_t)size));
}

/* Takes the parts that have one of the addresses; false when one is damaged. *out_all: no address is left. */
static bool take_parts(struct kept_list *list, const uint64_t *addrs, size_t count, struct kernel_symbols *s,
                       bool *out_all)
{
    AUTO_FREE bool *covered = mem_alloc(count, sizeof *covered);
    size_t left = count;
    for (size_t i = 0; i < list->part_count; i++) {
        struct kernel_list_part part = part_at(list, i);
        size_t first = sorted_from(addrs, count, part.start);
        if (first == count || addrs[first] >= part.end)
            continue;
        if (!load_part(list, &part))
            return false;
        kernel_symbols_take(s, buffer_span(&list->text));
        for (size_t j = first; j < count && addrs[j] < part.end; j++) {
            left -= !covered[j];
            covered[j] = true;
        }
    }
    *out_all = left == 0;
    return true;
}

static enum kernel_list_answer answer(struct kept_list *list, const uint64_t *addrs, size_t count,
                                      kernel_symbol_fn *emit, void *user, struct kernel_symbols_result *out)
{
    struct kernel_symbols *s = kernel_symbols_begin(addrs, count);
    bool all = false, good = take_parts(list, addrs, count, s, &all);
    /* between two symbols that are far apart something may lie that was not kept */
    all = good && all && kernel_symbols_reach_all(s);
    kernel_symbols_end(s, all ? emit : NULL, user, out);
    return all ? KERNEL_LIST_ANSWERED : good ? KERNEL_LIST_LACKS : KERNEL_LIST_BAD;
}

enum kernel_list_answer kernel_list_resolve(int fd, int live_fd, const struct kernel_boot *boot,
                                            const uint64_t *addrs, size_t count, kernel_symbol_fn *emit,
                                            void *user, struct kernel_symbols_result *out)
{
    struct kept_list list = { 0 };
    enum kernel_list_answer answered = KERNEL_LIST_BAD;
    buffer_init(&list.index, (size_t)KERNEL_LIST_PARTS_MAX * KERNEL_LIST_ROW_BYTES);
    buffer_init(&list.text, KERNEL_LIST_PART_BYTES);
    if (source_over_fd(fd, 0, UINT64_MAX, &list.file, NULL) && read_head(&list, boot) &&
        begins_as_live(&list, live_fd))
        answered = answer(&list, addrs, count, emit, user, out);
    buffer_done(&list.index);
    buffer_done(&list.text);
    return answered;
}
