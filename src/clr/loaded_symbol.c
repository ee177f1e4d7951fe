#include "clr/loaded_symbol.h"

#include <string.h>

#include "base/cursor.h"

enum {
    SEGMENTS_MAX = 64,
    DYNAMIC_ENTRIES_MAX = 256,
    CHAIN_MAX = 1 << 16,
    PT_LOAD_TYPE = 1,
    PT_DYNAMIC_TYPE = 2,
    DT_STRTAB_TAG = 5,
    DT_SYMTAB_TAG = 6,
    SYMBOL_BYTES = 24,
};
#define DT_GNU_HASH_TAG UINT64_C(0x6ffffef5)

struct dynamic {
    uint64_t bias; /* what to add to the file's addresses */
    uint64_t symbols, strings, hash;
};

static bool find_segments(struct memory_pages *pages, uint64_t base, uint64_t *out_bias,
                          uint64_t *out_dynamic)
{
    uint8_t header[64];
    if (!memory_pages_read(pages, base, header, sizeof header) || memcmp(header, "\177ELF\2\1", 6) != 0)
        return false;
    uint64_t at = base + load_u64le(header + 32);
    uint16_t entry_bytes = load_u16le(header + 54), count = load_u16le(header + 56);
    uint64_t dynamic = 0, first_load = UINT64_MAX;
    bool has_dynamic = false;
    for (uint16_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        uint64_t entry = at + (uint64_t)i * entry_bytes;
        uint32_t type = memory_pages_u32(pages, entry);
        uint64_t file_off = memory_pages_u64(pages, entry + 8), addr = memory_pages_u64(pages, entry + 16);
        if (type == PT_LOAD_TYPE && file_off == 0 && first_load == UINT64_MAX)
            first_load = addr;
        if (type == PT_DYNAMIC_TYPE) {
            dynamic = addr;
            has_dynamic = true;
        }
    }
    if (!has_dynamic || first_load == UINT64_MAX)
        return false;
    *out_bias = base - first_load;
    *out_dynamic = *out_bias + dynamic;
    return true;
}

/* The loader of glibc leaves absolute addresses there, that of musl the file's own. */
static uint64_t relocated(uint64_t addr, uint64_t bias)
{
    return addr < bias ? addr + bias : addr;
}

static bool find_dynamic(struct memory_pages *pages, uint64_t base, struct dynamic *d)
{
    uint64_t at;
    if (!find_segments(pages, base, &d->bias, &at))
        return false;
    for (unsigned i = 0; i < DYNAMIC_ENTRIES_MAX; i++, at += 16) {
        uint64_t tag = memory_pages_u64(pages, at),
                 value = relocated(memory_pages_u64(pages, at + 8), d->bias);
        if (tag == 0)
            break;
        if (tag == DT_STRTAB_TAG)
            d->strings = value;
        else if (tag == DT_SYMTAB_TAG)
            d->symbols = value;
        else if (tag == DT_GNU_HASH_TAG)
            d->hash = value;
    }
    return d->strings && d->symbols && d->hash;
}

static bool is_named(struct memory_pages *pages, const struct dynamic *d, uint64_t symbol, const char *name)
{
    char text[128];
    size_t size = strlen(name) + 1;
    return size <= sizeof text &&
           memory_pages_read(pages, d->strings + memory_pages_u32(pages, symbol), text, size) &&
           memcmp(text, name, size) == 0;
}

bool loaded_symbol_find(struct memory_pages *pages, uint64_t base, const char *name,
                        struct loaded_symbol *out)
{
    struct dynamic d = { 0 };
    if (!find_dynamic(pages, base, &d))
        return false;
    uint32_t hash = 5381;
    for (const char *p = name; *p; p++)
        hash = hash * 33 + (uint8_t)*p;
    uint32_t buckets = memory_pages_u32(pages, d.hash), first = memory_pages_u32(pages, d.hash + 4);
    uint32_t bloom_words = memory_pages_u32(pages, d.hash + 8);
    if (buckets == 0)
        return false;
    uint64_t bucket_table = d.hash + 16 + 8 * (uint64_t)bloom_words,
             chains = bucket_table + 4 * (uint64_t)buckets;
    uint32_t index = memory_pages_u32(pages, bucket_table + 4 * (uint64_t)(hash % buckets));
    if (index < first)
        return false;
    for (unsigned i = 0; i < CHAIN_MAX; i++, index++) {
        uint32_t chain = memory_pages_u32(pages, chains + 4 * (uint64_t)(index - first));
        uint64_t symbol = d.symbols + (uint64_t)SYMBOL_BYTES * index;
        if ((chain | 1) == (hash | 1) && is_named(pages, &d, symbol, name)) {
            out->addr = d.bias + memory_pages_u64(pages, symbol + 8);
            out->size_bytes = memory_pages_u64(pages, symbol + 16);
            return out->addr != d.bias;
        }
        if (chain & 1)
            break;
    }
    return false;
}
