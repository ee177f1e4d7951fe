/* Unwinds this very process: its own code, the C library's callbacks, signals. x86-64 only. */
#include <execinfo.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/procfs.h"
#include "unwind/process_code.h"

enum { FRAMES_MAX = 128, FILES_MAX = 128, STACK_BYTES = 16 << 10, MAPS_BYTES = 4 << 20 };

static char *files[FILES_MAX];
static uint32_t file_count = 1;

static struct {
    struct unwind_registers registers;
    uint8_t stack[STACK_BYTES];
    size_t stack_bytes;
} captured;

static uint64_t stack_top; /* bytes above are not read */

/* Takes the registers and the stack of its caller, as an interrupt would. */
__attribute__((noinline, no_sanitize("address", "undefined"))) static void capture_stack(void)
{
    uint64_t sp = captured.registers.sp;
    captured.stack_bytes = 0;
    for (uint64_t at = sp; at + 8 <= stack_top && captured.stack_bytes + 8 <= STACK_BYTES; at += 8) {
        *(uint64_t *)(captured.stack + captured.stack_bytes) = *(volatile uint64_t *)(uintptr_t)at;
        captured.stack_bytes += 8;
    }
}

#ifdef __x86_64__
#define CAPTURE()                                                                                            \
    do {                                                                                                     \
        __asm__ volatile("lea 0(%%rip), %%rax\n\tmov %%rax, %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"            \
                         : "=m"(captured.registers.ip), "=m"(captured.registers.sp),                         \
                           "=m"(captured.registers.fp)                                                       \
                         :                                                                                   \
                         : "rax", "memory");                                                                 \
        __asm__ volatile("mov %%rbx, %0\n\tmov %%r12, %1\n\tmov %%r13, %2\n\tmov %%r14, %3\n\tmov %%r15, %4" \
                         : "=m"(captured.registers.numbered[3]), "=m"(captured.registers.numbered[12]),      \
                           "=m"(captured.registers.numbered[13]), "=m"(captured.registers.numbered[14]),     \
                           "=m"(captured.registers.numbered[15]));                                           \
        capture_stack();                                                                                     \
    } while (0)
#else
#define CAPTURE()                                                                                            \
    do {                                                                                                     \
        __asm__ volatile("adr x9, .\n\tstr x9, %0\n\tmov x9, sp\n\tstr x9, %1\n\tstr x29, %2\n\tstr x30, %3" \
                         : "=m"(captured.registers.ip), "=m"(captured.registers.sp),                         \
                           "=m"(captured.registers.fp), "=m"(captured.registers.link)                        \
                         :                                                                                   \
                         : "x9", "memory");                                                                  \
        capture_stack();                                                                                     \
    } while (0)
#endif

static bool open_image(void *user, uint32_t image, struct source *out)
{
    (void)user;
    if (strcmp(files[image], "[vdso]") == 0)
        return unwind_vdso(out);
    int fd = open(files[image], O_RDONLY | O_CLOEXEC);
    return fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, out, NULL);
}

static void close_image(void *user, struct source *file)
{
    (void)user;
    if (file->fd >= 0)
        close(file->fd);
}

__attribute__((no_sanitize("address"))) static bool read_self(void *user, uint64_t addr, void *into,
                                                              size_t size)
{
    (void)user;
    for (size_t i = 0; i < size; i++)
        ((volatile uint8_t *)into)[i] = ((const volatile uint8_t *)(uintptr_t)addr)[i];
    return true;
}

static void map_all(struct process_code *code)
{
    AUTO_STREAM FILE *file = fopen("/proc/self/maps", "re");
    AUTO_FREE char *text = mem_alloc(1, MAPS_BYTES);
    assert_non_null(file);
    struct span rest = span_of(text, fread(text, 1, MAPS_BYTES, file));
    struct proc_mapping m;
    while (procfs_next_mapping(&rest, &m, NULL)) {
        if ((uintptr_t)&rest >= m.start && (uintptr_t)&rest < m.end)
            stack_top = m.end;
        if (!m.executable)
            continue;
        uint32_t image = PROCESS_CODE_NO_IMAGE;
        if (m.path.size && file_count < FILES_MAX) {
            image = file_count;
            files[file_count++] = mem_format("%.*s", (int)m.path.size, (const char *)m.path.data);
        }
        process_code_map(code, m.start, m.end - m.start, m.file_off, image);
    }
}

