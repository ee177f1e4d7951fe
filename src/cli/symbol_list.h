/*
 * symbol_list: prints images and where their symbols are.
 */
#ifndef CLRPERF_CLI_SYMBOL_LIST_H
#define CLRPERF_CLI_SYMBOL_LIST_H

#include "cli/symbol_images.h"

bool symbol_list_text(const struct symbol_images *images, struct error *err);
bool symbol_list_json(const struct symbol_images *images, struct error *err);

/* Whether something is missing that has an id to ask for. */
bool symbol_list_is_missing(const struct symbol_image *image);
/* Says on stderr how much is missing and what to do about it. `of`: how `symbols fetch` names the images. */
void symbol_list_advise(const struct symbol_images *images, const char *of);

#endif
