#include "collect/core_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/core_command.h"
#include "collect/core_name.h"
#include "collect/fatal_signal.h"
#include "collect/process_scan.h"
#include "collect/thread_wait.h"
#include "read/bundled_file.h"
#include "read/elf.h"

enum {
    IMAGES_MAX = 1 << 14,
    IMAGES_OPEN_MAX = 512,
    HEADER_BYTES = 4096,
    PE_HEADER_BYTES = 512,
    SEGMENTS_MAX = 64,
    NOTE_SEGMENT = 4,
    LOAD_SEGMENT = 1,
    NOTES_BYTES_MAX = 4096,
    WAIT_PAGES_BYTES_MAX = 4 << 20,
    NOTE_BUILD_ID = 3,
    COMMAND_BYTES_MAX = CORE_COMMAND_ARGUMENTS_MAX * (CORE_COMMAND_ARGUMENT_BYTES_MAX + 1) + 1,
};

/* What a file was, as far as the dump tells. */

/* Finds the build id among the notes of an image in memory. */
static bool find_build_id(struct span notes, uint8_t *id, size_t *out_size)
{
    struct cursor c = cursor_over(notes);
    while (cursor_left(&c) >= 12) {
        uint32_t name_bytes = cursor_u32le(&c), bytes = cursor_u32le(&c), type = cursor_u32le(&c);
        struct span name = cursor_bytes(&c, ((uint64_t)name_bytes + 3) & ~UINT64_C(3));
        struct span desc = cursor_bytes(&c, ((uint64_t)bytes + 3) & ~UINT64_C(3));
        if (!cursor_ok(&c))
            return false;
        if (type != NOTE_BUILD_ID || name_bytes != 4 || memcmp(name.data, "GNU", 4) != 0 || !desc.data ||
            bytes > ELF_BUILD_ID_MAX)
            continue;
        memcpy(id, desc.data, bytes);
        *out_size = bytes;
        return true;
    }
    return false;
}

/* The build id that the dump's memory has of the ELF image at `base`. */
static bool dumped_build_id(const struct core_target *target, uint64_t base, struct span header, uint8_t *id,
                            size_t *out_size)
{
    uint64_t first = UINT64_MAX;
    struct cursor c = cursor_over(header);
    cursor_seek(&c, 32);
    uint64_t at = cursor_u64le(&c);
    cursor_seek(&c, 56);
    unsigned count = cursor_u16le(&c);
    for (unsigned pass = 0; pass < 2; pass++) {
        cursor_seek(&c, at);
        for (unsigned i = 0; i < count && i < SEGMENTS_MAX && cursor_ok(&c); i++) {
            uint8_t notes[NOTES_BYTES_MAX];
            uint32_t type = cursor_u32le(&c);
            cursor_skip(&c, 12);
            uint64_t addr = cursor_u64le(&c);
            cursor_skip(&c, 8);
            uint64_t bytes = cursor_u64le(&c);
            cursor_skip(&c, 16);
            if (!cursor_ok(&c))
                return false;
            if (type == LOAD_SEGMENT && addr < first)
                first = addr;
            if (pass == 0 || type != NOTE_SEGMENT || first == UINT64_MAX || bytes > sizeof notes)
                continue;
            if (memory_read(&target->core.memory, base + (addr - first), notes, (size_t)bytes) &&
                find_build_id(span_of(notes, (size_t)bytes), id, out_size))
                return true;
        }
    }
    return false;
}

static enum core_image_state compare_elf(const struct core_target *target, uint64_t base, struct span header,
                                         const struct source *file)
{
    uint8_t dumped[ELF_BUILD_ID_MAX], found[ELF_BUILD_ID_MAX];
    size_t dumped_size, found_size;
    struct elf elf;
    if (!dumped_build_id(target, base, header, dumped, &dumped_size))
        return CORE_IMAGE_UNCHECKED;
    if (!elf_open(file, &elf, NULL))
        return CORE_IMAGE_OTHER;
    bool same = elf_build_id(&elf, found, &found_size) && found_size == dumped_size &&
                memcmp(found, dumped, found_size) == 0;
    elf_done(&elf);
    return same ? CORE_IMAGE_SAME : CORE_IMAGE_OTHER;
}

