/*
 * runtime_layout: where a version of the runtime keeps what leads from machine code to a method's name.
 *
 * Offsets in bytes into the runtime's own structures, x86-64. Measured on 3.1.2, 8.0.0 to 8.0.33, 9.0.18
 * to 9.0.22 and 10.0.11 to 10.0.14; docs/design/datacontracts in dotnet/runtime names the structures. A
 * layout is a guess until what is found by it agrees with the assemblies' metadata.
 */
#ifndef CLRPERF_CLR_RUNTIME_LAYOUT_H
#define CLRPERF_CLR_RUNTIME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clr/contract_descriptor.h"

enum { LAYOUT_NONE = 0xffff }; /* the version has no such thing */

struct runtime_layout {
    const char *name; /* "10.0": the version it was measured on */
    unsigned major;
    bool list;              /* code regions in a list, else in a radix map */
    bool constant;          /* nibble maps with pointers, else linear ones */
    uint8_t remainder_bits; /* of a MethodDef row, in the MethodDesc; the rest is in the chunk */
    uint8_t type_row_bytes; /* 2: the row; 4: the row above 8 bits of flags */
    uint16_t tiered_bit;    /* beside that remainder: may be compiled again, better; 0: no such bit there */

    struct {
        uint16_t begin, end, next, flags, module, heap, ranges;
    } section; /* RangeSection */
    struct {
        uint16_t next, begin, end, section;
    } fragment; /* RangeSectionFragment */
    struct {
        uint16_t start, end, base, map;
    } heap; /* CodeHeapListNode */
    struct {
        uint16_t method, unwind_count, unwinds;
    } header; /* RealCodeHeader */
    struct {
        uint16_t size, remainder, chunk_index, flags, code_data;
    } method; /* MethodDesc */
    struct {
        uint16_t size, table, length, range;
    } chunk; /* MethodDescChunk */
    struct {
        uint16_t size, count, arguments; /* how many there are, and where the list of them is */
    } generic;                           /* InstantiatedMethodDesc */
    struct {
        uint16_t flags;
    } async; /* AsyncMethodData, behind a MethodDesc and its slots; LAYOUT_NONE before 11 */
    struct {
        uint16_t signature, signature_size, flags, name, resolver;
        uint32_t of_program, of_runtime; /* bits of the flags: a DynamicMethod, an IL stub */
    } dynamic;                           /* DynamicMethodDesc */
    struct {
        uint16_t flags, base_size, type_row, virtuals, parent, module, class_or_canonical, instance;
    } table;               /* MethodTable */
    uint16_t class_table;  /* EEClass: its MethodTable */
    uint16_t class_fields; /* EEClass: its FieldDescs */
    struct {
        uint16_t file, flags, emitted; /* PEAssembly; LAYOUT_NONE: unknown; metadata of Reflection.Emit */
        bool emitted_in_buffer; /* an SBuffer {u32 size, ..., pointer at 0x10}, else {u32 size, bytes} */
    } module;
    struct {
        uint16_t flat, loaded; /* image layouts of a PEImage */
        uint16_t base;         /* of an image layout: where its bytes are; their size and its flags follow */
    } image;
    struct {
        uint16_t state, first, code, next, tier;
    } version; /* CodeData -> state -> first NativeCodeVersionNode; LAYOUT_NONE before 9 */
    struct {
        uint16_t allocator, manager;
    } counting; /* CodeHeapListNode -> LoaderAllocator -> CallCountingManager; LAYOUT_NONE: unknown */
};

/* The layouts known by measurement, newest first. */
extern const struct runtime_layout runtime_layouts[];
extern const size_t runtime_layout_count;

/*
 * What all layouts with code regions in a list, or in a radix map, have in common. What follows the common
 * part of a MethodDesc counts from its end; the rest is 0, or LAYOUT_NONE where a version may lack it.
 */
const struct runtime_layout *runtime_layout_form(bool list);

/*
 * Puts what the runtime itself says in the place of what was measured. False when it does not say enough to
 * be relied on (before 10); `layout` is then as before.
 */
bool runtime_layout_describe(struct runtime_layout *layout, const struct contract_descriptor *descriptor);

#endif