struct fixture {
    struct unwind_images *images;
    struct process_code *code;
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_result result;
};

static void unwind(struct fixture *f)
{
    struct unwind_sample sample = { .registers = &captured.registers,
                                    .stack = span_of(captured.stack, captured.stack_bytes) };
    f->result = process_code_unwind(f->code, &sample, f->frames, FRAMES_MAX);
}

/* How many frames further out the next one inside `function` is, from `from` on. */
static size_t frame_of(const struct fixture *f, size_t from, const void *function)
{
    for (size_t i = from; i < f->result.count; i++) {
        struct unwind_code code = process_code_at(f->code, f->frames[i].ip - 1);
        uint64_t start, end;
        if (code.kind == UNWIND_CODE_ELF &&
            elf_unwind_function(code.elf, f->frames[i].ip - 1 - code.bias, &start, &end) &&
            start + code.bias == (uintptr_t)function)
            return i;
    }
    fail_msg("a caller is missing");
    return 0;
}

static void test_whole(void **state)
{
    struct fixture *f = *state;
    CAPTURE();
    unwind(f);
    assert_int_equal(f->result.end, UNWIND_END_ROOT);
    assert_int_equal(frame_of(f, 0, (const void *)test_whole), 0);
    for (size_t i = 1; i < f->result.count; i++)
        assert_int_equal(f->frames[i].found, UNWIND_FOUND_CFI);
}

static void *others[FRAMES_MAX]; /* the same stack, as libgcc unwinds it */
static int other_count;

static int compare_and_capture(const void *a, const void *b)
{
    if (captured.stack_bytes == 0) {
        other_count = backtrace(others, FRAMES_MAX);
        CAPTURE();
    }
    return *(const int *)a - *(const int *)b;
}

/* qsort keeps no frame pointer: by frame pointers its callers' order would be lost. */
static void test_callback(void **state)
{
    struct fixture *f = *state;
    int numbers[] = { 5, 3, 9, 1 };
    captured.stack_bytes = 0;
    qsort(numbers, ARRAY_LEN(numbers), sizeof *numbers, compare_and_capture);
    unwind(f);
    assert_int_equal(f->result.end, UNWIND_END_ROOT);
    assert_int_equal(frame_of(f, 0, (const void *)compare_and_capture), 0);
    assert_true(frame_of(f, 1, (const void *)test_callback) >= 2); /* the C library is between them */
    size_t skipped = 0; /* a sanitizer puts frames of its own in front */
    while (skipped < (size_t)other_count && (uint64_t)(uintptr_t)others[skipped] != f->frames[1].ip)
        skipped++;
    assert_int_equal(other_count - (int)skipped, f->result.count - 1);
    for (size_t i = 1; i < f->result.count; i++)
        assert_int_equal((uintptr_t)others[skipped + i - 1], f->frames[i].ip);
}

static void on_signal(int number)
{
    (void)number;
    CAPTURE();
}

__attribute__((noinline)) static void raise_signal(void)
{
    raise(SIGUSR1);
    __asm__ volatile("");
}

static void test_signal(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = { .sa_handler = on_signal }, before;
    sigaction(SIGUSR1, &action, &before);
    raise_signal();
    sigaction(SIGUSR1, &before, NULL);
    unwind(f);
    assert_int_equal(f->result.end, UNWIND_END_ROOT);
    size_t handler = frame_of(f, 0, (const void *)on_signal),
           caller = frame_of(f, 1, (const void *)raise_signal);
    size_t exact = 0;
    for (size_t i = handler + 1; i < caller; i++)
        exact += f->frames[i].exact;
    assert_int_equal(exact, 2); /* what the handler returns to, and what was interrupted */
    assert_true(frame_of(f, caller + 1, (const void *)test_signal) == caller + 1);
}

