#include "clr/method_desc.h"

enum {
    CLASS_MASK = 7,
    HAS_SLOT = 0x08, /* what else lies behind a MethodDesc, in this order */
    HAS_OVERRIDES = 0x10,
    HAS_CODE_SLOT = 0x20,
    HAS_ASYNC = 0x40,
    OVERRIDES_BYTES = 16,
    ASYNC_CALL = 0x01, /* AsyncMethodFlags: it is awaited */
    ASYNC_MADE = 0x10, /* by the runtime, if not from what was written: then it is awaited */
    TAG_MASK = 3,      /* 0: an EEClass; 1 or 2: the canonical MethodTable */
    GENERICS_MASK = 0x30,
    GENERIC_INSTANCE = 0x10,
    GENERIC_SHARED = 0x20,
    OVERRIDE_SLOTS = 0xf, /* 3.1 to 8: optional members before the module override's place */
    HAS_OVERRIDE = 0x10,
    FIXED_SLOTS = 2,
    FIXED_SLOT_BYTES = 0x30,
    VTABLE_BYTES = 0x40,
    SLOTS_OF_A_CHUNK = 8,
    ARGUMENTS_MAX = 256,
    STUB_TARGET = 0x18, /* ILStubResolver: m_pStubMD's target */
    SIGNATURE_BYTES_MAX = 4096,
};

uint64_t method_desc_chunk(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr)
{
    return addr - 8 * (uint64_t)memory_pages_u8(pages, addr + layout->method.chunk_index) -
           layout->chunk.size;
}

/*
 * The MethodTable that the EEClass belongs to, or 0. All continuations that the JIT makes types for (from 11
 * on) have one EEClass, which names one of them.
 */
static uint64_t canonical_table(struct memory_pages *pages, const struct runtime_layout *layout,
                                uint64_t table)
{
    uint64_t eeclass = memory_pages_u64(pages, table + layout->table.class_or_canonical);
    uint64_t canonical = table;
    if ((eeclass & TAG_MASK) == 1 || (eeclass & TAG_MASK) == 2) {
        canonical = eeclass & ~(uint64_t)TAG_MASK;
        eeclass = memory_pages_u64(pages, canonical + layout->table.class_or_canonical);
    }
    uint64_t named = eeclass && eeclass % 8 == 0 ? memory_pages_u64(pages, eeclass + layout->class_table) : 0;
    if (named != canonical && (named == 0 || named % 8 != 0 ||
                               memory_pages_u64(pages, named + layout->table.class_or_canonical) != eeclass))
        return 0;
    return canonical;
}

bool method_desc_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                      struct method_desc *out)
{
    if (addr == 0 || addr % 8 != 0)
        return false;
    unsigned index = memory_pages_u8(pages, addr + layout->method.chunk_index);
    uint16_t remainder = memory_pages_u16(pages, addr + layout->method.remainder);
    uint64_t chunk = method_desc_chunk(pages, layout, addr);
    uint64_t table = memory_pages_u64(pages, chunk + layout->chunk.table);
    if (table == 0 || table % 8 != 0 || index > memory_pages_u8(pages, chunk + layout->chunk.length) ||
        !canonical_table(pages, layout, table))
        return false;
    unsigned bits = layout->remainder_bits;
    uint32_t range = memory_pages_u16(pages, chunk + layout->chunk.range) & ((1u << (24 - bits)) - 1);
    uint16_t flags = memory_pages_u16(pages, addr + layout->method.flags);
    *out = (struct method_desc){
        .addr = addr,
        .table = table,
        .row = range << bits | (remainder & ((1u << bits) - 1)),
        .kind = flags & CLASS_MASK,
        .tiered = remainder & layout->tiered_bit,
        .has_async = layout->async.flags != LAYOUT_NONE && flags & HAS_ASYNC,
    };
    return true;
}

bool method_desc_is_async_thunk(struct memory_pages *pages, const struct runtime_layout *layout,
                                const struct method_desc *method)
{
    if (!method->has_async || (method->kind != METHOD_IL && method->kind != METHOD_GENERIC))
        return false;
    uint16_t flags = memory_pages_u16(pages, method->addr + layout->method.flags);
    uint64_t at =
        method->addr + (method->kind == METHOD_GENERIC ? layout->generic.size : layout->method.size);
    at += (flags & HAS_SLOT ? 8 : 0) + (flags & HAS_OVERRIDES ? OVERRIDES_BYTES : 0) +
          (flags & HAS_CODE_SLOT ? 8 : 0);
    uint32_t async = memory_pages_u32(pages, at + layout->async.flags);
    return async & ASYNC_MADE && !(async & ASYNC_CALL);
}

/*
 * Up to 8 the table points at the module that loaded the type. That is another than the one that defines it
 * for instantiations that belong to a collectible assembly; then an optional member names the latter.
 */
