/*
 * event_layout: the catalogue's notation of a payload, for one version of the event.
 *
 * Fields in payload order, separated by ", ":
 *
 *   u4 Count            unsigned of 1, 2, 4 or 8 bytes;  i4 signed;  f8 float;  b4 boolean
 *   x8 MethodID         unsigned, shown in hex: addresses, and ids that are addresses
 *   p Address           the same of the process's pointer size;  n Size  so, but shown as a number
 *   s Name, a Reason    UTF-16LE and 8-bit text that a zero ends
 *   g Signature         GUID
 *   clr                 u2 ClrInstanceID
 *   pad4                bytes between the fields of a C struct
 *   tier Tier[Flags]    the optimization tier within Flags; no bytes
 *   bytes Data[Count]   bytes
 *   bytes Data[Count]?Word{...}   an object where the text before says Word, and it is as long
 *   u4 Offsets[Count]   an array of as many items as the field Count of the same object says
 *   Values[Count]{...}  an array of objects
 *
 * Behind a number "=gc_reason" names its values (clr/event_enum.h). "2:" in front: from version 2 on,
 * "<2:": before version 2.
 */
#ifndef CLRPERF_CLR_EVENT_LAYOUT_H
#define CLRPERF_CLR_EVENT_LAYOUT_H

#include "clr/event_field.h"

/* Fills `out`, which is empty. `text` is a constant of ours: mistakes in it are asserted. */
void event_layout_read(const char *text, uint32_t version, unsigned pointer_size, struct event_fields *out);

#endif
