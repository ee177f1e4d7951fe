#include "clr/jit_name.h"

#include <string.h>

#include "base/own.h"

enum { NAME_BYTES_MAX = 512 * 1024 };

void jit_name_init(struct jit_name *n)
{
    buffer_init(&n->name, NAME_BYTES_MAX);
    buffer_init(&n->module, NAME_BYTES_MAX);
}

void jit_name_done(struct jit_name *n)
{
    buffer_done(&n->name);
    buffer_done(&n->module);
}

static void append_clean(struct buffer *b, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buffer_u8(b, (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? '?' : (uint8_t)text[i]);
}

static bool starts_with(const char *p, const char *end, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(end - p) >= size && memcmp(p, word, size) == 0;
}

static bool is_delimiter(char c)
{
    return strchr(",<>()[]&* /", c) != NULL;
}

/* Behind the bracket that closes the one at `p`; `end` when none does. */
static const char *behind_closing(const char *p, const char *end)
{
    char open = *p, close = open == '<' ? '>' : open == '(' ? ')' : ']';
    for (size_t depth = 0; p < end; p++) {
        depth += *p == open;
        depth -= *p == close;
        if (depth == 0)
            return p + 1;
    }
    return end;
}

/*
 * A class name: "[asm]N.Outer/Inner" is spelled "Inner". A '<' where a name begins belongs to a name
 * the compiler made ("<Run>d__0"), elsewhere it opens the type arguments.
 */
static const char *append_class(struct buffer *out, const char *p, const char *end)
{
    if (p < end && *p == '[')
        p = behind_closing(p, end);
    const char *name = p;
    bool begins = true;
    for (; p < end; p++) {
        if (begins && *p == '<') {
            p = behind_closing(p, end);
            if (p == end)
                break;
        }
        begins = *p == '.' || *p == '/';
        if (*p == '/')
            name = p + 1;
        else if (is_delimiter(*p))
            break;
    }
    append_clean(out, name, (size_t)(p - name));
    return p;
}

static const struct {
    const char *perf_map, *eventpipe;
} primitives[] = {
    { "native int", "int" },
    { "native uint", "unsigned int" },
    { "uint8", "unsigned int8" },
    { "uint16", "unsigned int16" },
    { "uint32", "unsigned int32" },
    { "uint64", "unsigned int64" },
    { "char", "wchar" },
    { "string", "class System.String" },
    { "object", "class System.Object" },
    { "typedref", "refany" },
};

/* What only one of the dialects writes: passed over. NULL when `p` is something else. */
static const char *skip_modifier(const char *p, const char *end)
{
    if (starts_with(p, end, " modreq(") || starts_with(p, end, " modopt("))
        return behind_closing(p + 7, end);
    if (starts_with(p, end, " /* ")) {
        const char *close = memmem(p, (size_t)(end - p), "*/", 2);
        return close ? close + 2 : end;
    }
    return NULL;
}

/* A word where a type begins: a primitive, a class, a method pointer or another name. */
static const char *append_word(struct buffer *out, const char *p, const char *end)
{
    static const char *const conventions[] = { "unmanaged ", "cdecl ", "stdcall ", "thiscall ", "fastcall " };
    for (size_t i = 0; i < ARRAY_LEN(primitives); i++) {
        const char *after = p + strlen(primitives[i].perf_map);
        if (starts_with(p, end, primitives[i].perf_map) && (after == end || is_delimiter(*after))) {
            buffer_string(out, primitives[i].eventpipe);
            return after;
        }
    }
    if (starts_with(p, end, "valuetype ")) {
        buffer_string(out, "value class ");
        return append_class(out, p + strlen("valuetype "), end);
    }
    if (starts_with(p, end, "class ")) {
        buffer_string(out, "class ");
        return append_class(out, p + strlen("class "), end);
    }
    if (starts_with(p, end, "method ")) {
        buffer_string(out, "fnptr ");
        p += strlen("method ");
        for (size_t i = 0; i < ARRAY_LEN(conventions); i++)
            if (starts_with(p, end, conventions[i]))
                p += strlen(conventions[i]);
        return p;
    }
    return append_class(out, p, end);
}

/* "(types)" from the perf map's dialect to EventPipe's. */
static void append_signature(struct buffer *out, const char *p, const char *end)
{
    while (p < end && !out->failed) {
        const char *after = skip_modifier(p, end);
        if (after) {
            p = after;
        } else if (starts_with(p, end, " *(")) { /* the arguments of a method pointer */
            buffer_u8(out, '(');
            p += 3;
        } else if (*p == '[') { /* "[0...,0...]" */
            for (after = behind_closing(p, end); p < after; p++)
                if (strchr("[],", *p))
                    buffer_u8(out, (uint8_t)*p);
        } else if (is_delimiter(*p)) {
            append_clean(out, p++, 1);
        } else {
            p = append_word(out, p, end);
        }
    }
}

static const struct {
    const char *word;
    enum code_tier tier;
} tiers[] = {
    { "QuickJitted", TIER_0 },
    { "MinOptJitted", TIER_0 },
    { "OptimizedTier1", TIER_1 },
    { "OptimizedTier1OSR", TIER_OSR },
    { "Optimized", TIER_OPTIMIZED },
    { "InstrumentedTier", TIER_0_INSTRUMENTED },
    { "InstrumentedTierOptimized", TIER_0_INSTRUMENTED },
    { "PreJIT", TIER_R2R },
    { "PreJit-cold", TIER_R2R },
    { "ReadyToRun", TIER_R2R },
};

/* Takes a trailing "[Tier]" off; *end moves before it. */
static enum code_tier take_tier(const char *text, const char **end)
{
    const char *open =
        *end - text > 2 && (*end)[-1] == ']' ? memrchr(text, '[', (size_t)(*end - text)) : NULL;
    if (!open || open == text || open[-1] != ')')
        return TIER_NONE;
    size_t size = (size_t)(*end - open - 2);
    *end = open;
    for (size_t i = 0; i < ARRAY_LEN(tiers); i++)
        if (strlen(tiers[i].word) == size && memcmp(tiers[i].word, open + 1, size) == 0)
            return tiers[i].tier;
    return TIER_NONE;
}

/*
 * The "[asm] " in front of "Type::Method(": assemblies inside of types are not followed by a blank,
 * and array brackets hold no name. False when there is none: not a .NET method.
 */
static bool find_assembly(const char *text, const char *end, struct span *asm_name, const char **method)
{
    /* each is looked for once: a name may be 64 KiB of "] ] ] " */
    const char *open = NULL, *paren = NULL, *colons = NULL, *seen = text;
    for (const char *p = text; (p = memmem(p, (size_t)(end - p), "] ", 2)); p++) {
        const char *nearer = memrchr(seen, '[', (size_t)(p - seen));
        open = nearer ? nearer : open;
        seen = p;
        if (!paren || paren < p)
            paren = memchr(p, '(', (size_t)(end - p));
        if (!colons || colons < p)
            colons = memmem(p, (size_t)(end - p), "::", 2);
        if (!paren || !colons)
            return false;
        if (!open || open + 1 == p || memchr("],.", open[1], 3) || (open > text && open[-1] != ' ') ||
            colons + 2 > paren)
            continue;
        *asm_name = span_of(open + 1, (size_t)(p - open - 1));
        *method = p + 2;
        return true;
    }
    return false;
}

/* Where the parameters begin: the first '(' outside of type arguments. */
static const char *signature_start(const char *method, const char *end)
{
    for (const char *p = method; p < end; p++) {
        if (*p == '(')
            return p;
        if (*p == '[') {
            p = behind_closing(p, end) - 1;
        }
    }
    return end;
}

/* "stub<N> A<B>" or "stub A<B>": B says what kind it is, A who made it. */
static bool parse_stub(struct jit_name *n, const char *text, const char *end)
{
    if (!starts_with(text, end, "stub"))
        return false;
    const char *p = text + 4;
    if (p < end && *p == '<') /* the number, should a version print it in brackets */
        p = behind_closing(p, end);
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    if (p == end || *p != ' ' || end[-1] != '>')
        return false;
    const char *maker = p + 1;
    const char *open = memchr(maker, '<', (size_t)(end - maker));
    if (!open || open == maker)
        return false;
    const char *kind = open + 1;
    size_t size = (size_t)(end - kind - 1);
    if ((size == 1 && *kind == '?') || (size == 7 && memcmp(kind, "Unknown", 7) == 0)) {
        kind = maker;
        size = (size_t)(open - maker);
    }
    buffer_string(&n->name, "[stub ");
    append_clean(&n->name, kind, size);
    buffer_u8(&n->name, ']');
    return true;
}

void jit_name_parse(struct jit_name *n, struct span raw, const char *other_module, struct code_name *out)
{
    const char *text = (const char *)raw.data, *end = text + raw.size, *method;
    struct code_name name = { .type_params = "", .kind = CODE_JIT };
    struct span asm_name;
    buffer_clear(&n->name);
    buffer_clear(&n->module);
    if (raw.size == 0) {
        buffer_string(&n->module, other_module);
    } else if (parse_stub(n, text, end)) {
        name.kind = CODE_STUB;
    } else if (find_assembly(text, end, &asm_name, &method)) {
        name.tier = take_tier(method, &end);
        const char *signature = signature_start(method, end);
        append_clean(&n->name, method, (size_t)(signature - method));
        append_signature(&n->name, signature, end);
        append_clean(&n->module, (const char *)asm_name.data, asm_name.size);
        name.kind = starts_with(method, end, "dynamicClass::") ? CODE_DYNAMIC
                    : name.tier == TIER_R2R                    ? CODE_R2R
                                                               : CODE_JIT;
    } else {
        append_clean(&n->name, text, raw.size);
        buffer_string(&n->module, other_module);
    }
    buffer_u8(&n->name, 0);
    buffer_u8(&n->module, 0);
    name.name = n->name.failed ? "" : (const char *)n->name.data;
    name.module = n->module.failed ? "" : (const char *)n->module.data;
    name.resolver = out->resolver;
    *out = name;
}
