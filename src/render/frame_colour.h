/*
 * frame_colour: the colour of a frame, the same one every time.
 *
 * A frame's family says how light and how vivid it is, its module picks the hue within the family's
 * range, its name shifts the lightness a little so that neighbours can be told apart. The families
 * differ in lightness along blue and orange, so they stay apart for colour-blind people too. Every
 * colour comes twice: for dark text on a light page and for light text on a dark one.
 */
#ifndef CLRPERF_RENDER_FRAME_COLOUR_H
#define CLRPERF_RENDER_FRAME_COLOUR_H

#include <stdint.h>

#include "analyse/profile.h"

/* Order of the legends: what the reader can change comes first. */
enum frame_family {
    FAMILY_OWN, /* managed code outside the framework's assemblies, however it was compiled */
    FAMILY_JIT, /* framework, jitted */
    FAMILY_R2R, /* framework, precompiled */
    FAMILY_DYNAMIC,
    FAMILY_STUB,
    FAMILY_RUNTIME,
    FAMILY_NATIVE,
    FAMILY_KERNEL,
    FAMILY_UNKNOWN,
    FRAME_FAMILIES
};

struct frame_colour {
    uint32_t light, dark; /* 0xRRGGBB: for a light page, for a dark page */
};

/* Frames share few colours, so a page can list them once: every index is below this. */
enum { FRAME_HUES = 9, FRAME_LIGHTS = 3, FRAME_COLOURS = FRAME_FAMILIES * FRAME_HUES * FRAME_LIGHTS };

enum frame_family frame_family_of(const struct profile_frame *frame);
/* For people: "your code", "kernel", ... */
const char *frame_family_name(enum frame_family family);
/* The family's own colour, as legends show it. */
struct frame_colour frame_family_colour(enum frame_family family);
uint32_t frame_colour_index(const struct profile_frame *frame);
struct frame_colour frame_colour_at(uint32_t index);

#endif
