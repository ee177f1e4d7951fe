/*
 * shell_word: a text as one word of a command line that a user can copy into a shell.
 */
#ifndef CLRPERF_CLI_SHELL_WORD_H
#define CLRPERF_CLI_SHELL_WORD_H

/* As it is where no shell makes anything of it, else in single quotes. The caller frees. */
char *shell_word_new(const char *text);

#endif