/* The lowest mapping of the start of a file. */
static const struct memory_mapping *first_mapping(const struct core_target *target, const char *path)
{
    for (size_t i = 0; i < target->core.memory.mapping_count; i++) {
        const struct memory_mapping *m = &target->core.memory.mappings[i];
        if (m->file_off == 0 && strcmp(m->path, path) == 0)
            return m;
    }
    return NULL;
}

static enum core_image_state compare(const struct core_target *target, const char *path,
                                     const struct source *file)
{
    uint8_t header[HEADER_BYTES], own[PE_HEADER_BYTES];
    const struct memory_mapping *m = first_mapping(target, path);
    if (!m || !memory_read(&target->core.memory, m->start, header, sizeof header))
        return CORE_IMAGE_UNCHECKED;
    if (memcmp(header, "\177ELF", 4) == 0)
        return compare_elf(target, m->start, span_of(header, sizeof header), file);
    return source_read(file, 0, own, sizeof own, NULL) && memcmp(own, header, sizeof own) == 0
               ? CORE_IMAGE_SAME
               : CORE_IMAGE_OTHER;
}

static void open_image(const struct core_target *target, struct core_image *image)
{
    AUTO_FD int fd = open(image->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    struct source file;
    image->state = CORE_IMAGE_MISSING;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        !source_over_fd(fd, 0, UINT64_MAX, &file, NULL))
        return;
    image->state = compare(target, image->path, &file);
    if (image->state == CORE_IMAGE_UNCHECKED && st.st_mtim.tv_sec > target->modified_s)
        image->state = CORE_IMAGE_OTHER;
    if (image->state == CORE_IMAGE_SAME || image->state == CORE_IMAGE_UNCHECKED)
        image->fd = take_fd(&fd);
}

/* Memory that has the name of a file: /memfd:doublemapper, /dev/zero, /SYSV00000000. */
static bool is_file(const char *path)
{
    return path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/", 5) != 0 &&
           strncmp(path, "/SYSV", 5) != 0;
}

/* The image of that path, opened and compared once; NULL when there are too many. */
static struct core_image *image_of(struct core_target *target, const char *path)
{
    for (size_t i = 0; i < target->image_count; i++)
        if (target->images[i].path == path || strcmp(target->images[i].path, path) == 0)
            return &target->images[i];
    if (target->image_count == IMAGES_MAX || target->image_count == IMAGES_OPEN_MAX)
        return NULL;
    const char *kept = arena_string(&target->core.names, span_of(path, strlen(path)));
    if (!kept)
        return NULL;
    target->images =
        mem_grow(target->images, &target->image_capacity, target->image_count + 1, sizeof *target->images);
    struct core_image *image = &target->images[target->image_count++];
    *image = (struct core_image){ .path = kept, .fd = -1 };
    image->state = CORE_IMAGE_MISSING;
    if (is_file(path))
        open_image(target, image);
    return image;
}

static int open_of_image(void *user, const char *path)
{
    struct core_image *image = image_of(user, path);
    return image && image->fd >= 0 ? fcntl(image->fd, F_DUPFD_CLOEXEC, 3) : -1;
}

int core_target_open_file(struct core_target *target, const char *path)
{
    int fd = open_of_image(target, path);
    return fd >= 0 ? fd : bundled_file_open(path, open_of_image, target);
}

size_t core_target_images(const struct core_target *target, enum core_image_state state,
                          const char **out_example)
{
    size_t count = 0;
    for (size_t i = 0; i < target->image_count; i++)
        if (target->images[i].state == state && is_file(target->images[i].path) &&
            first_mapping(target, target->images[i].path) && count++ == 0)
            *out_example = target->images[i].path;
    return count;
}

/* Memory. */

