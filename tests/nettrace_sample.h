/*
 * nettrace_sample: writes small nettrace 4 streams for tests, as a runtime would.
 */
#ifndef CLRPERF_TESTS_NETTRACE_SAMPLE_H
#define CLRPERF_TESTS_NETTRACE_SAMPLE_H

#include <string.h>

#include "base/buffer.h"
#include "base/utf16.h"

struct sample_event {
    uint32_t type;
    uint32_t sequence;
    uint64_t thread;
    uint32_t stack;
    uint64_t ticks;
    struct span payload;
};

__attribute__((unused)) static void sample_utf16z(struct buffer *out, const char *text)
{
    utf16_append(out, text);
    buffer_u16le(out, 0);
}

static void sample_object_start(struct buffer *out, const char *name, uint32_t version)
{
    buffer_append(out, "\x05\x05\x01", 3);
    buffer_u32le(out, version);
    buffer_u32le(out, version);
    buffer_u32le(out, (uint32_t)strlen(name));
    buffer_string(out, name);
    buffer_u8(out, 6);
}

__attribute__((unused)) static void sample_begin(struct buffer *out, uint64_t frequency,
                                                 uint32_t pointer_size)
{
    buffer_string(out, "Nettrace");
    buffer_u32le(out, 20);
    buffer_string(out, "!FastSerialization.1");
    sample_object_start(out, "Trace", 4);
    for (unsigned i = 0; i < 8; i++)
        buffer_u16le(out, (uint16_t)(i + 1));
    buffer_u64le(out, 1000); /* sync ticks */
    buffer_u64le(out, frequency);
    buffer_u32le(out, pointer_size);
    buffer_u32le(out, 4242); /* process */
    buffer_u32le(out, 4);    /* processors */
    buffer_u32le(out, 1000000);
    buffer_u8(out, 6);
}

/* The stream must begin at the buffer's start: blocks are aligned from there. */
static void sample_block(struct buffer *out, const char *name, struct span content)
{
    sample_object_start(out, name, 2);
    buffer_u32le(out, (uint32_t)content.size);
    while (out->size % 4)
        buffer_u8(out, 0);
    buffer_append(out, content.data, content.size);
    buffer_u8(out, 6);
}

static void sample_block_header(struct buffer *block, uint64_t min_ticks, uint64_t max_ticks)
{
    buffer_u16le(block, 20);
    buffer_u16le(block, 1); /* compressed */
    buffer_u64le(block, min_ticks);
    buffer_u64le(block, max_ticks);
}

static void sample_type_of(struct buffer *out, uint32_t id, const char *provider, uint32_t event_id,
                           uint32_t version, uint64_t keywords)
{
    struct buffer payload, block;
    buffer_init(&payload, 4096);
    buffer_init(&block, 8192);
    buffer_u32le(&payload, id);
    sample_utf16z(&payload, provider);
    buffer_u32le(&payload, event_id);
    sample_utf16z(&payload, "");
    buffer_u64le(&payload, keywords);
    buffer_u32le(&payload, version);
    buffer_u32le(&payload, 4);
    buffer_u32le(&payload, 0); /* fields */
    sample_block_header(&block, 0, UINT64_MAX);
    buffer_u8(&block, 0x82);
    buffer_varuint(&block, UINT32_MAX);
    buffer_varuint(&block, 0);
    buffer_varuint(&block, UINT32_MAX);
    buffer_varuint(&block, 5);
    buffer_varuint(&block, payload.size);
    buffer_append(&block, payload.data, payload.size);
    sample_block(out, "MetadataBlock", buffer_span(&block));
    buffer_done(&payload);
    buffer_done(&block);
}

__attribute__((unused)) static void sample_type(struct buffer *out, uint32_t id, const char *provider,
                                                uint32_t event_id, uint32_t version)
{
    sample_type_of(out, id, provider, event_id, version, 0x30);
}

__attribute__((unused)) static void sample_events(struct buffer *out, const struct sample_event *events,
                                                  size_t count)
{
    struct buffer block;
    buffer_init(&block, 1 << 20);
    sample_block_header(&block, 0, UINT64_MAX);
    uint32_t sequence = 0;
    uint64_t ticks = 0;
    for (size_t i = 0; i < count; i++) {
        buffer_u8(&block, 0xcf);
        buffer_varuint(&block, events[i].type);
        buffer_varuint(&block, (uint32_t)(events[i].sequence - sequence - 1));
        buffer_varuint(&block, events[i].thread);
        buffer_varuint(&block, UINT32_MAX);
        buffer_varuint(&block, events[i].thread);
        buffer_varuint(&block, events[i].stack);
        buffer_varuint(&block, events[i].ticks - ticks);
        buffer_varuint(&block, events[i].payload.size);
        buffer_append(&block, events[i].payload.data, events[i].payload.size);
        sequence = events[i].sequence;
        ticks = events[i].ticks;
    }
    sample_block(out, "EventBlock", buffer_span(&block));
    buffer_done(&block);
}

__attribute__((unused)) static void sample_point(struct buffer *out, uint64_t ticks, uint64_t thread,
                                                 uint32_t sequence)
{
    struct buffer block;
    buffer_init(&block, 64);
    buffer_u64le(&block, ticks);
    buffer_u32le(&block, 1);
    buffer_u64le(&block, thread);
    buffer_u32le(&block, sequence);
    sample_block(out, "SPBlock", buffer_span(&block));
    buffer_done(&block);
}

__attribute__((unused)) static void sample_end(struct buffer *out)
{
    buffer_u8(out, 1);
}

/* The payload of a verbose method event, version 1. */
__attribute__((unused)) static void sample_method(struct buffer *out, uint64_t addr, uint32_t size_bytes,
                                                  uint32_t flags, const char *type, const char *name,
                                                  const char *signature)
{
    buffer_u64le(out, addr + 0x1000); /* method */
    buffer_u64le(out, 0x7000);        /* module */
    buffer_u64le(out, addr);
    buffer_u32le(out, size_bytes);
    buffer_u32le(out, 0x06000001);
    buffer_u32le(out, flags);
    sample_utf16z(out, type);
    sample_utf16z(out, name);
    sample_utf16z(out, signature);
    buffer_u16le(out, 0); /* runtime instance */
}

#endif
