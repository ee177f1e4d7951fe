#include "eh_frame_fixture.h"

#include <string.h>

static void put_record(struct buffer *section, const struct buffer *body)
{
    buffer_u32le(section, (uint32_t)body->size);
    buffer_append(section, body->data, body->size);
}

struct cie {
    const char *augmentation;
    uint8_t code_align, return_register;
    struct span start, more;
};

static size_t put_cie(struct buffer *section, const struct cie *cie)
{
    size_t at = section->size;
    struct buffer body;
    buffer_init(&body, 1 << 16);
    buffer_u32le(&body, 0);
    buffer_u8(&body, 1);
    buffer_append(&body, cie->augmentation, strlen(cie->augmentation) + 1);
    buffer_u8(&body, cie->code_align);
    buffer_u8(&body, 0x78); /* data in words, downwards */
    buffer_u8(&body, cie->return_register);
    buffer_u8(&body, 1);
    buffer_u8(&body, 0x1b); /* addresses are relative to their place, 4 bytes */
    buffer_append(&body, cie->start.data, cie->start.size);
    buffer_append(&body, cie->more.data, cie->more.size);
    put_record(section, &body);
    buffer_done(&body);
    return at;
}

size_t eh_fixture_cie(struct buffer *section, const char *augmentation, const void *more, size_t more_bytes)
{
    static const uint8_t start[] = { 0x0c, 7, 8, 0x90, 1 }; /* CFA is r7+8; r16 at CFA-8 */
    return put_cie(section, &(struct cie){ augmentation, 1, 16, span_of(start, sizeof start),
                                           span_of(more, more_bytes) });
}

size_t eh_fixture_arm64_cie(struct buffer *section, const char *augmentation)
{
    static const uint8_t start[] = { 0x0c, 31, 0 }; /* CFA is x31 */
    return put_cie(section, &(struct cie){ augmentation, 4, 30, span_of(start, sizeof start), { 0 } });
}

void eh_fixture_fde(struct buffer *section, size_t cie, uint64_t start, uint32_t size_bytes,
                    const void *instructions, size_t instruction_bytes)
{
    struct buffer body;
    buffer_init(&body, 1 << 17);
    buffer_u32le(&body, (uint32_t)(section->size + 4 - cie));
    buffer_u32le(&body, (uint32_t)(start - (EH_FIXTURE_ADDR + section->size + 8)));
    buffer_u32le(&body, size_bytes);
    buffer_u8(&body, 0);
    buffer_append(&body, instructions, instruction_bytes);
    put_record(section, &body);
    buffer_done(&body);
}

void eh_fixture_end(struct buffer *section)
{
    buffer_u32le(section, 0);
}
