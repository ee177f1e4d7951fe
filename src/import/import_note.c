#include "import/import_note.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/own.h"
#include "trace/facts.h"

void import_note(struct trace *t, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *before = trace_fact_value(t, FACT_NOTES);
    AUTO_FREE char *all = before ? mem_format("%s; %s", before, text) : mem_copy_string(text);
    trace_set_fact(t, FACT_NOTES, all);
}
