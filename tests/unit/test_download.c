#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "fetch/download.h"

/* A server on the loopback address that answers one request at a time, as its path says. */
struct server {
    pthread_t thread;
    int fd;
    unsigned port;
};

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *path, *answer;
    const char *again; /* sent without end, or NULL */
    bool stall;        /* then nothing comes, and the connection stays */
} answers[] = {
    { "/whole", OK "Content-Length: 5\r\n\r\nhello", NULL, false },
    { "/unsized", OK "\r\nhello", NULL, false },
    { "/empty", OK "Content-Length: 0\r\n\r\n", NULL, false },
    { "/absent", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", NULL, false },
    { "/gone", "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", NULL, false },
    { "/absent-endless", "HTTP/1.1 404 Not Found\r\n\r\n", "no, no, no, no, no, no, no, no, ", false },
    { "/busy", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", NULL, false },
    { "/cut", OK "Content-Length: 100\r\n\r\nhello", NULL, false },
    { "/large", OK "Content-Length: 1000001\r\n\r\nhello", NULL, false },
    { "/endless", OK "\r\n", "and on and on and on and on and on ", false },
    { "/stall", OK "Content-Length: 100\r\n\r\nhello", NULL, true },
    { "/mute", "", NULL, true },
    { "/garbage", "hello\r\n\r\nhello", NULL, false },
    { "/once", "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /whole\r\nContent-Length: 3\r\n\r\nway",
      NULL, false },
    { "/loop", "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
      NULL, false },
    { "/to-file",
      "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
      NULL, false },
};

static void answer(int fd)
{
    char request[4096], path[64] = "";
    ssize_t got = recv(fd, request, sizeof request - 1, 0);
    request[got > 0 ? got : 0] = 0;
    sscanf(request, "GET %63s", path);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        if (strcmp(answers[i].path, path) != 0)
            continue;
        const char *again = answers[i].again;
        bool there = send(fd, answers[i].answer, strlen(answers[i].answer), MSG_NOSIGNAL) >= 0;
        while (there && again)
            there = send(fd, again, strlen(again), MSG_NOSIGNAL) >= 0;
        if (answers[i].stall) /* until the other side goes */
            poll(&(struct pollfd){ .fd = fd, .events = POLLRDHUP }, 1, 60000);
    }
}

static void *serve(void *user)
{
    const struct server *server = user;
    for (;;) {
        AUTO_FD int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        answer(fd);
    }
}

static int start_server(void **state)
{
    static struct server server;
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof addr;
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(server.fd, 8), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&addr, &size), 0);
    server.port = ntohs(addr.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    *state = &server;
    return 0;
}

static int stop_server(void **state)
{
    const struct server *server = *state;
    shutdown(server->fd, SHUT_RDWR); /* ends accept() */
    pthread_join(server->thread, NULL);
    close(server->fd);
    return 0;
}

/* Ends as `expected`, and with `content` when it is done. */
static void check_get(const struct server *server, const struct download_limits *limits, const char *path,
                      enum download_end expected, const char *content, const char *why)
{
    struct downloads *downloads;
    struct error err = { 0 };
    char url[128], got[64] = "";
    AUTO_FD int fd = memfd_create("download", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, "what was there before", 21, 0), 21);
    if (!downloads_open(limits, &downloads, &err))
        fail_msg("%s", err.what);
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", server->port, path);
    enum download_end end = downloads_get(downloads, url, fd, NULL, NULL, &err);
    if (end != expected || (why && !strstr(err.what, why)))
        fail_msg("%s: ends with %d: %s", path, (int)end, err.what);
    if (content) {
        assert_true(pread(fd, got, sizeof got - 1, 0) >= 0);
        assert_string_equal(got, content);
    }
    downloads_close(downloads);
}

static void test_answers(void **state)
{
    static const struct download_limits limits = { 1000000, 60000, 60, 3 };
    static const struct {
        const char *path;
        enum download_end end;
        const char *content, *why;
    } cases[] = {
        { "/whole", DOWNLOAD_DONE, "hello", NULL },
        { "/unsized", DOWNLOAD_DONE, "hello", NULL },
        { "/once", DOWNLOAD_DONE, "hello", NULL },
        { "/empty", DOWNLOAD_DONE, "", NULL },
        { "/absent", DOWNLOAD_ABSENT, "", NULL },
        { "/gone", DOWNLOAD_ABSENT, "", NULL },
        { "/absent-endless", DOWNLOAD_ABSENT, "", NULL },
        { "/busy", DOWNLOAD_FAILED, "", "503" },
        { "/cut", DOWNLOAD_FAILED, NULL, "95 bytes remaining" },
        { "/large", DOWNLOAD_FAILED, NULL, "" },
        { "/endless", DOWNLOAD_FAILED, NULL, "larger than 1000000 bytes" },
        { "/garbage", DOWNLOAD_FAILED, "", "HTTP/0.9" },
        { "/loop", DOWNLOAD_FAILED, "", "redirects" },
        { "/to-file", DOWNLOAD_FAILED, "", "file" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_get(*state, &limits, cases[i].path, cases[i].end, cases[i].content, cases[i].why);
}

static void test_slow(void **state)
{
    static const struct download_limits short_stall = { 1000000, 60000, 1, 3 },
                                        short_time = { 1000000, 300, 60, 3 };
    check_get(*state, &short_stall, "/stall", DOWNLOAD_FAILED, NULL, "too slow");
    check_get(*state, &short_stall, "/mute", DOWNLOAD_FAILED, NULL, "too slow");
    check_get(*state, &short_time, "/stall", DOWNLOAD_FAILED, NULL, "timed out");
    check_get(*state, &short_time, "/mute", DOWNLOAD_FAILED, NULL, "timed out");
}

static void test_no_redirects(void **state)
{
    static const struct download_limits none = { 1000000, 60000, 60, 0 };
    check_get(*state, &none, "/once", DOWNLOAD_FAILED, "", "302");
}

static bool stop_at_once(void *user, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)user;
    (void)done_bytes;
    (void)total_bytes;
    return false;
}

static void test_stopped(void **state)
{
    static const struct download_limits limits = { 1000000, 60000, 60, 3 };
    const struct server *server = *state;
    struct downloads *downloads;
    struct error err = { 0 };
    char url[128];
    AUTO_FD int fd = memfd_create("download", MFD_CLOEXEC);
    assert_true(downloads_open(&limits, &downloads, &err));
    snprintf(url, sizeof url, "http://127.0.0.1:%u/stall", server->port);
    assert_int_equal(downloads_get(downloads, url, fd, stop_at_once, NULL, &err), DOWNLOAD_STOPPED);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/whole", server->port);
    assert_int_equal(downloads_get(downloads, url, fd, NULL, NULL, &err), DOWNLOAD_DONE);
    downloads_close(downloads);
}

/* Nobody listens, and what is no server's address at all. */
static void test_nobody(void **state)
{
    static const struct download_limits limits = { 1000000, 60000, 60, 3 };
    struct server nobody = { .port = 1 };
    struct downloads *downloads;
    struct error err = { 0 };
    AUTO_FD int fd = memfd_create("download", MFD_CLOEXEC);
    (void)state;
    check_get(&nobody, &limits, "/whole", DOWNLOAD_FAILED, "", "connect");
    assert_true(downloads_open(&limits, &downloads, &err));
    assert_int_equal(downloads_get(downloads, "file:///etc/passwd", fd, NULL, NULL, &err), DOWNLOAD_FAILED);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    downloads_close(downloads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_slow),   cmocka_unit_test(test_no_redirects),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
