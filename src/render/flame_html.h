/*
 * flame_html: a profile as a flame graph in one HTML page that needs nothing else.
 *
 * The page is web/flame.html with web/flame.css, web/flame.js and the profile's data in it. Its
 * Content-Security-Policy allows exactly that style and that script, and no request at all.
 *
 * The data, "clrperf-report/1". Script element "meta" holds JSON (see meta_write()). The elements
 * "frames", "nodes" and "samples" hold raw deflate in base64 of columns; a varint is LEB128, a zigzag
 * a zigzag-coded LEB128, a text a varint of its bytes and UTF-8, all cleaned by shown_text_plain().
 *
 *   frames   varint modules; text each. varint files; text each. varint frames; for each one, by name:
 *            varint bytes shared with the name before, text of the rest, varint module, byte kind
 *            (enum code_kind), byte tier (enum code_tier), byte family (enum frame_family), varint
 *            colour (into meta.colours), varint file (index; text 0 is ""), varint line
 *   nodes    varint nodes, the root not counted; then columns by node in the order of flame_layout:
 *            varint levels up (0: a callee of the node before; n: of its caller n levels up);
 *            varint frame (index); varint self weight in units of meta.weight_step, the
 *            root's first
 *   samples  varint samples; byte weighted; columns in time order: varint ticks (of meta.tick_ns) since
 *            the sample before; varint thread (index into meta.threads); zigzag node (1-based place in
 *            nodes, 0 the root) minus that of the thread's sample before; when weighted, varint weight
 *            in units of meta.weight_step, else each weighs one such unit
 */
#ifndef CLRPERF_RENDER_FLAME_HTML_H
#define CLRPERF_RENDER_FLAME_HTML_H

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

bool flame_html_write(const struct profile *profile, const struct export_options *options, struct output *out,
                      struct error *err);

#endif