static uint64_t defining_module(struct memory_pages *pages, const struct runtime_layout *layout,
                                uint64_t canonical, uint64_t loader)
{
    if (layout->type_row_bytes != 2)
        return loader;
    uint16_t members = memory_pages_u16(pages, canonical + 8);
    if (!(members & HAS_OVERRIDE))
        return loader;
    unsigned k = (unsigned)__builtin_popcount(members & OVERRIDE_SLOTS);
    unsigned virtuals = memory_pages_u16(pages, canonical + layout->table.virtuals);
    uint64_t slot = k < FIXED_SLOTS
                        ? FIXED_SLOT_BYTES + 8 * (uint64_t)k
                        : VTABLE_BYTES +
                              8 * (uint64_t)((virtuals + SLOTS_OF_A_CHUNK - 1) / SLOTS_OF_A_CHUNK) +
                              8 * (uint64_t)(k - FIXED_SLOTS);
    uint64_t module = memory_pages_u64(pages, canonical + slot);
    return module ? module : loader;
}

bool method_table_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                       struct method_table *out)
{
    uint64_t canonical = addr && addr % 8 == 0 ? canonical_table(pages, layout, addr) : 0;
    if (!canonical)
        return false;
    uint64_t row_at = addr + layout->table.type_row;
    struct method_table table = {
        .addr = addr,
        .canonical = canonical,
        .instance = memory_pages_u64(pages, addr + layout->table.instance),
        .flags = memory_pages_u32(pages, addr + layout->table.flags),
        .row = layout->type_row_bytes == 2 ? memory_pages_u16(pages, row_at)
                                           : memory_pages_u32(pages, row_at) >> 8,
    };
    table.module =
        defining_module(pages, layout, canonical, memory_pages_u64(pages, addr + layout->table.module));
    *out = table;
    return true;
}

unsigned method_table_arguments(struct memory_pages *pages, const struct method_table *table,
                                uint64_t *out_list)
{
    unsigned generics = table->flags & GENERICS_MASK;
    if ((generics != GENERIC_INSTANCE && generics != GENERIC_SHARED) || method_table_is_array(table))
        return 0;
    unsigned dictionaries = memory_pages_u16(pages, table->instance - 4);
    unsigned count = memory_pages_u16(pages, table->instance - 2);
    if (dictionaries == 0 || count > ARGUMENTS_MAX)
        return 0;
    *out_list = memory_pages_u64(pages, table->instance + 8 * (uint64_t)(dictionaries - 1));
    return *out_list ? count : 0;
}

unsigned method_desc_arguments(struct memory_pages *pages, const struct runtime_layout *layout,
                               const struct method_desc *method, uint64_t *out_list)
{
    *out_list = 0;
    if (method->kind != METHOD_GENERIC)
        return 0;
    *out_list = memory_pages_u64(pages, method->addr + layout->generic.arguments);
    return memory_pages_u16(pages, method->addr + layout->generic.count);
}

void dynamic_method_name(struct memory_pages *pages, const struct runtime_layout *layout,
                         const struct method_desc *method, struct dynamic_method *out)
{
    uint64_t at = method->addr;
    uint32_t flags = memory_pages_u32(pages, at + layout->dynamic.flags);
    struct dynamic_method dynamic = {
        .name = memory_pages_u64(pages, at + layout->dynamic.name),
        .signature = memory_pages_u64(pages, at + layout->dynamic.signature),
        .signature_size = memory_pages_u32(pages, at + layout->dynamic.signature_size),
    };
    if (flags & layout->dynamic.of_runtime)
        dynamic.kind = DYNAMIC_IL_STUB;
    else if (flags & layout->dynamic.of_program)
        dynamic.kind = DYNAMIC_METHOD;
    if (dynamic.signature == 0 || dynamic.signature_size > SIGNATURE_BYTES_MAX)
        dynamic.signature_size = 0;
    *out = dynamic;
}

void dynamic_method_read(struct memory_pages *pages, const struct runtime_layout *layout,
                         const struct method_desc *method, struct dynamic_method *out)
{
    dynamic_method_name(pages, layout, method, out);
    uint64_t resolver = memory_pages_u64(pages, method->addr + layout->dynamic.resolver);
    if (out->kind == DYNAMIC_IL_STUB && resolver)
        out->target = memory_pages_u64(pages, resolver + STUB_TARGET);
}

void method_version_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                         struct method_version *out)
{
    *out = (struct method_version){
        .code = memory_pages_u64(pages, addr + layout->version.code),
        .next = memory_pages_u64(pages, addr + layout->version.next),
        .tier = memory_pages_u32(pages, addr + layout->version.tier),
    };
}

bool method_desc_tier(struct memory_pages *pages, const struct runtime_layout *layout,
                      const struct method_desc *method, uint64_t code, uint32_t *out_tier)
{
    if (layout->version.first == LAYOUT_NONE || layout->method.code_data == LAYOUT_NONE)
        return false;
    uint64_t data = memory_pages_u64(pages, method->addr + layout->method.code_data);
    uint64_t state = data ? memory_pages_u64(pages, data + layout->version.state) : 0;
    uint64_t note = state ? memory_pages_u64(pages, state + layout->version.first) : 0;
    for (unsigned i = 0; note && i < METHOD_VERSIONS_MAX; i++) {
        struct method_version version;
        method_version_read(pages, layout, note, &version);
        if (version.code == code) {
            *out_tier = version.tier;
            return true;
        }
        note = version.next;
    }
    return false;
}
