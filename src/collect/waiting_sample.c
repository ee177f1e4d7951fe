#include "collect/waiting_sample.h"

#include <string.h>

/* Followed by the frames of the kernel, those of the program, and of each of these whether it is exact; or by
 * the chain. */
struct waiting_head {
    struct chain_key hash;
    uint64_t time_ns, weight;
    uint32_t thread;
    uint32_t kernel_count, user_count, chain_size;
    uint16_t cpu;
    uint8_t kind, end;
};

size_t waiting_sample_size(const struct raw_sample *s)
{
    size_t frames =
        s->kernel_count * sizeof *s->kernel + s->user_count * (sizeof *s->user + sizeof *s->user_exact);
    return sizeof(struct waiting_head) + (s->chain.size ? s->chain.size : frames);
}

static uint8_t *put(uint8_t *into, const void *from, size_t size)
{
    if (size)
        memcpy(into, from, size);
    return into + size;
}

void waiting_sample_put(const struct raw_sample *s, uint8_t *into)
{
    bool frames = s->chain.size == 0;
    const struct waiting_head head = {
        .hash = raw_sample_hash(s),
        .time_ns = s->time_ns,
        .weight = s->weight,
        .thread = s->thread,
        .kernel_count = frames ? (uint32_t)s->kernel_count : 0,
        .user_count = frames ? (uint32_t)s->user_count : 0,
        .chain_size = (uint32_t)s->chain.size,
        .cpu = s->cpu,
        .kind = (uint8_t)s->kind,
        .end = (uint8_t)s->end,
    };
    into = put(into, &head, sizeof head);
    into = put(into, s->kernel, head.kernel_count * sizeof *s->kernel);
    into = put(into, s->user, head.user_count * sizeof *s->user);
    into = put(into, s->user_exact, head.user_count * sizeof *s->user_exact);
    put(into, s->chain.data, head.chain_size);
}

struct raw_sample waiting_sample_get(struct span bytes)
{
    const struct waiting_head *head = (const void *)bytes.data;
    const uint64_t *kernel = (const uint64_t *)(head + 1), *user = kernel + head->kernel_count;
    const bool *exact = (const bool *)(user + head->user_count);
    return (struct raw_sample){
        .hash = head->hash,
        .is_hashed = true,
        .time_ns = head->time_ns,
        .weight = head->weight,
        .kernel = kernel,
        .user = user,
        .kernel_count = head->kernel_count,
        .user_count = head->user_count,
        .user_exact = exact,
        .chain = { (const uint8_t *)(exact + head->user_count), head->chain_size },
        .thread = head->thread,
        .cpu = head->cpu,
        .kind = (enum sample_kind)head->kind,
        .end = (enum stack_end)head->end,
    };
}
