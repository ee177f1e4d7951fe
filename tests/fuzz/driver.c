/*
 * driver: runs a fuzz target without libFuzzer, over its corpus and over mutations of it.
 *
 * Usage: fuzz_NAME CORPUS_DIR [RUNS]. Deterministic: the same corpus gives the same mutations.
 * With FUZZ_CRASH_FILE set, the input of the run under way is kept there.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUTS_MAX = 512, INPUT_BYTES_MAX = 1 << 20, DEFAULT_RUNS = 20000 };

struct input {
    uint8_t *data;
    size_t size;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t load_corpus(const char *folder, struct input *inputs)
{
    struct dirent **entries;
    int found = scandir(folder, &entries, NULL, alphasort); /* in the same order on every file system */
    size_t count = 0;
    for (int i = 0; i < found; i++) {
        char path[4096];
        const char *name = entries[i]->d_name;
        FILE *file = NULL;
        if (name[0] != '.' && count < INPUTS_MAX &&
            snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
            file = fopen(path, "rb");
        free(entries[i]);
        if (!file)
            continue;
        uint8_t *data = malloc(INPUT_BYTES_MAX);
        inputs[count].size = data ? fread(data, 1, INPUT_BYTES_MAX, file) : 0;
        inputs[count++].data = data;
        fclose(file);
    }
    if (found >= 0)
        free(entries);
    return count;
}

/* A few small changes: bytes, interesting numbers, a cut, a copied piece. */
static size_t mutate(uint8_t *data, size_t size, uint64_t *random)
{
    static const uint32_t numbers[] = { 0,      1,      0x7f,       0x80,       0xff,      0x7fff,
                                        0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff };
    unsigned changes = 1 + next_random(random) % 6;
    for (unsigned i = 0; i < changes && size; i++) {
        size_t at = next_random(random) % size;
        switch (next_random(random) % 5) {
        case 0:
            data[at] ^= (uint8_t)(1u << next_random(random) % 8);
            break;
        case 1:
            data[at] = (uint8_t)next_random(random);
            break;
        case 2:
            if (size - at >= 4)
                memcpy(data + at, &numbers[next_random(random) % (sizeof numbers / sizeof *numbers)], 4);
            break;
        case 3:
            if (next_random(random) % 4 == 0)
                size = at;
            break;
        default: {
            size_t from = next_random(random) % size;
            size_t room = size - (at > from ? at : from);
            memmove(data + at, data + from, next_random(random) % (room + 1));
        }
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static struct input inputs[INPUTS_MAX];
    size_t count = argc > 1 ? load_corpus(argv[1], inputs) : 0;
    if (count == 0) {
        fprintf(stderr, "no corpus in '%s'\n", argc > 1 ? argv[1] : "");
        return 1;
    }
    long runs = argc > 2 ? atol(argv[2]) : DEFAULT_RUNS;
    const char *crash_file = getenv("FUZZ_CRASH_FILE");
    for (size_t i = 0; i < count; i++)
        LLVMFuzzerTestOneInput(inputs[i].data, inputs[i].size);
    uint64_t random = 0x9e3779b97f4a7c15ull;
    for (long run = 0; run < runs; run++) {
        const struct input *seed = &inputs[next_random(&random) % count];
        uint8_t *copy = malloc(seed->size ? seed->size : 1);
        memcpy(copy, seed->data, seed->size);
        size_t size = mutate(copy, seed->size, &random);
        /* an exact-size copy, so that reading one byte too far is seen */
        uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, copy, size);
        if (crash_file) {
            FILE *file = fopen(crash_file, "wb");
            if (file) {
                fwrite(exact, 1, size, file);
                fclose(file);
            }
        }
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        free(copy);
    }
    printf("%zu seeds, %ld mutations\n", count, runs);
    for (size_t i = 0; i < count; i++)
        free(inputs[i].data);
    return 0;
}
