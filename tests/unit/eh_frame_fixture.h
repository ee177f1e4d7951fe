/*
 * eh_frame_fixture: writes .eh_frame sections for tests.
 */
#ifndef CLRPERF_TESTS_EH_FRAME_FIXTURE_H
#define CLRPERF_TESTS_EH_FRAME_FIXTURE_H

#include "base/buffer.h"

enum { EH_FIXTURE_ADDR = 0x100000 }; /* where the section is linked */

/*
 * A CIE as compilers write it for x86-64: CFA is rsp+8 and the return address at CFA-8, then `more`. Returns
 * its offset.
 */
size_t eh_fixture_cie(struct buffer *section, const char *augmentation, const void *more, size_t more_bytes);
/* The same for arm64: CFA is sp, and the return address in x30. */
size_t eh_fixture_arm64_cie(struct buffer *section, const char *augmentation);
void eh_fixture_fde(struct buffer *section, size_t cie, uint64_t start, uint32_t size_bytes,
                    const void *instructions, size_t instruction_bytes);
/* The terminator. */
void eh_fixture_end(struct buffer *section);

#endif
