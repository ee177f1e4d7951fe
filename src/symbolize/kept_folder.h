/*
 * kept_folder: the directory of what was made of files at some cost, kept for the next look at the same
 * files.
 *
 * Files are named as symbolize/symbol_cache.h has it, and the directory is held to its rules; it is created
 * when there is something to keep. Those that were used longest ago go until the rest takes at most
 * KEPT_FOLDER_BYTES_MAX. Where nothing can be kept all is as without it.
 */
#ifndef CLRPERF_SYMBOLIZE_KEPT_FOLDER_H
#define CLRPERF_SYMBOLIZE_KEPT_FOLDER_H

#include "symbolize/symbol_cache.h"

enum { KEPT_FOLDER_BYTES_MAX = 64 << 20 };

struct kept_folder {
    char *path; /* absolute; NULL: there is none, nothing is found or kept. Owned */
};

/* `path` is copied; NULL is fine. */
void kept_folder_init(struct kept_folder *folder, const char *path);
void kept_folder_done(struct kept_folder *folder);

/* An open file that the caller closes; -1: none, or `folder` is NULL. */
int kept_folder_find(const struct kept_folder *folder, const struct symbol_id *id,
                     enum symbol_cache_made what);

/* Fills an empty file. */
typedef bool kept_write_fn(void *user, int fd);
/* Puts a new file in the place of the one there, or leaves that. `folder` may be NULL. */
bool kept_folder_save(const struct kept_folder *folder, const struct symbol_id *id,
                      enum symbol_cache_made what, kept_write_fn *write, void *user, struct error *err);

#endif
