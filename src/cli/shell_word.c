#include "cli/shell_word.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+:@%,=-";
static const char quote_in_quotes[] = "'\\''";

/* Of bytes beyond ASCII no shell makes anything. */
static bool is_plain(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!strchr(plain, *p) && (unsigned char)*p < 0x80)
            return false;
    return *text != '\0';
}

char *shell_word_new(const char *text)
{
    size_t size = strlen(text);
    char *word = mem_alloc(size * (sizeof quote_in_quotes - 1) + 3, 1), *at = word;
    if (is_plain(text))
        return memcpy(word, text, size + 1);
    *at++ = '\'';
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            memcpy(at, quote_in_quotes, sizeof quote_in_quotes - 1);
            at += sizeof quote_in_quotes - 1;
        } else {
            *at++ = *p;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return word;
}
