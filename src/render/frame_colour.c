#include "render/frame_colour.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/id_map.h"
#include "base/own.h"

/* OKLCH: lightness 0..1, chroma, hue in degrees (https://bottosson.github.io/posts/oklab/). */
static const struct family {
    const char *name;
    double hue, hue_range; /* degrees, to both sides */
    double light_l, light_c;
    double dark_l, dark_c;
} families[FRAME_FAMILIES] = {
    [FAMILY_OWN] = { "your code", 62, 15, 0.80, 0.145, 0.60, 0.130 },
    [FAMILY_JIT] = { "framework, jitted", 104, 9, 0.89, 0.085, 0.52, 0.070 },
    [FAMILY_R2R] = { "framework, precompiled", 160, 18, 0.87, 0.070, 0.49, 0.062 },
    [FAMILY_DYNAMIC] = { "dynamic", 345, 8, 0.83, 0.095, 0.54, 0.110 },
    [FAMILY_STUB] = { "stub", 320, 6, 0.87, 0.030, 0.47, 0.030 },
    [FAMILY_RUNTIME] = { "runtime", 296, 10, 0.77, 0.090, 0.46, 0.105 },
    [FAMILY_NATIVE] = { "native", 240, 17, 0.81, 0.080, 0.45, 0.080 },
    [FAMILY_KERNEL] = { "kernel", 24, 7, 0.70, 0.130, 0.43, 0.115 },
    [FAMILY_UNKNOWN] = { "unknown", 260, 0, 0.84, 0.006, 0.40, 0.008 },
};

static const char *const framework_prefixes[] = { "System.", "Microsoft.", "Interop." };
static const char *const framework_names[] = { "System", "mscorlib", "netstandard", "WindowsBase" };

static bool frame_is_framework(const char *module)
{
    for (size_t i = 0; i < ARRAY_LEN(framework_prefixes); i++)
        if (strncmp(module, framework_prefixes[i], strlen(framework_prefixes[i])) == 0)
            return true;
    size_t size = strcspn(module, ".");
    for (size_t i = 0; i < ARRAY_LEN(framework_names); i++)
        if (strlen(framework_names[i]) == size && strncmp(module, framework_names[i], size) == 0)
            return true;
    return false;
}

enum frame_family frame_family_of(const struct profile_frame *frame)
{
    switch ((enum code_kind)frame->kind) {
    case CODE_KERNEL:
        return FAMILY_KERNEL;
    case CODE_NATIVE:
        return FAMILY_NATIVE;
    case CODE_RUNTIME:
        return FAMILY_RUNTIME;
    case CODE_R2R:
        return frame_is_framework(frame->module) ? FAMILY_R2R : FAMILY_OWN;
    case CODE_JIT:
        return frame_is_framework(frame->module) ? FAMILY_JIT : FAMILY_OWN;
    case CODE_DYNAMIC:
        return FAMILY_DYNAMIC;
    case CODE_STUB:
        return FAMILY_STUB;
    case CODE_UNKNOWN:
    case CODE_IDLE:
    case CODE_KINDS:
        break;
    }
    return FAMILY_UNKNOWN;
}

const char *frame_family_name(enum frame_family family)
{
    return families[family].name;
}

static uint32_t channel_of_linear(double value)
{
    value = value < 0 ? 0 : value > 1 ? 1 : value;
    double gamma = value <= 0.0031308 ? 12.92 * value : 1.055 * pow(value, 1 / 2.4) - 0.055;
    return (uint32_t)(gamma * 255 + 0.5);
}

static uint32_t rgb_of_oklch(double lightness, double chroma, double hue)
{
    double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
    double l = lightness + 0.3963377774 * a + 0.2158037573 * b;
    double m = lightness - 0.1055613458 * a - 0.0638541728 * b;
    double s = lightness - 0.0894841775 * a - 1.2914855480 * b;
    l *= l * l;
    m *= m * m;
    s *= s * s;
    return channel_of_linear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) << 16 |
           channel_of_linear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
           channel_of_linear(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}

static struct frame_colour family_colour(enum frame_family family, double hue_shift, double light_shift)
{
    const struct family *f = &families[family];
    double hue = f->hue + hue_shift * f->hue_range;
    return (struct frame_colour){
        .light = rgb_of_oklch(f->light_l + light_shift, f->light_c, hue),
        .dark = rgb_of_oklch(f->dark_l + light_shift, f->dark_c, hue),
    };
}

struct frame_colour frame_family_colour(enum frame_family family)
{
    return family_colour(family, 0, 0);
}

uint32_t frame_colour_index(const struct profile_frame *frame)
{
    uint64_t module = hash_bytes(frame->module, strlen(frame->module));
    uint64_t name = hash_bytes(frame->name, strlen(frame->name));
    return (frame_family_of(frame) * FRAME_HUES + (uint32_t)(module % FRAME_HUES)) * FRAME_LIGHTS +
           (uint32_t)(name % FRAME_LIGHTS);
}

struct frame_colour frame_colour_at(uint32_t index)
{
    uint32_t light = index % FRAME_LIGHTS;
    uint32_t hue = index / FRAME_LIGHTS % FRAME_HUES;
    enum frame_family family = index / FRAME_LIGHTS / FRAME_HUES;
    if (family >= FRAME_FAMILIES)
        family = FAMILY_UNKNOWN;
    return family_colour(family, 2.0 * hue / (FRAME_HUES - 1) - 1, ((double)light - 1) * 0.018);
}
