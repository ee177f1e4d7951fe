/*
 * web_files: the files of web/ as bytes in this program, made at build time by web/embed.py.
 */
#ifndef CLRPERF_RENDER_WEB_FILES_H
#define CLRPERF_RENDER_WEB_FILES_H

#include "base/cursor.h"

struct web_file {
    struct span text;   /* with a NUL behind */
    const char *sha256; /* of the text, in base64, as a Content-Security-Policy wants it */
};

extern const struct web_file web_flame_html, web_flame_css, web_flame_js;
extern const struct web_file web_flame_svg_css, web_flame_svg_js;

#endif
