#include "clr/runtime_layout.h"

#include "base/own.h"

/* Of an image up to .NET 10; later ones tell it. */
enum { LAYOUT_BASE = 0x08 };

/* Equal in all versions seen. */
#define EQUAL_FIELDS                                                                                         \
    .fragment = { .next = 0x00, .begin = 0x08, .end = 0x10, .section = 0x18 },                               \
    .heap = { .start = 0x10, .end = 0x18, .base = 0x20, .map = 0x28 },                                       \
    .header = { .method = 0x18, .unwind_count = 0x20, .unwinds = 0x24 },                                     \
    .chunk = { .size = 0x18, .table = 0x00, .length = 0x10, .range = 0x12 }, .class_table = 0x10,            \
    .class_fields = 0x18
/* The MethodDesc, whose size is the one thing that changes, and what follows it. */
#define METHOD_FIELDS(bytes, data, program_bit, runtime_bit)                                                 \
    .method = { .size = (bytes), .remainder = 0, .chunk_index = 2, .flags = 6, .code_data = (data) },        \
    .generic = { .size = (bytes) + 0x18, .count = (bytes) + 0x12, .arguments = (bytes) + 0x08 },             \
    .async = { .flags = LAYOUT_NONE },                                                                       \
    .dynamic = { .signature = (bytes),                                                                       \
                 .signature_size = (bytes) + 8,                                                              \
                 .flags = (bytes) + 0xc,                                                                     \
                 .name = (bytes) + 0x10,                                                                     \
                 .resolver = (bytes) + 0x18,                                                                 \
                 .of_program = (program_bit),                                                                \
                 .of_runtime = (runtime_bit) }
/* The MethodTable; `width`: bytes of the number that holds the TypeDef row. */
#define TABLE_FIELDS(row, width)                                                                             \
    .type_row_bytes = (width), .table = { .flags = 0x00,                                                     \
                                          .base_size = 0x04,                                                 \
                                          .type_row = (row),                                                 \
                                          .virtuals = 0x0c,                                                  \
                                          .parent = 0x10,                                                    \
                                          .module = 0x18,                                                    \
                                          .class_or_canonical = 0x28,                                        \
                                          .instance = 0x30 }
#define LIST_FIELDS                                                                                          \
    .list = true, .section = { .begin = 0x00,                                                                \
                               .end = 0x08,                                                                  \
                               .next = 0x18,                                                                 \
                               .flags = 0x28,                                                                \
                               .module = 0x30,                                                               \
                               .heap = 0x30,                                                                 \
                               .ranges = LAYOUT_NONE }
#define MAP_FIELDS                                                                                           \
    .tiered_bit = 0x8000, .section = { .begin = 0x00,                                                        \
                                       .end = 0x08,                                                          \
                                       .next = LAYOUT_NONE,                                                  \
                                       .flags = 0x10,                                                        \
                                       .module = 0x20,                                                       \
                                       .heap = 0x28,                                                         \
                                       .ranges = 0x30 }
#define VERSION_FIELDS .version = { .state = 0x00, .first = 0x10, .code = 0x00, .next = 0x18, .tier = 0x24 }
#define NO_VERSIONS                                                                                          \
    .version = { LAYOUT_NONE, LAYOUT_NONE, LAYOUT_NONE, LAYOUT_NONE, LAYOUT_NONE }, NO_COUNTING
#define NO_COUNTING .counting = { LAYOUT_NONE, LAYOUT_NONE }
#define NO_FLAGS    .module = { .flags = LAYOUT_NONE }

