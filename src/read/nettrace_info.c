#include "read/nettrace_info.h"

#include <inttypes.h>

enum { NS_PER_SECOND = 1000000000 };

uint64_t nettrace_info_scaled_ns(const struct nettrace_info *info, uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * NS_PER_SECOND / info->frequency);
}

uint64_t nettrace_info_last_ticks(const struct nettrace_info *info, uint64_t ns)
{
    /* the first that are too late, which are as many as that time has, rounded up */
    unsigned __int128 late =
        (((unsigned __int128)ns + 1) * info->frequency + NS_PER_SECOND - 1) / NS_PER_SECOND;
    return late > UINT64_MAX ? UINT64_MAX : (uint64_t)late - 1;
}

static struct span read_text(struct cursor *c)
{
    return cursor_bytes(c, cursor_varuint32(c));
}

/* A decimal number; 0 when it is none, or too large. */
static uint32_t number_of(struct span text)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || value > UINT32_MAX)
            return 0;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* Nettrace 6 has what earlier versions have in fixed fields as texts. */
static void read_keys(struct cursor *c, struct nettrace_info *info)
{
    const struct {
        const char *key;
        size_t size;
        uint32_t *value;
    } keys[] = {
        { "ProcessId", 9, &info->process_id },
        { "HardwareThreadCount", 19, &info->processors },
        { "ExpectedCPUSamplingRate", 23, &info->sampling_period_ns },
    };
    uint32_t count = cursor_u32le(c);
    for (uint32_t i = 0; i < count && cursor_ok(c); i++) {
        struct span key = read_text(c), value = read_text(c);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (span_equals(key, span_of(keys[k].key, keys[k].size)))
                *keys[k].value = number_of(value);
    }
}

bool nettrace_info_read(struct span content, uint32_t version, struct nettrace_info *out, bool *odd_clock,
                        struct error *err)
{
    struct cursor c = cursor_over(content);
    struct nettrace_info info = { .version = version };
    for (size_t i = 0; i < 8; i++)
        info.utc[i] = cursor_u16le(&c);
    info.sync_ticks = cursor_u64le(&c);
    info.frequency = cursor_u64le(&c);
    info.pointer_size = cursor_u32le(&c);
    if (version >= 6) {
        read_keys(&c, &info);
    } else {
        info.process_id = cursor_u32le(&c);
        info.processors = cursor_u32le(&c);
        info.sampling_period_ns = cursor_u32le(&c);
    }
    if (!cursor_finish(&c, err, "the stream's first object"))
        return false;
    if (info.pointer_size != 4 && info.pointer_size != 8)
        return error_set(err, ERROR_INPUT, "a pointer size of %" PRIu32, info.pointer_size);
    *odd_clock = info.frequency == 0;
    if (*odd_clock)
        info.frequency = NS_PER_SECOND;
    info.sync_ns = nettrace_info_ns(&info, info.sync_ticks);
    *out = info;
    return true;
}
