#include "symbolize/jit_helper_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum {
    SECTION_BYTES_MAX = 4 << 20,
    INDEX_MAX = 512,
    NAMED_MAX = 20,      /* of one version's helpers */
    BESIDE_BYTES = 4096, /* how far from an allocation helper those that lead to it lie */
    FUNCTION_BYTES_MAX = 512,
    FOUND_MAX = 64,
    ROUNDS = 4, /* from one fast path to the next */
    /* places from the first helper that allocates */
    SLOT_NEW = 0,
    SLOT_NEW_FAST = 2,
    SLOT_NEW_ARRAY = 9,
    SLOT_NEW_ARRAY_FAST = 11,
};

/* `kinds` begins with CORINFO_HELP_NEWFAST: F a function, D an index (they count up), 0 nothing, ? anything.
 */
struct helper_layout {
    const char *kinds;
    size_t tail;     /* slot of CORINFO_HELP_JIT_PINVOKE_BEGIN, where tail_names begins */
    size_t gap;      /* so many helpers behind TAIL_CALLS have no function */
    size_t generics; /* slot of CORINFO_HELP_RUNTIMEHANDLE_METHOD, where generics_names begins; 0: managed
                        code */
    struct {
        uint8_t slot;
        const char *name;
    } named[NAMED_MAX];
};

static const struct helper_layout layouts[] = {
    { .kinds = "FFD0D00FFFFDDDFFFDDDDDDDDDFDFDFFDDFFFFFFFFFFFF0FFFFFFDFF", /* 8 */
      .tail = 157,
      .gap = 1,
      .generics = 111,
      .named = { { 0, "JIT_New" },
                 { 1, "JIT_NewMaybeFrozen" },
                 { 7, "JIT_NewMDArr" },
                 { 9, "JIT_NewArr1" },
                 { 10, "JIT_NewArr1MaybeFrozen" },
                 { 14, "JIT_StrCns" },
                 { 15, "JIT_InitClass" },
                 { 16, "JIT_InitInstantiatedClass" },
                 { 28, "JIT_Box" },
                 { 34, "IL_Throw" },
                 { 35, "IL_Rethrow" },
                 { 53, "JIT_RareDisableHelper" },
                 { 54, "JIT_PollGC" } } },
    { .kinds = "FFD0D00FFFFDDDFFFDDDDDDDDDFDFDFFFDDDDFDDDDDFFFF0FFFFFFDF", /* 9 */
      .tail = 149,
      .gap = 1,
      .generics = 102,
      .named = { { 0, "JIT_New" },
                 { 1, "JIT_NewMaybeFrozen" },
                 { 7, "JIT_NewMDArr" },
                 { 9, "JIT_NewArr1" },
                 { 10, "JIT_NewArr1MaybeFrozen" },
                 { 14, "JIT_StrCns" },
                 { 15, "JIT_InitClass" },
                 { 16, "JIT_InitInstantiatedClass" },
                 { 28, "JIT_Box" },
                 { 35, "IL_Throw" },
                 { 36, "IL_Rethrow" },
                 { 54, "JIT_RareDisableHelper" },
                 { 55, "JIT_PollGC" } } },
    { .kinds = "FFD0DD0DDFFDDDDDDDDDDDDDDDFDDDDDDDDDDDDDDDDDFDDD0DDFDDDF", /* 10 */
      .tail = 145,
      .gap = 1,
      .named = { { 0, "RhpNew" },
                 { 1, "RhpNewMaybeFrozen" },
                 { 9, "RhpNewVariableSizeObject" },
                 { 10, "RhpNewArrayMaybeFrozen" },
                 { 35, "IL_Throw" },
                 { 36, "IL_Rethrow" },
                 { 37, "IL_ThrowExact" },
                 { 53, "JIT_RareDisableHelper" } } },
    { .kinds = "FFD0DD0DDFFDDDDDDDDDDDDDDFDDDDDDDDDDDDDDDDDFDDDDDFDDDFDDDDD0", /* 11 */
      .tail = 142,
      .gap = 3,
      .named = { { 0, "RhpNew" },
                 { 1, "RhpNewMaybeFrozen" },
                 { 9, "RhpNewVariableSizeObject" },
                 { 10, "RhpNewArrayMaybeFrozen" },
                 { 34, "IL_Throw" },
                 { 35, "IL_Rethrow" },
                 { 36, "IL_ThrowExact" },
                 { 51, "JIT_RareDisableHelper" } } },
};

/*
 * The same in all of them, but for how many have no function, and for the two that count values, which 8 does
 * not have. Without a name: what is called differently in some of them, or need not have one.
 */