static int descend(int depth);
static int (*volatile descend_again)(int) = descend; /* so that the compiler leaves the recursion as it is */

static int descend(int depth)
{
    int value = depth;
    if (depth)
        value += descend_again(depth - 1);
    else
        CAPTURE();
    __asm__ volatile("" : "+r"(value));
    return value;
}

static void test_recursion(void **state)
{
    struct fixture *f = *state;
    enum { DEPTH = 20 };
    descend_again(DEPTH);
    unwind(f);
    assert_int_equal(f->result.end, UNWIND_END_ROOT);
    for (size_t i = 0; i <= DEPTH; i++)
        assert_int_equal(frame_of(f, i, (const void *)descend), i);
    assert_int_equal(frame_of(f, DEPTH + 1, (const void *)test_recursion), DEPTH + 1);
}

/* With fewer bytes the same frames, fewer of them; the kernel's chain continues. */
static void test_cut(void **state)
{
    struct fixture *f = *state;
    descend_again(10);
    unwind(f);
    struct unwind_frame whole[FRAMES_MAX];
    uint64_t chain[FRAMES_MAX];
    size_t count = f->result.count, bytes = captured.stack_bytes;
    memcpy(whole, f->frames, sizeof whole);
    for (size_t i = 0; i < count; i++)
        chain[i] = whole[i].ip;
    for (size_t size = 0; size < bytes && size < 4096; size += 24) {
        struct unwind_sample sample = { &captured.registers, span_of(captured.stack, size), NULL, 0 };
        struct unwind_result r = process_code_unwind(f->code, &sample, f->frames, FRAMES_MAX);
        assert_true(r.count <= count);
        for (size_t i = 0; i < r.count; i++)
            assert_int_equal(f->frames[i].ip, whole[i].ip);
        if (r.end == UNWIND_END_ROOT)
            break;
        assert_int_equal(r.end, UNWIND_END_CUT);
        sample.kernel_chain = chain;
        sample.kernel_count = count;
        r = process_code_unwind(f->code, &sample, f->frames, FRAMES_MAX);
        assert_int_equal(r.end, UNWIND_END_ROOT);
        assert_int_equal(r.count, count);
        for (size_t i = 0; i < r.count; i++)
            assert_int_equal(f->frames[i].ip, whole[i].ip);
    }
}

static void note_followed(void *user, uint64_t begin)
{
    *(uint64_t *)user = begin;
}

static void test_mappings(void **state)
{
    (void)state;
    struct unwind_images *images = unwind_images_new();
    uint64_t followed = 0;
    struct process_code *code = process_code_new(
        images, &(struct process_code_access){
                    .machine = machine_own(), .follow_method = note_followed, .user = &followed });
    process_code_map(code, 0x1000, 0x3000, 0, 0);
    process_code_map(code, 0x2000, 0x1000, 0, 0); /* in its middle */
    process_code_map(code, 0x0800, 0x1000, 0, 0); /* over its start */
    assert_int_equal(process_code_at(code, 0x7ff).kind, UNWIND_CODE_NONE);
    assert_int_equal(process_code_at(code, 0x800).kind, UNWIND_CODE_OTHER);
    assert_int_equal(process_code_at(code, 0x3fff).kind, UNWIND_CODE_OTHER);
    assert_int_equal(process_code_at(code, 0x4000).kind, UNWIND_CODE_NONE);
    process_code_map(code, UINT64_MAX - 8, 16, 0, 0); /* no such range */
    process_code_method(code, 0x2000, 0x100, true);   /* its memory cannot be read */
    assert_int_equal(followed, 0x2000);
    assert_int_equal(process_code_at(code, 0x2010).kind, UNWIND_CODE_OTHER);
    assert_int_equal(process_code_stats(code).methods_refused, 1);
    process_code_method_end(code, 0x2000);
    process_code_method_end(code, 0x2000);
    process_code_clear(code);
    assert_int_equal(process_code_at(code, 0x800).kind, UNWIND_CODE_NONE);
    process_code_free(code);
    unwind_images_free(images);
}

