/*
 * image_names: names the code of one mapped file, whatever it is: ELF, .NET assembly, or an executable with
 * assemblies inside.
 */
#ifndef CLRPERF_SYMBOLIZE_IMAGE_NAMES_H
#define CLRPERF_SYMBOLIZE_IMAGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "symbolize/naming.h"

struct image_names;

/*
 * Opens image `image` of the trace, as one of the processes of `locations`, which lie in it, sees it. A file
 * that is another by now is refused: by its build id when the trace has one; and when the one that was mapped
 * is deleted, by the code in memory. A deleted one can often be had all the same: then as " (deleted)". Never
 * NULL.
 */
struct image_names *image_names_open(struct naming *naming, uint32_t image, const uint32_t *locations,
                                     size_t count);
/* Names a location at an offset in the file, or says why not. */
void image_names_answer(struct image_names *names, struct naming *naming, uint32_t location,
                        uint64_t file_off);
/* Whether it is an assembly, or has some inside: their names depend on what else is known of the process. */
bool image_names_has_assemblies(const struct image_names *names);
/* Asks for the source lines of native locations, and what was inlined there: naming_finish_sources() has
 * them. */
void image_names_ask_sources(const struct image_names *names, struct naming *naming,
                             const uint32_t *locations, const uint64_t *file_offs, size_t count);
/*
 * The same for what is likely an assembly, which a thread reads meanwhile: image_names_await() comes before
 * any question.
 */
struct image_names *image_names_open_ahead(struct naming *naming, uint32_t image, const uint32_t *locations,
                                           size_t count);
void image_names_await(struct image_names *names, struct naming *naming, uint32_t image,
                       const uint32_t *locations, size_t count);
void image_names_close(struct image_names *names);

#endif
