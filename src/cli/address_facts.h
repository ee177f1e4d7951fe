/*
 * address_facts: what lives at given addresses of a process that runs or left a core dump.
 */
#ifndef CLRPERF_CLI_ADDRESS_FACTS_H
#define CLRPERF_CLI_ADDRESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/code_census.h"
#include "collect/target.h"
#include "symbolize/symbolizer.h"

/* Texts are ids: see address_facts_text(). 0: there is none, or it is not known. */
struct address_fact {
    uint64_t addr;
    uint32_t mapping;        /* "START-END PERMISSIONS FILE_OFFSET", in hex, as /proc/PID/maps has them */
    uint32_t image;          /* what is mapped, as the process sees it */
    uint32_t build_id, mvid; /* of the native file, of the assembly; in hex */
    uint32_t function, module;
    uint64_t offset; /* of the address in the function */
    bool has_offset;
    uint32_t il_off;                 /* or one of read/il_map.h's marks */
    uint32_t file, line;             /* line 0: not known */
    bool line_of_method;             /* the line is where the method begins: which statement is not known */
    uint32_t inlined, inlined_count; /* rows of the trace's inlined functions, as of a trace_location */
    uint8_t kind;                    /* enum code_kind */
    uint8_t tier;                    /* enum code_tier */
    uint8_t resolver;                /* enum resolver; RESOLVER_NONE: nobody knows a name */
};

struct address_facts {
    struct address_fact *rows; /* in the order of the question; owned */
    size_t count;
    struct code_census census; /* holds the texts */
};

struct address_question {
    const uint64_t *addrs;
    size_t count;
    bool raw_names;
    bool by_memory_only; /* as in code_census_choice */
};

/* Fails as code_census_take(). The caller ends it with address_facts_done(). */
bool address_facts_find(const struct target *target, const struct address_question *question,
                        struct address_facts *out, struct error *err);
/* Of a core dump, which is borrowed for as long as *out. Ended in the same way. */
void address_facts_find_core(struct core_target *core, const struct address_question *question,
                             struct address_facts *out);
void address_facts_done(struct address_facts *facts);
/* One of the functions that were inlined there, the innermost is number 0; and what it is called. */
const struct trace_inlined *address_facts_inlined(const struct address_facts *facts,
                                                  const struct address_fact *fact, uint32_t i);
const char *address_facts_function(const struct address_facts *facts, const struct trace_inlined *inlined);
/* NULL for 0. Valid as long as the facts. */
const char *address_facts_text(const struct address_facts *facts, uint32_t id);

#endif