/* Where one of its functions starts. */
static bool take_function(void *user, const struct elf_symbol *symbol)
{
    if (symbol->type == ELF_SYMBOL_FUNCTION && symbol->size_bytes)
        *(uint64_t *)user = symbol->addr;
    return true;
}

static uint64_t vdso_function(const struct source *file)
{
    struct elf e;
    struct source table;
    struct buffer unpacked;
    uint64_t addr = 0;
    buffer_init(&unpacked, 1 << 16);
    assert_true(elf_open(file, &e, NULL));
    assert_true(elf_section_source(&e, elf_section_of_type(&e, ELF_SECTION_DYNSYM), &unpacked, &table, NULL));
    elf_symbols(&table, take_function, &addr, NULL);
    elf_done(&e);
    buffer_done(&unpacked);
    return addr;
}

static void test_vdso(void **state)
{
    (void)state;
    struct source file;
    struct elf_unwind *vdso;
    struct error err;
    if (!unwind_vdso(&file))
        skip();
    if (!elf_unwind_open(&file, &vdso, &err))
        fail_msg("%s", err.what);
    uint64_t start = 0, end = 0;
    assert_true(elf_unwind_function(vdso, vdso_function(&file), &start, &end));
    assert_true(end > start);
    elf_unwind_close(vdso);
}

static struct process_code *refreshed;
static unsigned refreshes;

static void refresh(void *user)
{
    (void)user;
    refreshes++;
    process_code_map(refreshed, 0x5000, 0x1000, 0, 0);
}

/* Memory that became executable without being told of: found by looking again, not too often. */
static void test_refresh(void **state)
{
    (void)state;
    struct unwind_images *images = unwind_images_new();
    refreshed = process_code_new(images, &(struct process_code_access){ machine_own(), .refresh = refresh });
    struct unwind_registers registers = { 0 };
    uint64_t stack[] = { 0x5010, 0x9010, 0 };
    registers.ip = 0x5008;
    registers.sp = 0x10000;
    registers.fp = 0x10000;
    stack[0] = 0x10000; /* saved frame pointer: its own place leads nowhere */
    stack[1] = 0x5010;
    struct unwind_sample sample = { &registers, span_of(stack, sizeof stack), NULL, 0 };
    struct unwind_frame frames[8];
    struct unwind_result r = process_code_unwind(refreshed, &sample, frames, 8);
    assert_int_equal(refreshes, 1);
    assert_int_equal(r.count, 2);
    assert_int_equal(frames[1].ip, 0x5010);
    assert_int_equal(frames[1].found, UNWIND_FOUND_FRAME_POINTER);
    stack[1] = 0x9010; /* still nowhere, but it is too early to look again */
    process_code_unwind(refreshed, &sample, frames, 8);
    assert_int_equal(refreshes, 1);
    process_code_free(refreshed);
    unwind_images_free(images);
}

enum { METHODS = 0x100000, METHOD_BYTES = 0x100, HEADERS = 0x900000, INFOS = 0x4000, HEADER_BYTES = 0x40 };

/* Jitted methods beside each other, and what is told of while one of them is read. */
struct methods {
    struct process_code *code;
    unsigned others;  /* these many, before it */
    bool same;        /* it itself, once more */
    unsigned follows; /* how often it was asked */
};

static uint64_t method_at(uint64_t i)
{
    return METHODS + i * METHOD_BYTES;
}

