#include "symbolize/symbol_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"

enum {
    FILES_MAX = 1 << 16,
    ID_BYTES_MIN = 8, /* less could belong to another build too */
    LEFTOVER_S = 24 * 60 * 60,
};

/* The directory. */

/*
 * `last`: it is the directory itself, in which only we may create and remove. Around it others may do so
 * where the sticky bit keeps them from what is ours.
 */
static bool is_trusted(int fd, const char *path, bool last, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_system(err, errno, "cannot stat '%s'", path);
    bool ours = st.st_uid == geteuid() || (!last && st.st_uid == 0);
    bool shared = st.st_mode & (last ? S_IWGRP | S_IWOTH : S_IWOTH) && (last || !(st.st_mode & S_ISVTX));
    if (ours && !shared)
        return true;
    if (ours)
        error_set(err, ERROR_PERMISSION, "others may write into '%s', so no symbols are kept there", path);
    else
        error_set(err, ERROR_PERMISSION, "'%s' belongs to uid %u, so no symbols are kept there", path,
                  st.st_uid);
    return error_hint(err, "set CLRPERF_SYMBOLS to a directory that is yours alone");
}

/* Goes down from *dir to the directory `name` in it; *dir changes to that. */
static bool step_down(int *dir, const char *name, const char *path, bool last, bool create, struct error *err)
{
    int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH);
    if (create && mkdirat(*dir, name, 0700) < 0 && errno != EEXIST)
        return error_system(err, errno, "cannot create '%s'", path);
    AUTO_FD int fd = openat(*dir, name, flags);
    if (fd < 0)
        return error_system(err, errno, "cannot open '%s'", path);
    if (!is_trusted(fd, path, last, err))
        return false;
    close(*dir);
    *dir = take_fd(&fd);
    return true;
}

/* From the root to the directory; `path` has no links. What lies below `existing` bytes of it is created. */
static bool walk(char *path, size_t existing, int *out_fd, struct error *err)
{
    AUTO_FD int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_system(err, errno, "cannot open '/'");
    for (char *name = path + strspn(path, "/"); *name;) {
        char *end = name + strcspn(name, "/"), *next = end + strspn(end, "/"), ended = *end;
        *end = 0;
        bool ok = step_down(&dir, name, path, *next == 0, (size_t)(end - path) > existing, err);
        *end = ended;
        if (!ok)
            return false;
        name = next;
    }
    *out_fd = take_fd(&dir);
    return true;
}

/* The path of a directory without links, or NULL with errno. The caller frees. */
static char *resolve(const char *path)
{
    char link[40], real[PATH_MAX];
    AUTO_FD int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, real, sizeof real);
    return size < 0 ? NULL : mem_format("%.*s", (int)size, real);
}

/* The longest part of `path` that exists, without links; *out_rest is what lies below. The caller frees. */
static char *resolve_existing(const char *path, const char **out_rest)
{
    size_t size = strlen(path);
    for (;;) {
        AUTO_FREE char *part = mem_format("%.*s", (int)size, size ? path : "/");
        char *real = resolve(size ? part : "/");
        if (real || errno != ENOENT || size == 0) {
            *out_rest = path + size;
            return real;
        }
        while (size && path[size - 1] == '/')
            size--;
        while (size && path[size - 1] != '/')
            size--;
        while (size && path[size - 1] == '/')
            size--;
    }
}

bool symbol_cache_open(const char *path, bool create, struct symbol_cache *out, struct error *err)
{
    const char *rest;
    out->directory_fd = -1;
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return error_set(err, ERROR_USAGE, "'%s' is no absolute path of a directory", path);
    AUTO_FREE char *real = resolve_existing(path, &rest);
    if (!real)
        return error_system(err, errno, "cannot open '%s'", path);
    if (!create && rest[strspn(rest, "/")])
        return error_system(err, ENOENT, "cannot open '%s'", path);
    AUTO_FREE char *whole = mem_format("%s/%s", real, rest);
    return walk(whole, strlen(real), &out->directory_fd, err);
}

void symbol_cache_close(struct symbol_cache *cache)
{
    if (cache->directory_fd >= 0)
        close(cache->directory_fd);
    cache->directory_fd = -1;
}

/* The files. */

static void name_file(const struct symbol_id *id, const char *suffix, char out[SYMBOL_CACHE_NAME_BYTES])
{
    char text[SYMBOL_ID_TEXT_BYTES];
    symbol_id_text(id, text);
    snprintf(out, SYMBOL_CACHE_NAME_BYTES, "%s%s", text, suffix);
}

void symbol_cache_name(const struct symbol_id *id, char out[SYMBOL_CACHE_NAME_BYTES])
{
    name_file(id, id->kind == SYMBOL_PDB ? ".pdb" : ".debug", out);
}

