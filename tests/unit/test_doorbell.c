#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/doorbell.h"

enum { ROUNDS = 2000, DEADLINE_MS = 10000 };

struct shared {
    struct doorbell there, back;
    uint32_t number;
};

struct pair {
    struct shared *shared;
    int sockets[2];
};

static struct pair pair_new(void)
{
    struct pair p;
    p.shared = mmap(NULL, sizeof *p.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p.shared != MAP_FAILED);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p.sockets), 0);
    return p;
}

static void pair_done(struct pair *p)
{
    close(p->sockets[0]);
    munmap(p->shared, sizeof *p->shared);
}

/* Adds one to the number each time that it hears the bell, and rings back; now and then it takes its time. */
static pid_t start_adder(struct pair *p, uint32_t rounds, unsigned look_us)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) {
        close(p->sockets[1]);
        return child;
    }
    close(p->sockets[0]);
    for (uint32_t heard = 0; heard < rounds; heard++) {
        if (!doorbell_wait(&p->shared->there, heard, p->sockets[1], look_us, DEADLINE_MS))
            break;
        if (heard % 97 == 0)
            usleep(200);
        p->shared->number++;
        if (!doorbell_ring(&p->shared->back, p->sockets[1], NULL))
            break;
    }
    _exit(0);
}

/* However long each side looks before it sleeps, each ring is heard once. */
static void test_rounds(void **state)
{
    (void)state;
    static const unsigned looks_us[][2] = { { 0, 0 }, { 20, 20 }, { 0, 20 }, { 20, 0 }, { 2, 1 } };
    for (size_t i = 0; i < sizeof looks_us / sizeof *looks_us; i++) {
        struct pair p = pair_new();
        pid_t child = start_adder(&p, ROUNDS, looks_us[i][0]);
        for (uint32_t heard = 0; heard < ROUNDS; heard++) {
            assert_true(doorbell_ring(&p.shared->there, p.sockets[0], NULL));
            assert_true(doorbell_wait(&p.shared->back, heard, p.sockets[0], looks_us[i][1], DEADLINE_MS));
            assert_int_equal(p.shared->number, heard + 1);
            if (heard % 89 == 0)
                usleep(100); /* so that the other one sleeps */
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        pair_done(&p);
    }
}

static void test_nobody_rings(void **state)
{
    (void)state;
    struct pair p = pair_new();
    assert_false(doorbell_wait(&p.shared->back, 0, p.sockets[0], 20, 20));
    close(p.sockets[1]);
    pair_done(&p);
}

/* Who looked in vain again and again sleeps at once, until a look was worth it. */
static void test_looks_in_vain(void **state)
{
    (void)state;
    struct pair p = pair_new();
    struct doorbell *bell = &p.shared->back;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(bell->spare, 0);
        assert_false(doorbell_wait(bell, 0, p.sockets[0], 20, 0));
    }
    unsigned spared = bell->spare;
    assert_true(spared > 0);
    for (unsigned i = 0; i < spared; i++)
        assert_false(doorbell_wait(bell, 0, p.sockets[0], 1000 * 1000, 0));
    assert_int_equal(bell->spare, 0);

    bell->sleeps = false; /* the ring of one that is late */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(10000);
        _exit(!doorbell_ring(bell, p.sockets[1], NULL));
    }
    assert_true(doorbell_wait(bell, 0, p.sockets[0], DEADLINE_MS * 1000, DEADLINE_MS));
    assert_int_equal(bell->vain, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(p.sockets[1]);
    pair_done(&p);
}

static void test_other_side_is_gone(void **state)
{
    (void)state;
    struct pair p = pair_new();
    pid_t child = start_adder(&p, 1, 0);
    assert_true(doorbell_ring(&p.shared->there, p.sockets[0], NULL));
    assert_true(doorbell_wait(&p.shared->back, 0, p.sockets[0], 20, DEADLINE_MS));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(doorbell_wait(&p.shared->back, 1, p.sockets[0], 20, DEADLINE_MS));
    p.shared->there.sleeps = true; /* as one that was killed in its sleep leaves it */
    assert_false(doorbell_ring(&p.shared->there, p.sockets[0], NULL));
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rounds), cmocka_unit_test(test_nobody_rings),
                                        cmocka_unit_test(test_looks_in_vain),
                                        cmocka_unit_test(test_other_side_is_gone) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
