/*
 * container_name: what people call a container whose id we know.
 */
#ifndef CLRPERF_COLLECT_CONTAINER_NAME_H
#define CLRPERF_COLLECT_CONTAINER_NAME_H

/* From the engine's files on this host, where we may read them; NULL when unknown. The caller frees. */
char *container_name_find(const char *id);
/* The host name inside the target's root (in Kubernetes the pod's name), unless it is the id; as above. */
char *container_host_name(const char *id, int root_fd);

#endif