/* As the JIT leaves them: a word before the code leads to a header with one function, that to its codes. */
static bool read_methods(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user;
    static const uint8_t info[] = { 1, 5, 2, 0, 5, 0x12, 1, 0x50 };
    static const uint32_t table[] = { 1, 0x1000, 0x1000 + METHOD_BYTES, 0x1000 + INFOS };
    uint8_t memory[HEADER_BYTES] = { 0 };
    uint64_t at = addr % METHOD_BYTES;
    memset(into, 0, size);
    if (addr >= HEADERS) {
        memcpy(memory + 0x20, table, sizeof table);
        at = (addr - HEADERS) % HEADER_BYTES;
    } else if (at == METHOD_BYTES - 8) {
        uint64_t header = HEADERS + (addr + 8 - METHODS) / METHOD_BYTES * HEADER_BYTES;
        memcpy(memory, &header, sizeof header);
        at = 0;
    } else {
        memcpy(memory, info, sizeof info);
    }
    if (at + size > sizeof memory)
        return false;
    memcpy(into, memory + at, size);
    return true;
}

static void tell_methods(void *user, uint64_t begin)
{
    struct methods *m = user;
    m->follows++;
    for (unsigned i = m->others; i-- > 0;)
        process_code_method(m->code, method_at(i), METHOD_BYTES, false);
    if (m->same)
        process_code_method(m->code, begin, METHOD_BYTES, true);
}

static bool find_one(void *user, uint64_t addr)
{
    struct methods *m = user;
    m->follows++;
    if (addr - method_at(0) < METHOD_BYTES)
        process_code_method(m->code, method_at(0), METHOD_BYTES, false);
    return true;
}

/* perf lists what is mapped a moment before it samples: a code heap has grown since, and nothing tells of it.
 */
static void test_unmapped_method(void **state)
{
    (void)state;
    struct methods m = { 0 };
    struct unwind_images *images = unwind_images_new();
    m.code = process_code_new(images, &(struct process_code_access){ .machine = machine_of_elf(ELF_X86_64),
                                                                     .read = read_methods,
                                                                     .find_method = find_one,
                                                                     .user = &m });
    process_code_map(m.code, METHODS - METHOD_BYTES, METHOD_BYTES, 0, PROCESS_CODE_NO_IMAGE);
    assert_int_equal(process_code_at(m.code, method_at(0) + 8).kind, UNWIND_CODE_JITTED);
    assert_int_equal(process_code_at(m.code, method_at(1)).kind, UNWIND_CODE_NONE);
    assert_int_equal(process_code_at(m.code, method_at(1)).kind, UNWIND_CODE_NONE);
    assert_int_equal(m.follows, 2); /* once each */
    process_code_free(m.code);
    unwind_images_free(images);
}

/* Who is asked for what a method needs can tell of methods, which moves the one that is being read. */
static void test_told_while_read(void **state)
{
    (void)state;
    enum { OTHERS = 600, METHOD = OTHERS };
    struct methods m = { .others = OTHERS, .same = true };
    struct unwind_images *images = unwind_images_new();
    m.code = process_code_new(images, &(struct process_code_access){ .machine = machine_of_elf(ELF_X86_64),
                                                                     .read = read_methods,
                                                                     .follow_method = tell_methods,
                                                                     .user = &m });
    process_code_map(m.code, METHODS, (OTHERS + 2) * METHOD_BYTES, 0, PROCESS_CODE_NO_IMAGE);
    process_code_method(m.code, method_at(METHOD), METHOD_BYTES, false);
    struct unwind_code code = process_code_at(m.code, method_at(METHOD) + 8);
    assert_int_equal(code.kind, UNWIND_CODE_JITTED);
    struct unwind_function function;
    assert_true(jit_unwind_find(code.jit, method_at(METHOD) + 8, &function));
    assert_int_equal(function.begin, method_at(METHOD));
    assert_int_equal(m.follows, 1);
    assert_int_equal(process_code_stats(m.code).methods_read, 1);
    assert_int_equal(process_code_stats(m.code).method_bytes, jit_unwind_bytes(code.jit));
    process_code_free(m.code); /* with all that was read */
    unwind_images_free(images);
}

enum { STUBS = 0x100000, STUBS_BYTES = 0x200000, STUB_BYTES = 0x1000, CALL_AT = 0x80 };

/* Generated code: pages with a call each, or with none. */
struct stubs {
    bool calls;
    size_t reads;
};

