/*
 * contract_descriptor: what a runtime says itself about the layout of its structures.
 *
 * Exported as DotNetRuntimeContractDescriptor since 9, complete enough for code since 10. Specified in
 * dotnet/runtime, docs/design/datacontracts/contract-descriptor.md: a small header, compact JSON, and an
 * array of pointers to globals.
 */
#ifndef CLRPERF_CLR_CONTRACT_DESCRIPTOR_H
#define CLRPERF_CLR_CONTRACT_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory_pages.h"

struct contract_descriptor;

/* Reads the descriptor at `addr`. ERROR_INPUT when there is none. */
bool contract_descriptor_open(struct memory_pages *pages, uint64_t addr, struct contract_descriptor **out,
                              struct error *err);
/* NULL is fine. */
void contract_descriptor_close(struct contract_descriptor *descriptor);

/* The offset of a field of a type, "!" for the type's size. False when it is not told. */
bool contract_descriptor_field(const struct contract_descriptor *descriptor, const char *type,
                               const char *field, uint16_t *out);
/* A global that is a number. */
bool contract_descriptor_number(const struct contract_descriptor *descriptor, const char *global,
                                uint64_t *out);
/* The address of a global that is a pointer. */
bool contract_descriptor_addr(const struct contract_descriptor *descriptor, const char *global,
                              uint64_t *out);
/* A global that is a text, as long as the descriptor; NULL when it is not told. */
const char *contract_descriptor_text(const struct contract_descriptor *descriptor, const char *global);
/* The version of a contract, or 0. Since .NET 11 they count anew ("c1" in the place of 2): above this. */
enum { CONTRACTS_ANEW = 1000 };
uint64_t contract_descriptor_version(const struct contract_descriptor *descriptor, const char *contract);

#endif
