/*
 * process_code: what code lies where in one running process, as the unwinder asks for it.
 *
 * Told about mappings and jitted methods as they come and go, it opens images and reads methods' unwind data
 * when a stack first leads there. Holds the process's unwinder, too. Belongs to one thread.
 */
#ifndef CLRPERF_UNWIND_PROCESS_CODE_H
#define CLRPERF_UNWIND_PROCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_images.h"
#include "unwind/unwinder.h"

struct process_code;

/* How the process is reached; functions may be NULL: then what they would give is missing. */
struct process_code_access {
    const struct machine *machine; /* it runs on */
    unwind_open_fn *open;          /* the file of an image */
    unwind_close_fn *close;
    unwind_read_fn *read; /* the process's memory; must not wait for ever */
    /* What tells of the method that begins there is about to be read. NULL is fine. */
    void (*follow_method)(void *user, uint64_t begin);
    /*
     * Looks at the process's mappings again, telling process_code_map(): a stack led where nothing was.
     * Memory that becomes executable after it was mapped is reported by nobody. At most every
     * PROCESS_CODE_REFRESH_MS.
     */
    void (*refresh)(void *user);
    /*
     * Finds the method that holds an address of generated code, telling process_code_method(); or that an
     * image was unpacked there, telling process_code_map(). Asked where none is known, without refresh() also
     * where nothing is mapped: for one address again after PROCESS_CODE_ASK_MS, then after twice as long each
     * time. False when nobody could be asked yet: then soon again.
     */
    bool (*find_method)(void *user, uint64_t addr);
    void *user;
};

enum { PROCESS_CODE_REFRESH_MS = 20, PROCESS_CODE_ASK_MS = 250, PROCESS_CODE_SOON_MS = 20 };

enum { PROCESS_CODE_NO_IMAGE = 0 };

/* `images` is borrowed and shared between processes; `access` is copied. */
struct process_code *process_code_new(struct unwind_images *images, const struct process_code_access *access);
void process_code_free(struct process_code *p);

/*
 * Something executable was mapped; it replaces what was there. `image`: the caller's number of its file, or
 * PROCESS_CODE_NO_IMAGE for memory that is generated into.
 */
void process_code_map(struct process_code *p, uint64_t start, uint64_t size_bytes, uint64_t file_off,
                      uint32_t image);
/* The process became another program. */
void process_code_clear(struct process_code *p);
/*
 * A method was jitted. `fleeting`: it can be freed at any time, so its unwind data is read at once, else when
 * it is first needed.
 */
void process_code_method(struct process_code *p, uint64_t start, uint64_t size_bytes, bool fleeting);
void process_code_method_end(struct process_code *p, uint64_t start);

/* As unwinder_run(); after a refresh once more. */
struct unwind_result process_code_unwind(struct process_code *p, const struct unwind_sample *sample,
                                         struct unwind_frame *frames, size_t max);

/* What lies at an address. */
struct unwind_code process_code_at(struct process_code *p, uint64_t addr);

struct process_code_stats {
    uint32_t methods, methods_read, methods_refused;
    uint64_t method_bytes;     /* of memory for unwind data, now */
    uint64_t reads;            /* of the process's memory */
    uint64_t refreshes, asked; /* for methods */
};
struct process_code_stats process_code_stats(const struct process_code *p);

#endif