const struct runtime_layout runtime_layouts[] = {
    {
        .name = "10.0",
        .major = 10,
        .constant = true,
        .remainder_bits = 12,
        .module = { .file = 0xd8, .flags = 0xe8, .emitted = 0x348 },
        .image = { .flat = 0x78, .loaded = 0x80, .base = LAYOUT_BASE },
        MAP_FIELDS,
        METHOD_FIELDS(16, 8, 0x4000, 0x8000),
        TABLE_FIELDS(0x08, 4),
        VERSION_FIELDS,
        .counting = { .allocator = 0x40, .manager = 0x7c8 },
        EQUAL_FIELDS,
    },
    {
        .name = "9.0",
        .major = 9,
        .remainder_bits = 12,
        .module = { .file = 0x118, .flags = 0x128, .emitted = 0x460 },
        .image = { .flat = 0x70, .loaded = 0x78, .base = LAYOUT_BASE },
        MAP_FIELDS,
        METHOD_FIELDS(16, 8, 0x4000, 0x8000),
        TABLE_FIELDS(0x08, 4),
        VERSION_FIELDS,
        .counting = { .allocator = 0x40, .manager = 0xa68 },
        EQUAL_FIELDS,
    },
    {
        .name = "8.0",
        .major = 8,
        .remainder_bits = 12,
        .module = { .file = 0x110, .flags = 0x118, .emitted = 0x698, .emitted_in_buffer = true },
        .image = { .flat = 0x70, .loaded = 0x78, .base = LAYOUT_BASE },
        MAP_FIELDS,
        METHOD_FIELDS(8, LAYOUT_NONE, 0x4000, 0x8000),
        TABLE_FIELDS(0x0a, 2),
        NO_VERSIONS,
        EQUAL_FIELDS,
    },
    {
        .name = "3.1",
        .major = 3,
        .remainder_bits = 14,
        .module = { .file = 0x10, .flags = LAYOUT_NONE, .emitted = 0x678, .emitted_in_buffer = true },
        .image = { .flat = 0x50, .loaded = 0x58, .base = LAYOUT_BASE },
        LIST_FIELDS,
        METHOD_FIELDS(8, LAYOUT_NONE, 0x20000, 0x10000),
        TABLE_FIELDS(0x0a, 2),
        NO_VERSIONS,
        EQUAL_FIELDS,
    },
};
const size_t runtime_layout_count = ARRAY_LEN(runtime_layouts);

static const struct runtime_layout forms[] = {
    { MAP_FIELDS, TABLE_FIELDS(0, 0), METHOD_FIELDS(0, LAYOUT_NONE, 0, 0), NO_VERSIONS, NO_FLAGS,
      EQUAL_FIELDS },
    { LIST_FIELDS, TABLE_FIELDS(0, 0), METHOD_FIELDS(0, LAYOUT_NONE, 0, 0), NO_VERSIONS, NO_FLAGS,
      EQUAL_FIELDS },
};

const struct runtime_layout *runtime_layout_form(bool list)
{
    return &forms[list];
}

struct described {
    const char *type, *field;
    size_t offset; /* of the number, in struct runtime_layout */
    bool optional;
};

#define DESCRIBED(type, field, member)                                                                       \
    {                                                                                                        \
        type, field, offsetof(struct runtime_layout, member), false                                          \
    }
#define OPTIONAL(type, field, member)                                                                        \
    {                                                                                                        \
        type, field, offsetof(struct runtime_layout, member), true                                           \
    }

