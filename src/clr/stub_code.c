#include "clr/stub_code.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"

/* Bytes in hex; `..` is any byte. */
struct stub_pattern {
    const char *kind;
    const char *bytes;
};

/* A slot of a generic dictionary, reached from the first argument; where it may be empty the runtime is
 * asked. */
#define LOOKUP_HELPER(loads)                                                                                 \
    { "[runtime lookup helper]", loads " 4885c0 7401 c3 48be................ e9........" },                  \
    {                                                                                                        \
        "[runtime lookup helper]", loads " c3"                                                               \
    }

/* To the method itself, with a hidden argument that the caller does not know. */
#define TAIL_CALL " 48b8................ ffe0"
/* The hidden argument is a constant. It goes before the others, each of which moves on by a register. */
#define INSTANTIATING_STUB(moves, load)                                                                      \
    {                                                                                                        \
        "[instantiating stub]", moves load "................" TAIL_CALL                                      \
    }
/* `this` is boxed: behind its type, which may be the hidden argument, is what the method works on. */
#define UNBOXING_STUB(moves)                                                                                 \
    {                                                                                                        \
        "[unboxing stub]", moves "4883c708" TAIL_CALL                                                        \
    }

static const struct stub_pattern patterns[] = {
    { "[fixup precode]", "ff25fa3f0000 4c8b15fb3f0000 ff25fd3f0000" },
    { "[stub precode]", "4c8b15f93f0000 ff25fb3f0000" },
    { "[call counting stub]", "488b05f93f0000 66ff08 7406 ff25........ ff25........" },
    { "[call counting stub]", "488b05f93f0000 66ff08" },
    { "[dispatch stub]", "48b8................ 483907 90 48b8................ 0f85........ ffe0" },
    { "[dispatch stub]", "48b8................ 483907 48b8................ 0f85........ ffe0" },
    /* by the cache of targets; what it goes on with: found, or counted and then asked for */
    { "[resolve stub]",
      "488b07 52 49ba................ 488bd0 48c1e80c 4803c2 4835........ 4825........ 4a8b0410" },
    { "[resolve stub]", "49ba................ 483b50.. 75.. 4c3b50.. 75.. 488b40.. 5a ffe0" },
    { "[resolve stub]",
      "48b8................ 8300ff 7d.. 4983cb01 52 49ba................ 50 48b8................ ffe0" },
    { "[lookup stub]", "50 48b8................ ffe0" },
    { "[vtable call stub]", "488b07 488b40.. ff60.." },
    { "[vtable call stub]", "488b07 488b40.. ffa0........" },
    { "[vtable call stub]", "488b07 488b80........ ff60.." },
    { "[vtable call stub]", "488b07 488b80........ ffa0........" },
    /* helpers that precompiled code calls for types, statics and generic dictionaries */
    LOOKUP_HELPER("488b47.."),
    LOOKUP_HELPER("488b87........"),
    LOOKUP_HELPER("488b47.. 488b40.."),
    LOOKUP_HELPER("488b87........ 488b40.."),
    LOOKUP_HELPER("488b47.. 488b80........"),
    LOOKUP_HELPER("488b47.. 488b40.. 488b40.."),
    LOOKUP_HELPER("488b47.. 488b40.. 488b80........"),
    LOOKUP_HELPER("488b47.. 488b00 488b40.."),
    LOOKUP_HELPER("488b47.. 488b00 488b80........"),
    /* of a dictionary that may be too short yet */
    LOOKUP_HELPER("488b47.. 4881b8................ 7e.. 488b40.."),
    LOOKUP_HELPER("488b47.. 4881b8................ 7e.. 488b80........"),
    LOOKUP_HELPER("488b47.. 488b40.. 4881b8................ 7e.. 488b40.."),
    LOOKUP_HELPER("488b47.. 488b40.. 4881b8................ 7e.. 488b80........"),
    /* the part that asks the runtime, behind any other way to the slot */
    { "[runtime lookup helper]", "4885c0 7401 c3 48be................ e9........" },
    { "[dynamic helper]", "488bf7 48bf................ e9........" },
    { "[dynamic helper]", "48bf................ e9........" },
    { "[dynamic helper]", "48be................ e9........" },
    { "[dynamic helper]", "48bf................ 48be................ e9........" },
    { "[dynamic helper]", "48ba................ 48b9................ e9........" },
    { "[dynamic helper]", "48ba................ e9........" },
    { "[dynamic helper]", "48b9................ e9........" },
    { "[dynamic helper]", "48a1................ c3" },
    { "[dynamic helper]", "48a1................ 4883c0.. c3" },
    { "[dynamic helper]", "48b8................ c3" },
    { "[dynamic helper]", "48b8................ 488b00 c3" },
    INSTANTIATING_STUB("4d89c1 4989c8 4889d1 4889f2 4889fe", "48bf"),
    INSTANTIATING_STUB("4989c8 4889d1 4889f2 4889fe", "48bf"),
    INSTANTIATING_STUB("4889d1 4889f2 4889fe", "48bf"),
    INSTANTIATING_STUB("4889f2 4889fe", "48bf"),
    INSTANTIATING_STUB("4889fe", "48bf"),
    INSTANTIATING_STUB("", "48bf"),
    INSTANTIATING_STUB("4d89c1 4989c8 4889d1 4889f2", "48be"),
    INSTANTIATING_STUB("4989c8 4889d1 4889f2", "48be"),
    INSTANTIATING_STUB("4889d1 4889f2", "48be"),
    INSTANTIATING_STUB("4889f2", "48be"),
    INSTANTIATING_STUB("", "48be"),
    INSTANTIATING_STUB("4d89c1 4989c8 4889d1", "48ba"), /* of a method with a return buffer */
    INSTANTIATING_STUB("4989c8 4889d1", "48ba"),
    INSTANTIATING_STUB("4889d1", "48ba"),
    INSTANTIATING_STUB("", "48ba"),
    UNBOXING_STUB("4d89c1 4989c8 4889d1 4889f2 488b37"),
    UNBOXING_STUB("4989c8 4889d1 4889f2 488b37"),
    UNBOXING_STUB("4889d1 4889f2 488b37"),
    UNBOXING_STUB("4889f2 488b37"),
    UNBOXING_STUB("488b37"),
    UNBOXING_STUB(""),
    /* write barriers: they mark a card of the table that the GC looks at */
    { "[write barrier]", "488937 48c1ef0b 803fff 7502 f3c3" },
    { "[write barrier]", "48893e 0f1f.. 49b8................" },
    { "[write barrier]", "488937 6690 48b8................" },
    { "[write barrier]", "488937 48b8................ 483bf0 72.." },
};

