/*
 * page_section: bytes inside an HTML page, deflated, in base64, as a script element of data.
 */
#ifndef CLRPERF_RENDER_PAGE_SECTION_H
#define CLRPERF_RENDER_PAGE_SECTION_H

#include "render/output.h"

/*
 * Writes <script type="application/octet-stream" id="ID">...</script>; the content is raw deflate
 * (RFC 1951, no zlib header). `id` is ours and needs no escaping. Fails when zlib does.
 */
bool page_section_write(struct output *out, const char *id, struct span bytes, struct error *err);
/* The bytes in base64 (RFC 4648, with padding). */
void page_section_base64(struct output *out, struct span bytes);

#endif