static const struct described described[] = {
    DESCRIBED("RangeSection", "RangeBegin", section.begin),
    DESCRIBED("RangeSection", "RangeEndOpen", section.end),
    DESCRIBED("RangeSection", "Flags", section.flags),
    DESCRIBED("RangeSection", "R2RModule", section.module),
    DESCRIBED("RangeSection", "HeapList", section.heap),
    DESCRIBED("RangeSectionFragment", "Next", fragment.next),
    DESCRIBED("RangeSectionFragment", "RangeBegin", fragment.begin),
    DESCRIBED("RangeSectionFragment", "RangeEndOpen", fragment.end),
    DESCRIBED("RangeSectionFragment", "RangeSection", fragment.section),
    DESCRIBED("CodeHeapListNode", "StartAddress", heap.start),
    DESCRIBED("CodeHeapListNode", "EndAddress", heap.end),
    DESCRIBED("CodeHeapListNode", "MapBase", heap.base),
    DESCRIBED("CodeHeapListNode", "HeaderMap", heap.map),
    DESCRIBED("RealCodeHeader", "MethodDesc", header.method),
    DESCRIBED("RealCodeHeader", "NumUnwindInfos", header.unwind_count),
    DESCRIBED("RealCodeHeader", "UnwindInfos", header.unwinds),
    DESCRIBED("MethodDesc", "Flags3AndTokenRemainder", method.remainder),
    DESCRIBED("MethodDesc", "ChunkIndex", method.chunk_index),
    DESCRIBED("MethodDesc", "Flags", method.flags),
    OPTIONAL("MethodDesc", "CodeData", method.code_data),
    OPTIONAL("MethodDesc", "!", method.size),
    DESCRIBED("MethodDescChunk", "!", chunk.size),
    DESCRIBED("MethodDescChunk", "MethodTable", chunk.table),
    DESCRIBED("MethodDescChunk", "Size", chunk.length),
    DESCRIBED("MethodDescChunk", "FlagsAndTokenRange", chunk.range),
    DESCRIBED("InstantiatedMethodDesc", "NumGenericArgs", generic.count),
    OPTIONAL("InstantiatedMethodDesc", "!", generic.size),
    OPTIONAL("InstantiatedMethodDesc", "PerInstInfo", generic.arguments),
    OPTIONAL("AsyncMethodData", "Flags", async.flags),
    DESCRIBED("StoredSigMethodDesc", "Sig", dynamic.signature),
    DESCRIBED("StoredSigMethodDesc", "cSig", dynamic.signature_size),
    DESCRIBED("StoredSigMethodDesc", "ExtendedFlags", dynamic.flags),
    DESCRIBED("DynamicMethodDesc", "MethodName", dynamic.name),
    DESCRIBED("MethodTable", "MTFlags", table.flags),
    DESCRIBED("MethodTable", "MTFlags2", table.type_row),
    OPTIONAL("MethodTable", "BaseSize", table.base_size),
    DESCRIBED("MethodTable", "NumVirtuals", table.virtuals),
    OPTIONAL("MethodTable", "ParentMethodTable", table.parent),
    DESCRIBED("MethodTable", "Module", table.module),
    DESCRIBED("MethodTable", "EEClassOrCanonMT", table.class_or_canonical),
    DESCRIBED("MethodTable", "PerInstInfo", table.instance),
    DESCRIBED("EEClass", "MethodTable", class_table),
    DESCRIBED("Module", "PEAssembly", module.file),
    OPTIONAL("Module", "Flags", module.flags),
    OPTIONAL("Module", "DynamicMetadata", module.emitted),
    OPTIONAL("PEImage", "LoadedImageLayout", image.loaded),
    OPTIONAL("PEImage", "FlatImageLayout", image.flat),
    OPTIONAL("PEImageLayout", "Base", image.base),
    OPTIONAL("MethodDescCodeData", "VersioningState", version.state),
    OPTIONAL("MethodDescVersioningState", "NativeCodeVersionNode", version.first),
    OPTIONAL("NativeCodeVersionNode", "NativeCode", version.code),
    OPTIONAL("NativeCodeVersionNode", "Next", version.next),
};

bool runtime_layout_describe(struct runtime_layout *layout, const struct contract_descriptor *descriptor)
{
    enum { CONSTANT_NIBBLE_MAP = 2 };
    struct runtime_layout told = *layout;
    uint64_t bits;
    for (size_t i = 0; i < ARRAY_LEN(described); i++) {
        const struct described *d = &described[i];
        uint16_t *number = (uint16_t *)(void *)((char *)&told + d->offset);
        if (!contract_descriptor_field(descriptor, d->type, d->field, number) && !d->optional)
            return false;
    }
    if (!contract_descriptor_number(descriptor, "MethodDescTokenRemainderBitCount", &bits) || bits == 0 ||
        bits > 15)
        return false;
    told.remainder_bits = (uint8_t)bits;
    told.list = false;
    told.constant = contract_descriptor_version(descriptor, "ExecutionManager") >= CONSTANT_NIBBLE_MAP;
    told.dynamic.resolver = (uint16_t)(told.dynamic.name + 8);
    *layout = told;
    return true;
}