enum { TAIL_CALLS = 6 };
static const char tail_call_kinds[] = "FFFFFF", tail_kinds[] = "FFFFFFFFFFF", values_kinds[] = "FF?D";
static const char *const tail_call_names[TAIL_CALLS] = {
    "JIT_PInvokeBegin", "JIT_PInvokeEnd", "JIT_ReversePInvokeEnter", NULL, "JIT_ReversePInvokeExit", NULL,
};
static const char *const tail_names[] = {
    "JIT_StackProbe",        "JIT_Patchpoint",      NULL,
    "JIT_ClassProfile32",    "JIT_ClassProfile64",  "JIT_DelegateProfile32",
    "JIT_DelegateProfile64", "JIT_VTableProfile32", "JIT_VTableProfile64",
    "JIT_CountProfile32",    "JIT_CountProfile64",  "JIT_ValueProfile32",
    "JIT_ValueProfile64",
};

/* Twice the same two, of which one name is enough. */
enum { GENERICS = 11, GENERICS_TYPE = 4, GENERICS_TYPE_AGAIN = 8 };
static const char generics_kinds[] = "FFFFFFFFFFF0";
static const char *const generics_names[GENERICS] = {
    "JIT_GenericHandleMethod",
    "JIT_GenericHandleMethodLogging",
    "JIT_GenericHandleClass",
    "JIT_GenericHandleClassLogging",
    "JIT_GetRuntimeType",
    "JIT_GetRuntimeType_MaybeNull",
    "JIT_GetRuntimeMethodStub",
    "JIT_GetRuntimeFieldStub",
    NULL,
    NULL,
    "JIT_VirtualFunctionPointer",
};

static bool kind_fits(const struct helper_slot *slot, char kind, uint64_t *next_index)
{
    if (kind == 'F')
        return slot->kind == HELPER_SLOT_FUNCTION;
    if (kind == '?')
        return true;
    if (kind == '0')
        return slot->kind == HELPER_SLOT_NONE;
    if (slot->kind != HELPER_SLOT_INDEX || (*next_index && slot->value != *next_index))
        return false;
    *next_index = slot->value + 1;
    return true;
}

static bool kinds_fit(const char *kinds, const struct helper_slot *at, size_t left)
{
    uint64_t next_index = 0;
    size_t size = strlen(kinds);
    if (size > left)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!kind_fits(&at[i], kinds[i], &next_index))
            return false;
    return true;
}

static bool is_function(const struct helper_slots *slots, size_t i, uint64_t function)
{
    return i < slots->count && slots->rows[i].kind == HELPER_SLOT_FUNCTION &&
           slots->rows[i].value == function;
}

/*
 * Where index 0 lies in the replaceable table: four of its helpers start as the functions of other ones.
 * False when it is not there.
 */
static bool replaceable_find(const struct helper_slots *replaceable, const struct helper_slot *at,
                             size_t *out_first)
{
    uint64_t one = at[SLOT_NEW_FAST].value, many = at[SLOT_NEW_ARRAY_FAST].value;
    for (size_t first = 0; first + many < replaceable->count; first++) {
        if (!is_function(replaceable, first + (size_t)one, at[SLOT_NEW].value))
            continue;
        size_t k = 0;
        while (k < 3 && is_function(replaceable, first + (size_t)many + k, at[SLOT_NEW_ARRAY].value))
            k++;
        if (k < 3)
            continue;
        *out_first = first;
        return true;
    }
    return false;
}

static void tell_helpers(const struct helper_layout *layout, const struct helper_slot *at,
                         const struct helper_slots *replaceable, helper_found_fn *found, void *user)
{
    size_t first = 0;
    bool known = replaceable_find(replaceable, at, &first);
    for (size_t i = 0; i < NAMED_MAX && layout->named[i].name; i++) {
        const struct helper_slot *slot = &at[layout->named[i].slot];
        if (slot->kind == HELPER_SLOT_INDEX) {
            size_t place = first + (size_t)slot->value;
            slot = known && place < replaceable->count ? &replaceable->rows[place] : NULL;
        }
        if (slot && slot->kind == HELPER_SLOT_FUNCTION)
            found(user, layout->named[i].name, slot->value);
    }
}

static void tell_all(const char *const *all, size_t count, const struct helper_slot *slots,
                     helper_found_fn *found, void *user)
{
    for (size_t i = 0; i < count; i++)
        if (all[i])
            found(user, all[i], slots[i].value);
}

static void tell_tail(const struct helper_layout *layout, const struct helper_slot *tail, size_t left,
                      helper_found_fn *found, void *user)
{
    size_t begin = TAIL_CALLS + layout->gap, known = strlen(tail_kinds);
    if (begin > left || !kinds_fit(tail_call_kinds, tail, left) ||
        !kinds_fit(tail_kinds, tail + begin, left - begin))
        return;
    for (size_t i = TAIL_CALLS; i < begin; i++)
        if (tail[i].kind != HELPER_SLOT_NONE)
            return;
    bool values = kinds_fit(values_kinds, tail + begin + known, left - begin - known);
    tell_all(tail_call_names, TAIL_CALLS, tail, found, user);
    tell_all(tail_names, values ? ARRAY_LEN(tail_names) : known, tail + begin, found, user);
}

