#include "fetch/download.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"

enum {
    CONNECT_MS_MAX = 10000,
    SLOWEST_BYTES_PER_S = 1024,
    REFUSAL_BYTES_MAX = 64 << 10, /* of a page that says why not */
    HTTP_OK = 200,
    HTTP_NOT_FOUND = 404,
    HTTP_GONE = 410,
};

/* What we use of libcurl. */
struct curl_library {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *curl);
    CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
    void (*easy_cleanup)(CURL *curl);
    const char *(*easy_strerror)(CURLcode code);
};

struct downloads {
    struct curl_library library;
    struct download_limits limits;
    CURL *curl;
    char detail[CURL_ERROR_SIZE];
};

/* One of them while it runs. */
struct download {
    struct downloads *all;
    int fd;
    uint64_t done_bytes;
    int write_error; /* errno, or 0 */
    bool too_large, refused, stopped;
    download_progress_fn *go_on;
    void *user;
};

static bool load_library(struct curl_library *out, struct error *err)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    void *handle = NULL;
    for (size_t i = 0; !handle && i < ARRAY_LEN(names); i++)
        /* lint: allow dlopen, because it is a library of ours by its plain name */
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        error_set(err, ERROR_UNSUPPORTED, "downloads need libcurl, which is not here: %s", dlerror());
        return error_hint(err, "install it: apt-get install libcurl4");
    }
    const struct {
        const char *name;
        void *slot;
    } functions[] = {
        { "curl_global_init", &out->global_init },     { "curl_easy_init", &out->easy_init },
        { "curl_easy_setopt", &out->easy_setopt },     { "curl_easy_perform", &out->easy_perform },
        { "curl_easy_getinfo", &out->easy_getinfo },   { "curl_easy_cleanup", &out->easy_cleanup },
        { "curl_easy_strerror", &out->easy_strerror },
    };
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        void *function = dlsym(handle, functions[i].name);
        if (!function)
            return error_set(err, ERROR_UNSUPPORTED, "libcurl has no %s", functions[i].name);
        memcpy(functions[i].slot, &function, sizeof function);
    }
    return true; /* it stays loaded: its libraries do not all bear to be unloaded */
}

static long status_of(const struct downloads *all)
{
    long status = 0;
    all->library.easy_getinfo(all->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool write_all(struct download *d, const char *bytes, size_t size)
{
    if (fd_write(d->fd, span_of(bytes, size)))
        return true;
    d->write_error = errno;
    return false;
}

/* libcurl's: any other number than what came ends the transfer. */
static size_t take_bytes(char *bytes, size_t one, size_t count, void *user)
{
    struct download *d = user;
    size_t size = one * count;
    d->refused = status_of(d->all) != HTTP_OK;
    uint64_t most = d->refused ? REFUSAL_BYTES_MAX : d->all->limits.bytes_max;
    d->too_large = size > most || d->done_bytes > most - size;
    if (d->too_large)
        return 0;
    d->done_bytes += size;
    return d->refused || write_all(d, bytes, size) ? size : 0;
}

/* libcurl's: anything but 0 ends the transfer. */
static int tell_progress(void *user, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up)
{
    struct download *d = user;
    (void)up_total;
    (void)up;
    d->stopped =
        d->go_on && !d->go_on(d->user, done > 0 ? (uint64_t)done : 0, total > 0 ? (uint64_t)total : 0);
    return d->stopped;
}

/* What is the same for all of them. */
static bool set_options(struct downloads *all)
{
    const struct download_limits *limits = &all->limits;
    long connect_ms = limits->duration_ms < CONNECT_MS_MAX ? (long)limits->duration_ms : CONNECT_MS_MAX;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        { CURLOPT_FOLLOWLOCATION, limits->redirects > 0 },
        { CURLOPT_MAXREDIRS, (long)limits->redirects },
        { CURLOPT_TIMEOUT_MS, (long)limits->duration_ms },
        { CURLOPT_CONNECTTIMEOUT_MS, connect_ms },
        { CURLOPT_LOW_SPEED_LIMIT, SLOWEST_BYTES_PER_S },
        { CURLOPT_LOW_SPEED_TIME, (long)limits->stall_s },
        { CURLOPT_NOPROGRESS, 0 },
        { CURLOPT_NOSIGNAL, 1 },
    };
    int failed = CURLE_OK;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        failed |= all->library.easy_setopt(all->curl, numbers[i].option, numbers[i].value);
    failed |= all->library.easy_setopt(all->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    failed |= all->library.easy_setopt(all->curl, CURLOPT_USERAGENT, "clrperf/" CLRPERF_VERSION);
    failed |= all->library.easy_setopt(all->curl, CURLOPT_ERRORBUFFER, all->detail);
    failed |= all->library.easy_setopt(all->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    failed |= all->library.easy_setopt(all->curl, CURLOPT_XFERINFOFUNCTION, tell_progress);
    return failed == CURLE_OK;
}

bool downloads_open(const struct download_limits *limits, struct downloads **out, struct error *err)
{
    struct curl_library library;
    if (!load_library(&library, err))
        return false;
    struct downloads *all = mem_alloc(1, sizeof *all);
    *all = (struct downloads){ .library = library, .limits = *limits };
    if (library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        all->curl = library.easy_init();
    if (!all->curl || !set_options(all)) {
        downloads_close(all);
        return error_set(err, ERROR_UNSUPPORTED, "libcurl is too old, or was built without http");
    }
    *out = all;
    return true;
}

void downloads_close(struct downloads *all)
{
    if (all->curl)
        all->library.easy_cleanup(all->curl);
    free(all);
}

static enum download_end end_of(const struct download *d, CURLcode code, struct error *err)
{
    const struct downloads *all = d->all;
    long status = status_of(all);
    if (d->stopped)
        return DOWNLOAD_STOPPED;
    if (d->write_error) {
        error_system(err, d->write_error, "cannot write what was downloaded");
    } else if (d->too_large && !d->refused) {
        error_set(err, ERROR_LIMIT, "it is larger than %" PRIu64 " bytes", all->limits.bytes_max);
    } else if (code != CURLE_OK && !d->refused) {
        error_set(err, ERROR_SYSTEM, "%s", all->detail[0] ? all->detail : all->library.easy_strerror(code));
    } else if (status == HTTP_NOT_FOUND || status == HTTP_GONE) {
        return DOWNLOAD_ABSENT;
    } else if (status != HTTP_OK) {
        error_set(err, ERROR_SYSTEM, "it answers with status %ld", status);
    } else {
        return DOWNLOAD_DONE;
    }
    return DOWNLOAD_FAILED;
}

enum download_end downloads_get(struct downloads *all, const char *url, int fd, download_progress_fn *go_on,
                                void *user, struct error *err)
{
    struct download d = { .all = all, .fd = fd, .go_on = go_on, .user = user };
    bool secure = strncasecmp(url, "https:", 6) == 0;
    if (lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0) {
        error_system(err, errno, "cannot empty the file for a download");
        return DOWNLOAD_FAILED;
    }
    all->detail[0] = 0;
    int failed = all->library.easy_setopt(all->curl, CURLOPT_URL, url);
    failed |=
        all->library.easy_setopt(all->curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    failed |= all->library.easy_setopt(all->curl, CURLOPT_WRITEDATA, &d);
    failed |= all->library.easy_setopt(all->curl, CURLOPT_XFERINFODATA, &d);
    if (failed) {
        error_set(err, ERROR_UNSUPPORTED, "libcurl does not take the URL");
        return DOWNLOAD_FAILED;
    }
    return end_of(&d, all->library.easy_perform(all->curl), err);
}
