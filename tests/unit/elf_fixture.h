/*
 * elf_fixture: the small ELF files of tests/golden/elf, in memory.
 */
#ifndef CLRPERF_TESTS_ELF_FIXTURE_H
#define CLRPERF_TESTS_ELF_FIXTURE_H

#include "base/buffer.h"
#include "base/source.h"

/* The caller calls buffer_done(). Fails the test when the file is not there. */
struct buffer elf_fixture_load(const char *name);
/* A descriptor of the fixture, or -1. */
int elf_fixture_open(const char *name);
/* A descriptor of an unnamed file with these bytes, at its start. */
int elf_fixture_file(const void *bytes, size_t size);

#endif
