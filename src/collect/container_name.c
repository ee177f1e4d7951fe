#include "collect/container_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/target_root.h"
#include "collect/proc_file.h"

enum { NAME_BYTES_MAX = 253, FILE_BYTES_MAX = 4 << 20 };

static char *copy_name(struct span text)
{
    if (text.size == 0 || text.size > NAME_BYTES_MAX)
        return NULL;
    char *name = mem_alloc(text.size + 1, 1);
    memcpy(name, text.data, text.size);
    return name;
}

/* The text behind `key` up to the next quote, at or after `start`. */
static struct span quoted_after(struct span json, const char *key)
{
    const uint8_t *at = json.size ? memmem(json.data, json.size, key, strlen(key)) : NULL;
    if (!at)
        return (struct span){ 0 };
    at += strlen(key);
    size_t left = json.size - (size_t)(at - json.data);
    const uint8_t *end = memchr(at, '"', left);
    return end ? (struct span){ at, (size_t)(end - at) } : (struct span){ 0 };
}

static char *from_docker(const char *id, struct buffer *text)
{
    char path[256];
    snprintf(path, sizeof path, "/var/lib/docker/containers/%s/config.v2.json", id);
    if (!proc_file_read_path(path, text, NULL))
        return NULL;
    return copy_name(quoted_after(buffer_span(text), "\"Name\":\"/"));
}

static char *from_podman(const char *id, struct buffer *text)
{
    char key[128];
    if (!proc_file_read_path("/var/lib/containers/storage/overlay-containers/containers.json", text, NULL))
        return NULL;
    snprintf(key, sizeof key, "\"id\":\"%s\"", id);
    struct span json = buffer_span(text);
    const uint8_t *at = json.size ? memmem(json.data, json.size, key, strlen(key)) : NULL;
    if (!at)
        return NULL;
    size_t skipped = (size_t)(at - json.data);
    return copy_name(quoted_after((struct span){ at, json.size - skipped }, "\"names\":[\""));
}

char *container_host_name(const char *id, int root_fd)
{
    AUTO_FD int fd = -1;
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = NAME_BYTES_MAX + 1 };
    if (root_fd < 0 || !target_root_open_path(root_fd, "/etc/hostname", rules, &fd, NULL))
        return NULL;
    char text[NAME_BYTES_MAX + 2];
    ssize_t got = read(fd, text, sizeof text - 1);
    if (got <= 0)
        return NULL;
    text[got] = 0;
    text[strcspn(text, "\n")] = 0;
    /* engines call a host by the first digits of the id when nobody named it */
    return *text && strncmp(text, id, strlen(text)) != 0 ? mem_copy_string(text) : NULL;
}

char *container_name_find(const char *id)
{
    struct buffer text;
    buffer_init(&text, FILE_BYTES_MAX);
    char *name = NULL;
    /* hex digits only: other engines' names may hold anything, and are names already */
    bool is_hex = strspn(id, "0123456789abcdef") == 64 && id[64] == 0;
    if (is_hex)
        name = from_docker(id, &text);
    if (is_hex && !name)
        name = from_podman(id, &text);
    buffer_done(&text);
    return is_hex ? name : mem_copy_string(id);
}
