/*
 * container_name: what people call a container whose id we know.
 */
#ifndef CLRPERF_COLLECT_CONTAINER_NAME_H
#define CLRPERF_COLLECT_CONTAINER_NAME_H

/*
 * From the engine's files on this host where we may read them, else the host name inside the target's
 * root (a pod's name in Kubernetes). NULL when unknown; the caller frees. `root_fd` may be -1.
 */
char *container_name_find(const char *id, int root_fd);

#endif