/* Bytes of a file that were mapped read-only, and so were left out of the dump. */
static void read_from_file(struct core_target *target, struct memory_piece *piece)
{
    while (piece->got < piece->size) {
        uint64_t at = piece->addr + piece->got;
        const struct memory_mapping *m = memory_mapping_at(&target->core.memory, at);
        if (!m || m->writable || m->path[0] != '/')
            return;
        struct core_image *image = image_of(target, m->path);
        struct source file;
        size_t left = piece->size - piece->got, part = m->end - at < left ? (size_t)(m->end - at) : left;
        if (part > HEADER_BYTES - at % HEADER_BYTES) /* the dump may have the next page */
            part = (size_t)(HEADER_BYTES - at % HEADER_BYTES);
        if (!image || image->fd < 0 || !source_over_fd(image->fd, 0, UINT64_MAX, &file, NULL) ||
            !source_read(&file, m->file_off + (at - m->start), (uint8_t *)piece->into + piece->got, part,
                         NULL))
            return;
        piece->got += part;
        struct memory_piece rest = { .addr = piece->addr + piece->got,
                                     .into = (uint8_t *)piece->into + piece->got,
                                     .size = piece->size - piece->got };
        target->core.memory.read(target->core.memory.user, &rest, rest.size ? 1 : 0);
        piece->got += rest.got;
    }
}

static void read_target(void *user, struct memory_piece *pieces, size_t count)
{
    struct core_target *target = user;
    target->core.memory.read(target->core.memory.user, pieces, count);
    for (size_t i = 0; i < count; i++)
        if (pieces[i].got < pieces[i].size)
            read_from_file(target, &pieces[i]);
}

/* The target. */

/* The executable's file: where the auxiliary vector says that the process began. */
static const char *executable_of(const struct core_file *core)
{
    const struct memory_mapping *m =
        memory_mapping_at(&core->memory, core_file_auxiliary(core, CORE_AUXILIARY_ENTRY));
    return m ? m->path : "";
}

/* Which runtime a mapped file holds; its version is kept. */
static enum runtime_kind scan_image(struct core_target *target, const char *path)
{
    const struct core_image *image = path[0] ? image_of(target, path) : NULL;
    enum runtime_kind kind = RUNTIME_NONE;
    struct source file;
    if (image && image->fd >= 0 && source_over_fd(image->fd, 0, UINT64_MAX, &file, NULL))
        runtime_version_scan(&file, &kind, &target->version, NULL);
    return kind;
}

static void find_runtime(struct core_target *target)
{
    for (size_t i = 0; i < target->core.memory.mapping_count; i++) {
        const char *path = target->core.memory.mappings[i].path, *slash = strrchr(path, '/');
        if (!slash || strcmp(slash + 1, "libcoreclr.so") != 0)
            continue;
        target->runtime = RUNTIME_CORECLR;
        if (!runtime_version_from_path(span_of(path, strlen(path)), &target->version))
            scan_image(target, path);
        return;
    }
    target->runtime = scan_image(target, executable_of(&target->core));
}

bool core_target_open(const char *path, struct core_target *out, struct error *err)
{
    struct source file;
    struct stat st;
    *out = (struct core_target){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) };
    if (out->fd < 0)
        return error_system(err, errno, "cannot open '%s'", path);
    bool ok = (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode)) ||
              error_set(err, ERROR_INPUT, "not a core dump: no regular file");
    ok = ok && source_over_fd(out->fd, 0, UINT64_MAX, &file, err) && core_file_open(&file, &out->core, err);
    if (!ok) {
        error_context(err, "'%s'", path);
        close(out->fd);
        return false;
    }
    out->modified_s = st.st_mtim.tv_sec;
    out->memory = out->core.memory;
    out->memory.read = read_target;
    out->memory.user = out;
    find_runtime(out);
    return true;
}

void core_target_close(struct core_target *target)
{
    for (size_t i = 0; i < target->image_count; i++)
        if (target->images[i].fd >= 0)
            close(target->images[i].fd);
    free(target->images);
    core_file_close(&target->core);
    close(target->fd);
}

static bool open_source(void *user, const char *path, struct source *out)
{
    int fd = core_target_open_file(user, path);
    if (fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, out, NULL))
        return true;
    if (fd >= 0)
        close(fd);
    return false;
}

