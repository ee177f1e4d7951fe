#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/doorbell.h"

enum { ROUNDS = 2000, DEADLINE_MS = 10000 };

struct shared {
    struct doorbell there, back;
    uint32_t number;
};

static struct shared *shared_new(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

/* Adds one to the number each time that it hears the bell, and rings back; now and then it takes its time. */
static pid_t start_adder(struct shared *p, uint32_t rounds, unsigned look_us)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    for (uint32_t heard = 0; heard < rounds; heard++) {
        if (!doorbell_wait(&p->there, heard, look_us, DEADLINE_MS))
            break;
        if (heard % 97 == 0)
            usleep(200);
        p->number++;
        doorbell_ring(&p->back);
    }
    _exit(0);
}

/* However long each side looks before it sleeps, each ring is heard once. */
static void test_rounds(void **state)
{
    (void)state;
    static const unsigned looks_us[][2] = { { 0, 0 }, { 20, 20 }, { 0, 20 }, { 20, 0 }, { 2, 1 } };
    for (size_t i = 0; i < sizeof looks_us / sizeof *looks_us; i++) {
        struct shared *p = shared_new();
        pid_t child = start_adder(p, ROUNDS, looks_us[i][0]);
        for (uint32_t heard = 0; heard < ROUNDS; heard++) {
            doorbell_ring(&p->there);
            assert_true(doorbell_wait(&p->back, heard, looks_us[i][1], DEADLINE_MS));
            assert_int_equal(p->number, heard + 1);
            if (heard % 89 == 0)
                usleep(100); /* so that the other one sleeps */
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        munmap(p, sizeof *p);
    }
}

static void test_nobody_rings(void **state)
{
    (void)state;
    struct shared *p = shared_new();
    assert_false(doorbell_wait(&p->back, 0, 20, 20));
    munmap(p, sizeof *p);
}

/* Who looked in vain again and again sleeps at once, until a look was worth it. */
static void test_looks_in_vain(void **state)
{
    (void)state;
    struct shared *p = shared_new();
    struct doorbell *bell = &p->back;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(bell->spare, 0);
        assert_false(doorbell_wait(bell, 0, 20, 0));
    }
    unsigned spared = bell->spare;
    assert_true(spared > 0);
    for (unsigned i = 0; i < spared; i++)
        assert_false(doorbell_wait(bell, 0, 1000 * 1000, 0));
    assert_int_equal(bell->spare, 0);

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(10000);
        doorbell_ring(bell);
        _exit(0);
    }
    assert_true(doorbell_wait(bell, 0, DEADLINE_MS * 1000, DEADLINE_MS));
    assert_int_equal(bell->vain, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    munmap(p, sizeof *p);
}

/* Who sleeps for ever wakes up when it is over, and whoever comes later does not wait. */
static void test_over(void **state)
{
    (void)state;
    struct shared *p = shared_new();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(doorbell_wait(&p->there, 0, 0, -1));
    for (int i = 0; i < DEADLINE_MS && !__atomic_load_n(&p->there.sleeps, __ATOMIC_SEQ_CST); i++)
        usleep(1000);
    doorbell_end(&p->there);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(doorbell_wait(&p->there, 0, 0, -1));
    assert_false(doorbell_wait(&p->there, 0, 20, DEADLINE_MS));
    munmap(p, sizeof *p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rounds), cmocka_unit_test(test_nobody_rings),
                                        cmocka_unit_test(test_looks_in_vain), cmocka_unit_test(test_over) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
