#include "clr/type_keyword.h"

#include <string.h>

#include "base/own.h"

static const struct {
    const char *full_name, *keyword;
} keywords[] = {
    { "System.Boolean", "bool" },  { "System.Char", "char" },       { "System.SByte", "sbyte" },
    { "System.Byte", "byte" },     { "System.Int16", "short" },     { "System.UInt16", "ushort" },
    { "System.Int32", "int" },     { "System.UInt32", "uint" },     { "System.Int64", "long" },
    { "System.UInt64", "ulong" },  { "System.Single", "float" },    { "System.Double", "double" },
    { "System.IntPtr", "nint" },   { "System.UIntPtr", "nuint" },   { "System.String", "string" },
    { "System.Object", "object" }, { "System.Decimal", "decimal" }, { "System.Void", "void" },
};

const char *type_keyword(struct span full_name)
{
    static const char name_space[] = "System.";
    if (full_name.size < sizeof name_space || memcmp(full_name.data, name_space, sizeof name_space - 1) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        if (span_equals(full_name, span_of(keywords[i].full_name, strlen(keywords[i].full_name))))
            return keywords[i].keyword;
    return NULL;
}