static void tell_generics(const struct helper_layout *layout, const struct helper_slot *at, size_t left,
                          helper_found_fn *found, void *user)
{
    const struct helper_slot *generics = at + layout->generics;
    if (layout->generics == 0 || layout->generics >= left ||
        !kinds_fit(generics_kinds, generics, left - layout->generics))
        return;
    for (size_t i = 0; i < 2; i++)
        if (generics[GENERICS_TYPE + i].value != generics[GENERICS_TYPE_AGAIN + i].value)
            return;
    tell_all(generics_names, GENERICS, generics, found, user);
}

bool jit_helper_table_find(const struct helper_slots *fixed, const struct helper_slots *replaceable,
                           helper_found_fn *found, void *user)
{
    for (size_t i = 0; i < fixed->count; i++)
        for (size_t k = 0; k < ARRAY_LEN(layouts); k++)
            if (kinds_fit(layouts[k].kinds, &fixed->rows[i], fixed->count - i)) {
                if (layouts[k].tail < fixed->count - i)
                    tell_tail(&layouts[k], &fixed->rows[i + layouts[k].tail],
                              fixed->count - i - layouts[k].tail, found, user);
                tell_generics(&layouts[k], &fixed->rows[i], fixed->count - i, found, user);
                tell_helpers(&layouts[k], &fixed->rows[i], replaceable, found, user);
                return true;
            }
    return false;
}

/* A section's slots while they are filled. */
struct slot_section {
    const struct elf_section *section;
    struct helper_slots slots;
};

static bool slots_load(const struct elf *e, struct slot_section *s, struct error *err)
{
    struct buffer bytes;
    buffer_init(&bytes, SECTION_BYTES_MAX);
    bool ok = elf_section_load(e, s->section, &bytes, err);
    if (ok) {
        s->slots.count = bytes.size / 8;
        s->slots.rows = mem_alloc(s->slots.count + 1, sizeof *s->slots.rows);
        struct cursor c = cursor_over(buffer_span(&bytes));
        for (size_t i = 0; i < s->slots.count; i++) {
            uint64_t value = cursor_u64le(&c);
            s->slots.rows[i] = (struct helper_slot){ value, !value               ? HELPER_SLOT_NONE
                                                            : value <= INDEX_MAX ? HELPER_SLOT_INDEX
                                                                                 : HELPER_SLOT_OTHER };
        }
    }
    buffer_done(&bytes);
    return ok;
}

static void slots_relocate(struct slot_section *s, const struct relocated_pointers *pointers)
{
    for (size_t i = 0; i < pointers->count; i++) {
        const struct relocated_pointer *p = &pointers->rows[i];
        if (p->addr < s->section->addr || (p->addr - s->section->addr) / 8 >= s->slots.count)
            continue;
        s->slots.rows[(p->addr - s->section->addr) / 8] =
            (struct helper_slot){ p->value, p->function_bytes ? HELPER_SLOT_FUNCTION : HELPER_SLOT_OTHER };
    }
}

/* The helpers that were found, and where their names go. */
struct helper_names {
    const struct elf *elf;
    const struct eh_ranges *functions;
    struct symbol_table *out;
    struct buffer *strings;
    uint64_t allocating[FOUND_MAX];
    size_t count;
    uint64_t assembly; /* an allocation helper that is not compiled from C++; 0 none */
};

static bool is_allocating(const struct helper_names *names, uint64_t function)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->allocating[i] == function)
            return true;
    return false;
}

static void name_function(struct helper_names *names, const char *name, uint64_t function)
{
    uint64_t start = 0, size_bytes = 0;
    if (!eh_ranges_find(names->functions, function, &start, &size_bytes))
        return;
    symbol_table_add(names->out, start, size_bytes, (uint32_t)names->strings->size, 0);
    buffer_append(names->strings, name, strlen(name) + 1);
}

static void add_allocating(struct helper_names *names, uint64_t function)
{
    if (names->count < FOUND_MAX && !is_allocating(names, function))
        names->allocating[names->count++] = function;
}

static void take_helper(void *user, const char *name, uint64_t function)
{
    struct helper_names *names = user;
    name_function(names, name, function);
    if (strncmp(name, "JIT_New", 7) == 0 || strncmp(name, "RhpNew", 6) == 0)
        add_allocating(names, function);
    if (strcmp(name, "RhpNewVariableSizeObject") == 0)
        names->assembly = function;
}