static void close_source(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

/* A dump that does not tell its process: any number that no thread of it has. */
static pid_t pid_of(const struct core_target *target)
{
    return target->core.pid > 0 ? target->core.pid : target->core.threads[0].tid;
}

struct stacks_target core_target_stacks(struct core_target *target)
{
    return (struct stacks_target){
        .pid = pid_of(target),
        .machine = machine_of_elf(target->core.machine),
        .memory = &target->memory,
        .files = { open_source, close_source, target },
        .is_dump = true,
    };
}

static void take_stack(const struct core_target *target, struct taken_thread *thread)
{
    uint64_t sp = thread->registers.general.sp;
    const struct memory_mapping *m = memory_mapping_at(&target->core.memory, sp);
    size_t size = thread_registers_stack_bytes(&thread->registers, m ? m->end : 0);
    thread->stack = mem_alloc(size + 1, 1);
    struct memory_piece piece = { .addr = sp, .into = thread->stack, .size = size };
    target->core.memory.read(target->core.memory.user, &piece, 1);
    thread->stack_bytes = piece.got;
    if (piece.got == 0)
        thread->problem = mem_copy_string("its stack is not in the dump");
}

/* Of the first thread that has one: that is the one that was at fault. */
static void take_signal(const struct core_target *target, const struct core_thread *core,
                        struct taken_thread *thread)
{
    const struct core_fault *fault = &target->core.fault;
    for (const struct core_thread *before = target->core.threads; before != core; before++)
        if (fatal_signal_name(before->signal))
            return;
    thread->signal = fatal_signal_name(core->signal);
    thread->has_fault = thread->signal && fault->signal == core->signal && fault->has_addr;
    thread->fault_addr = fault->addr;
}

static void take_thread(struct core_target *target, struct memory_pages *pages,
                        const struct core_thread *core, struct taken_thread *thread)
{
    struct thread_wait_sources sources = { pages, NULL, NULL };
    thread_registers_read(machine_of_elf(target->core.machine),
                          span_of(core->user_regs, sizeof core->user_regs), &thread->registers);
    taken_thread_describe_wait(thread, &sources);
    thread->name = mem_copy_string("");
    take_signal(target, core, thread);
    take_stack(target, thread);
}

void core_target_take(struct core_target *target, struct process_stacks *stacks, pid_t only_tid)
{
    struct memory_pages pages;
    taken_threads_renew(&stacks->threads);
    memory_pages_init(&pages, &target->memory, WAIT_PAGES_BYTES_MAX);
    for (size_t i = 0; i < target->core.thread_count; i++) {
        const struct core_thread *core = &target->core.threads[i];
        if (!only_tid || core->tid == only_tid)
            take_thread(target, &pages, core, taken_threads_add(&stacks->threads, core->tid));
        else
            taken_threads_add_other(&stacks->threads, core->tid, core->tid);
    }
    memory_pages_done(&pages);
}

/* As /proc/PID/cmdline; from the stack, else what the dump's own words have of it. */
static void read_command(const struct core_file *core, struct buffer *out)
{
    if (core_command_read(core, out) || !core->command_line[0])
        return;
    buffer_clear(out);
    buffer_string(out, core->command_line);
    while (out->size && out->data[out->size - 1] == ' ')
        out->size--;
    buffer_u8(out, 0);
    for (size_t i = 0; i < out->size; i++)
        out->data[i] = out->data[i] == ' ' ? 0 : out->data[i];
}

uint32_t core_target_describe(const struct core_target *target, struct trace_builder *b)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t process = trace_builder_process_start(b, (uint32_t)pid_of(target), now_ns);
    struct trace_process *row = &b->trace.processes.rows[process];
    struct buffer command;
    buffer_init(&command, COMMAND_BYTES_MAX);
    read_command(&target->core, &command);
    AUTO_FREE char *name = core_name_new(target->core.name, buffer_span(&command));
    for (size_t i = 0; i < command.size; i++)
        command.data[i] = command.data[i] ? command.data[i] : ' ';
    command.size -= command.size > 0; /* what ends the last */
    buffer_u8(&command, 0);
    row->name = trace_add_string(&b->trace, name);
    row->command_line = trace_add_string(&b->trace, (const char *)command.data);
    buffer_done(&command);
    row->runtime_version =
        trace_add_string(&b->trace, runtime_version_or_kind(target->runtime, &target->version));
    process_scan_add_memory(b, process, &target->memory, now_ns);
    return process;
}