static int open_regular(const struct symbol_cache *cache, const char *name)
{
    struct stat st;
    AUTO_FD int fd =
        openat(cache->directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? take_fd(&fd) : -1;
}

static int find_file(const struct symbol_cache *cache, const char *name)
{
    int fd = open_regular(cache, name);
    if (fd >= 0) /* many file systems are mounted without times of access, but take one that is set */
        (void)!futimens(fd, (struct timespec[2]){ { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } });
    return fd;
}

int symbol_cache_find(const struct symbol_cache *cache, const struct symbol_id *id)
{
    char name[SYMBOL_CACHE_NAME_BYTES];
    if (!cache || cache->directory_fd < 0 || id->size < ID_BYTES_MIN)
        return -1;
    symbol_cache_name(id, name);
    return find_file(cache, name);
}

static const char *const made_suffixes[] = {
    [SYMBOL_CACHE_LINES] = ".lines", [SYMBOL_CACHE_SECTIONS] = ".dwarf", [SYMBOL_CACHE_INDEX] = ".index"
};

int symbol_cache_find_made(const struct symbol_cache *cache, const struct symbol_id *id,
                           enum symbol_cache_made what)
{
    char name[SYMBOL_CACHE_NAME_BYTES];
    if (id->size < ID_BYTES_MIN)
        return -1;
    name_file(id, made_suffixes[what], name);
    return find_file(cache, name);
}

static bool is_unique(const struct symbol_id *id, struct error *err)
{
    return id->size >= ID_BYTES_MIN ||
           error_set(err, ERROR_UNSUPPORTED, "an id of %zu bytes may be that of several builds", id->size);
}

bool symbol_cache_begin(const struct symbol_cache *cache, const struct symbol_id *id,
                        struct replaced_file *out, struct error *err)
{
    char name[SYMBOL_CACHE_NAME_BYTES];
    symbol_cache_name(id, name);
    return is_unique(id, err) && replaced_file_open(cache->directory_fd, name, out, err);
}

bool symbol_cache_begin_made(const struct symbol_cache *cache, const struct symbol_id *id,
                             enum symbol_cache_made what, struct replaced_file *out, struct error *err)
{
    char name[SYMBOL_CACHE_NAME_BYTES];
    name_file(id, made_suffixes[what], name);
    return is_unique(id, err) && replaced_file_open(cache->directory_fd, name, out, err);
}

bool symbol_cache_keep(const struct symbol_id *id, struct replaced_file *file, struct error *err)
{
    struct source written;
    bool ok = source_over_fd(file->fd, 0, UINT64_MAX, &written, err) && symbol_id_check(id, &written, err);
    if (!ok)
        replaced_file_abandon(file);
    return ok && replaced_file_commit(file, err);
}

struct cached_file {
    char name[SYMBOL_CACHE_NAME_BYTES];
    uint64_t size_bytes;
    struct timespec used;
};

static int compare_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct cached_file *)a)->used,
                          *y = &((const struct cached_file *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec > y->tv_sec ? -1 : 1;
    return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

static bool is_suffix(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(made_suffixes); i++)
        if (strcmp(text, made_suffixes[i]) == 0)
            return true;
    return strcmp(text, ".debug") == 0 || strcmp(text, ".pdb") == 0;
}

/* A name that is made here. */
static bool is_cached_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    return digits >= 2 * ID_BYTES_MIN && digits <= 2 * (size_t)ELF_BUILD_ID_MAX && is_suffix(name + digits);
}

static bool is_leftover(const char *name, const struct stat *st)
{
    return strncmp(name, ".clrperf-", 9) == 0 && st->st_mtim.tv_sec < time(NULL) - LEFTOVER_S;
}

size_t symbol_cache_trim(const struct symbol_cache *cache, uint64_t limit_bytes)
{
    struct cached_file *files = NULL;
    size_t count = 0, capacity = 0, removed = 0;
    int fd = openat(cache->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return 0;
    for (struct dirent *entry; count < FILES_MAX && (entry = readdir(dir));) {
        struct stat st;
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (is_leftover(entry->d_name, &st))
            unlinkat(fd, entry->d_name, 0);
        if (!is_cached_name(entry->d_name))
            continue;
        files = mem_grow(files, &capacity, count + 1, sizeof *files);
        files[count] = (struct cached_file){ .size_bytes = (uint64_t)st.st_size, .used = st.st_atim };
        snprintf(files[count++].name, sizeof files->name, "%s", entry->d_name);
    }
    if (count)
        qsort(files, count, sizeof *files, compare_use);
    uint64_t kept_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        kept_bytes += files[i].size_bytes;
        if (i > 0 && kept_bytes > limit_bytes && unlinkat(fd, files[i].name, 0) == 0) {
            kept_bytes -= files[i].size_bytes;
            removed++;
        }
    }
    closedir(dir);
    free(files);
    return removed;
}
