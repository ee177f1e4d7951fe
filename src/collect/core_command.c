#include "collect/core_command.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum {
    WORD_BYTES = 8,
    ABOVE_BYTES = 4096, /* between the vector and what it points to */
    BLOCK_WORDS = 512,
    POINTERS_BYTES = 256 << 10 /* of the arguments and the environment */
};

/* What of the vector counts, and the lowest address that lies right above it; 0: it tells none. */
static size_t vector_bytes(const struct core_file *core, uint64_t *out_above)
{
    uint64_t random = core_file_auxiliary(core, CORE_AUXILIARY_RANDOM);
    uint64_t platform = core_file_auxiliary(core, CORE_AUXILIARY_PLATFORM);
    *out_above = !random || (platform && platform < random) ? platform : random;
    return core_file_auxiliary_bytes(core);
}

/* Where the vector lies in memory; 0: it is not in the dump. */
static uint64_t find_vector(const struct core_file *core)
{
    uint8_t bytes[CORE_AUXILIARY_BYTES_MAX + ABOVE_BYTES];
    uint64_t above;
    size_t size = vector_bytes(core, &above), window = size + ABOVE_BYTES;
    if (size == 0 || above < window)
        return 0;
    memory_read(&core->memory, above - window, bytes, window);
    const uint8_t *found = memmem(bytes, window, core->auxiliary, size);
    return found ? above - window + (uint64_t)(found - bytes) : 0;
}

/* The index of argv's first pointer among the words below the vector; 0: there is no such thing. */
static size_t find_arguments(const uint8_t *words, size_t count, size_t *out_arguments)
{
    size_t at = count;
    if (count < 2 || load_u64le(words + (count - 1) * WORD_BYTES) != 0)
        return 0;
    for (at--; at > 0 && load_u64le(words + (at - 1) * WORD_BYTES) != 0;) /* the environment */
        at--;
    if (at == 0)
        return 0;
    size_t end = --at; /* the 0 behind the arguments */
    for (; at > 0; at--) {
        uint64_t word = load_u64le(words + (at - 1) * WORD_BYTES);
        if (word == end - at) {
            *out_arguments = end - at;
            return end > at ? at : 0;
        }
        if (word == 0)
            return 0;
    }
    return 0;
}

static void append_argument(const struct core_file *core, uint64_t addr, struct buffer *out)
{
    char text[CORE_COMMAND_ARGUMENT_BYTES_MAX + 1] = { 0 };
    memory_read(&core->memory, addr, text, sizeof text - 1); /* what lies behind the stack's end stays 0 */
    buffer_append(out, text, strlen(text) + 1);
}

bool core_command_read(const struct core_file *core, struct buffer *out)
{
    uint64_t vector = find_vector(core);
    uint64_t bytes = vector < POINTERS_BYTES ? vector & ~(uint64_t)(WORD_BYTES - 1) : POINTERS_BYTES;
    size_t count = (size_t)bytes / WORD_BYTES, arguments = 0;
    if (count == 0)
        return false;
    AUTO_FREE uint8_t *words = mem_alloc(count, WORD_BYTES);
    for (size_t i = 0; i < count; i += BLOCK_WORDS) { /* some of them may be below the stack */
        size_t some = count - i < BLOCK_WORDS ? count - i : BLOCK_WORDS;
        memory_read(&core->memory, vector - bytes + i * WORD_BYTES, words + i * WORD_BYTES,
                    some * WORD_BYTES);
    }
    size_t first = find_arguments(words, count, &arguments);
    for (size_t i = 0; first && i < arguments && i < CORE_COMMAND_ARGUMENTS_MAX; i++)
        append_argument(core, load_u64le(words + (first + i) * WORD_BYTES), out);
    return first != 0 && !out->failed;
}