static bool read_stubs(void *user, uint64_t addr, void *into, size_t size)
{
    static const uint8_t call[] = { 0xff, 0x15, 0, 0, 0, 0 };
    struct stubs *stubs = user;
    stubs->reads++;
    for (size_t i = 0; i < size; i++) {
        uint64_t at = (addr + i) % STUB_BYTES + sizeof call - CALL_AT;
        ((uint8_t *)into)[i] = stubs->calls && at < sizeof call ? call[at] : 0x90;
    }
    return true;
}

static size_t frames_in_stubs(struct process_code *code, uint64_t stub)
{
    uint64_t words[] = { STUBS + stub * STUB_BYTES + CALL_AT, 0, 0 };
    struct unwind_registers registers = { .ip = STUBS + 8, .sp = 0x10000 };
    struct unwind_sample sample = { .registers = &registers, .stack = span_of(words, sizeof words) };
    struct unwind_frame frames[4];
    return process_code_unwind(code, &sample, frames, ARRAY_LEN(frames)).count;
}

/* The target is asked for code once, until there can be other code; in whichever way that is told. */
static void test_code_is_kept(void **state)
{
    (void)state;
    struct stubs stubs = { .calls = true };
    struct unwind_images *images = unwind_images_new();
    struct process_code *code = process_code_new(
        images,
        &(struct process_code_access){ .machine = &machine_x86_64, .read = read_stubs, .user = &stubs });
    process_code_map(code, STUBS, STUBS_BYTES, 0, PROCESS_CODE_NO_IMAGE);
    for (uint64_t i = 0; i < 300; i++)
        assert_int_equal(frames_in_stubs(code, 1 + i % 100), 2);
    assert_in_range(stubs.reads, 100, 150); /* a few share a place */
    stubs.calls = false;
    assert_int_equal(frames_in_stubs(code, 7), 2);
    process_code_method(code, STUBS + 7 * STUB_BYTES + 0xf0, 0x20, false);
    assert_int_equal(frames_in_stubs(code, 7), 1);
    assert_int_equal(frames_in_stubs(code, 6), 2);
    process_code_method(code, UINT64_MAX - 0x100, 0x100, false);
    process_code_map(code, STUBS, STUBS_BYTES, 1, PROCESS_CODE_NO_IMAGE);
    assert_int_equal(frames_in_stubs(code, 6), 1);
    process_code_free(code);
    unwind_images_free(images);
}

/* What was remembered of an image is not believed of what is mapped over it. Last: it spoils the mappings. */
static void test_mapped_over(void **state)
{
    struct fixture *f = *state;
    int numbers[] = { 5, 3, 9, 1 };
    captured.stack_bytes = 0;
    qsort(numbers, ARRAY_LEN(numbers), sizeof *numbers, compare_and_capture);
    unwind(f);
    assert_true(f->result.count > 2);
    assert_int_equal(f->frames[2].found, UNWIND_FOUND_CFI);
    uint64_t page = f->frames[1].ip & ~UINT64_C(0xfff), caller = f->frames[1].ip;
    process_code_map(f->code, page, 0x1000, 0, PROCESS_CODE_NO_IMAGE);
    unwind(f);
    assert_int_equal(f->frames[1].ip, caller);
    assert_true(f->result.count == 2 || f->frames[2].found != UNWIND_FOUND_CFI);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture.images = unwind_images_new();
    fixture.code = process_code_new(fixture.images, &(struct process_code_access){ .machine = machine_own(),
                                                                                   .open = open_image,
                                                                                   .close = close_image,
                                                                                   .read = read_self,
                                                                                   .user = &fixture });
    map_all(fixture.code);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    process_code_free(f->code);
    unwind_images_free(f->images);
    while (file_count > 1)
        free(files[--file_count]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),       cmocka_unit_test(test_callback),
        cmocka_unit_test(test_signal),      cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_mappings),
        cmocka_unit_test(test_refresh),     cmocka_unit_test(test_unmapped_method),
        cmocka_unit_test(test_vdso),        cmocka_unit_test(test_code_is_kept),
        cmocka_unit_test(test_mapped_over), cmocka_unit_test(test_told_while_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