static int hex_digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

static uint8_t hex_byte(const char *p)
{
    return (uint8_t)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
}

/* How many bytes of code the pattern covers when it stands at `start`; 0 when it does not. */
static size_t pattern_match(const char *pattern, struct span bytes, size_t start)
{
    size_t at = start;
    for (const char *p = pattern; *p; p++) {
        if (*p == ' ')
            continue;
        if (at >= bytes.size)
            return 0;
        bool any = p[0] == '.';
        if (!any && bytes.data[at] != hex_byte(p))
            return 0;
        at++;
        p++;
    }
    return at - start;
}

const char *stub_code_kind(struct span bytes, size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        uint8_t first = hex_byte(patterns[i].bytes); /* no pattern begins with any byte */
        for (size_t start = at > STUB_CODE_BEFORE ? at - STUB_CODE_BEFORE : 0;
             start <= at && start < bytes.size; start++)
            if (bytes.data[start] == first && pattern_match(patterns[i].bytes, bytes, start) > at - start)
                return patterns[i].kind;
    }
    return NULL;
}

const char *stub_code_begin(struct span bytes, size_t at, size_t *out_size)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        size_t size = pattern_match(patterns[i].bytes, bytes, at);
        if (size) {
            *out_size = size;
            return patterns[i].kind;
        }
    }
    return NULL;
}

const char *stub_code_place(uint64_t file_off)
{
    if (file_off < 0x1000)
        return "[write barrier]";
    if (file_off >= 0xe000 && file_off < 0x10000)
        return "[shuffle thunk]";
    return NULL;
}
