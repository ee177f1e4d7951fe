/*
 * exception_events: what the runtime says of an exception when it is thrown.
 *
 * Events of Microsoft-Windows-DotNETRuntime, as src/coreclr/vm/ClrEtwAll.man in dotnet/runtime has them.
 */
#ifndef CLRPERF_CLR_EXCEPTION_EVENTS_H
#define CLRPERF_CLR_EXCEPTION_EVENTS_H

enum exception_event_id { EXCEPTION_EVENT_THROWN = 80 };

/* Bits of its field ExceptionFlags. */
enum {
    EXCEPTION_FLAG_NESTED = 0x2,   /* thrown while another one was handled */
    EXCEPTION_FLAG_RETHROWN = 0x4, /* not a new one: `throw;` of runtimes up to 8, no await of any */
};

#endif