/* The code of a function, or its beginning; 0 bytes when it cannot be read. */
static size_t function_code(const struct helper_names *names, uint64_t start, uint64_t size_bytes,
                            uint8_t code[FUNCTION_BYTES_MAX])
{
    uint64_t file_off = 0;
    size_t size = size_bytes < FUNCTION_BYTES_MAX ? (size_t)size_bytes : FUNCTION_BYTES_MAX;
    if (!elf_file_off_of_addr(names->elf, start, &file_off) ||
        !source_read(&names->elf->file, file_off, code, size, NULL))
        return 0;
    return size;
}

/* Where the rel32 at `i` of the code at `start` leads. */
static uint64_t relative_target(const uint8_t *code, uint64_t start, size_t i)
{
    return start + i + 4 + (uint64_t)(int64_t)(int32_t)load_u32le(code + i);
}

/* The first function that the function around `addr` calls (E8), 0 when there is none. */
static uint64_t first_call(const struct helper_names *names, uint64_t addr)
{
    uint8_t code[FUNCTION_BYTES_MAX];
    uint64_t start = 0, size_bytes = 0, callee = 0, callee_size = 0;
    if (!eh_ranges_find(names->functions, addr, &start, &size_bytes))
        return 0;
    size_t size = function_code(names, start, size_bytes, code);
    for (size_t i = 1; i + 4 <= size; i++)
        if (code[i - 1] == 0xe8 &&
            eh_ranges_find(names->functions, relative_target(code, start, i), &callee, &callee_size) &&
            callee == relative_target(code, start, i))
            return callee;
    return 0;
}

/* Whether a function jumps (E9, 0F 80 to 0F 8F) to an allocation helper, or calls `worker` (0: nobody). */
static bool leads_to_allocating(const struct helper_names *names, uint64_t start, uint64_t size_bytes,
                                uint64_t worker)
{
    uint8_t code[FUNCTION_BYTES_MAX];
    size_t size = function_code(names, start, size_bytes, code);
    for (size_t i = 2; i + 4 <= size; i++) {
        bool jump = code[i - 1] == 0xe9 || (code[i - 2] == 0x0f && (code[i - 1] & 0xf0) == 0x80);
        uint64_t target = relative_target(code, start, i);
        if ((jump && is_allocating(names, target)) || (code[i - 1] == 0xe8 && worker && target == worker))
            return true;
    }
    return false;
}

/* One look at the functions beside the helpers; true when it found another one. */
static bool name_beside(struct helper_names *names, uint64_t worker)
{
    const struct eh_ranges *f = names->functions;
    size_t known = names->count;
    for (size_t i = 0; i < f->count; i++) {
        uint64_t start = f->base + f->rows[i].start;
        bool beside = false;
        for (size_t k = 0; k < known && !beside; k++)
            beside =
                start + BESIDE_BYTES > names->allocating[k] && start < names->allocating[k] + BESIDE_BYTES;
        if (!beside || is_allocating(names, start) ||
            !leads_to_allocating(names, start, f->rows[i].size_bytes, worker))
            continue;
        name_function(names, "[allocation helper]", start);
        add_allocating(names, start);
    }
    return names->count > known;
}

/*
 * The fast paths hand on by a jump what they cannot serve, so that a caller sees only one frame. From 10 on
 * they are assembly, and so are the slow ones, which do nothing but call the same worker.
 */
static void name_fast_paths(struct helper_names *names)
{
    uint64_t worker = names->assembly ? first_call(names, names->assembly) : 0;
    for (size_t round = 0; round < ROUNDS && name_beside(names, worker); round++)
        ;
}

bool jit_helper_names_find(const struct relocated_pointers *pointers, struct symbol_table *out,
                           struct buffer *strings, struct error *err)
{
    const struct elf *e = pointers->elf;
    struct slot_section fixed = { .section = pointers->fixed }, data = { .section = pointers->data };
    struct helper_names names = {
        .elf = e, .functions = pointers->functions, .out = out, .strings = strings
    };
    if (!pointers->data)
        return error_set(err, ERROR_INPUT, "no replaceable table of helpers");
    bool ok = slots_load(e, &fixed, err) && slots_load(e, &data, err);
    if (ok) {
        slots_relocate(&fixed, pointers);
        slots_relocate(&data, pointers);
        ok = jit_helper_table_find(&fixed.slots, &data.slots, take_helper, &names) ||
             error_set(err, ERROR_UNSUPPORTED, "the runtime's table of helpers is of no version we know");
    }
    if (ok && e->machine == ELF_X86_64)
        name_fast_paths(&names);
    free(fixed.slots.rows);
    free(data.slots.rows);
    return ok;
}
