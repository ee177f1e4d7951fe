/*
 * Times our name tables in one process, CPU milliseconds, medians:
 *   names image FILE.dll     open it so that every function can be found, and name one; the same with 1,000;
 *                            the same with every function (row E4)
 *   names map FILE.map       look 1,000 addresses up in a perf map (row E5)
 * Prints one line per figure: KEY MILLISECONDS COUNT CHECKSUM.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/jit_map.h"
#include "symbolize/managed_image.h"

enum { RUNS = 9, ASKED = 1000 };

struct answer {
    double ms;
    uint64_t count, checksum;
};

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint64_t sum_text(uint64_t sum, const char *text)
{
    for (; *text; text++)
        sum = sum * 31 + (uint8_t)*text;
    return sum;
}

static struct answer name_image(const struct source *file, uint32_t wanted)
{
    struct answer a = { .ms = cpu_ms() };
    struct error err;
    struct managed_image *image;
    if (!managed_image_open(file, NULL, &image, &err)) {
        fprintf(stderr, "names: %s\n", err.what);
        exit(1);
    }
    uint32_t count = managed_image_function_count(image);
    uint32_t step = wanted && wanted < count ? count / wanted : 1;
    for (uint32_t i = 0; i < count && (!wanted || a.count < wanted); i += step) {
        struct code_name name;
        struct method_range range;
        if (!managed_image_function(image, i, &name, &range))
            continue;
        a.checksum = sum_text(a.checksum, name.name);
        a.count++;
    }
    managed_image_close(image);
    a.ms = cpu_ms() - a.ms;
    return a;
}

static void count_match(void *user, const struct jit_map_match *match)
{
    struct answer *a = user;
    a->checksum += sum_text(0, match->name.name) ^ match->index;
    a->count++;
}

static struct answer name_map(const struct source *file, const uint64_t *addrs)
{
    struct answer a = { .ms = cpu_ms() };
    struct error err;
    struct jit_map_result result;
    if (!jit_map_resolve(file, addrs, ASKED, count_match, &a, &result, &err)) {
        fprintf(stderr, "names: %s\n", err.what);
        exit(1);
    }
    a.ms = cpu_ms() - a.ms;
    return a;
}

static int answer_compare(const void *x, const void *y)
{
    double a = ((const struct answer *)x)->ms, b = ((const struct answer *)y)->ms;
    return (a > b) - (a < b);
}

static void print_median(const char *key, struct answer *answers)
{
    qsort(answers, RUNS, sizeof *answers, answer_compare);
    const struct answer *a = &answers[RUNS / 2];
    printf("%s %.3f %" PRIu64 " %" PRIx64 "\n", key, a->ms, a->count, a->checksum);
}

int main(int argc, char **argv)
{
    struct source file;
    struct error err;
    int fd = argc == 3 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, &err))
        return 2;
    struct answer answers[RUNS];
    if (strcmp(argv[1], "image") == 0) {
        for (int i = 0; i < RUNS; i++)
            answers[i] = name_image(&file, 1);
        print_median("index", answers);
        for (int i = 0; i < RUNS; i++)
            answers[i] = name_image(&file, ASKED);
        print_median("thousand", answers);
        for (int i = 0; i < RUNS; i++)
            answers[i] = name_image(&file, 0);
        print_median("all", answers);
        return 0;
    }
    /* as run.py writes the map: 64 bytes of code every 96 */
    static uint64_t addrs[ASKED];
    for (size_t i = 0; i < ASKED; i++)
        addrs[i] = 0x7f0000000000u + i * 200 * 96 + 8;
    for (int i = 0; i < RUNS; i++)
        answers[i] = name_map(&file, addrs);
    print_median("map", answers);
    return 0;
}
