/*
 * child_files: the descriptors a child process of ours keeps open.
 */
#ifndef CLRPERF_COLLECT_CHILD_FILES_H
#define CLRPERF_COLLECT_CHILD_FILES_H

/* The child holds nothing of ours open but one descriptor: a counter or a socket would outlive our closing
 * it. */
void child_files_close_but(int keep);

#endif
