/* What handles and threads keep after calls with very many keys. Prints "ok" at the end. */
#include "check.h"

#include <malloc.h>

/* 32 MiB of numbers. */
#define KEYS ((size_t)4 << 20)
/* The most bytes that a handle may keep: less than one for each key. */
#define MOST ((size_t)3 << 20)

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

#define KEEPS_LITTLE(call)                                                                         \
    do {                                                                                           \
        size_t before = in_use();                                                                  \
        OK(call);                                                                                  \
        size_t after = in_use();                                                                   \
        if (after > before + MOST) {                                                               \
            fprintf(stderr, "%s keeps %zu bytes\n", #call, after - before);                        \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

int main(void) {
    int failed = 0;
    uint64_t *ids = calloc(KEYS, sizeof *ids), *words = calloc(KEYS, sizeof *words);
    CHECK(ids && words);
    for (size_t i = 0; i < KEYS; i++) ids[i] = i;
    echoless_handle *filter = NULL;
    echoless_handle *shared = NULL;
    echoless_handle *ordered = NULL;
    echoless_handle *thread = NULL;
    echoless_handle *engine = NULL;
    echoless_handle *port = NULL;
    const char *spec = "fingerprint:memory=1MiB";
    OK(echoless_new(ECHOLESS_KIND_FILTER, spec, NULL, 1, &filter));
    OK(echoless_new(ECHOLESS_KIND_SHARED, "row4x16:memory=1MiB", NULL, 1, &shared));
    OK(echoless_new(ECHOLESS_KIND_ORDERED, spec, NULL, 2, &ordered));
    OK(echoless_open(ordered, &thread));
    OK(echoless_new(ECHOLESS_KIND_ENGINE, spec, NULL, 2, &engine));
    OK(echoless_open(engine, &port));
    echoless_keys forms[] = {echoless_numbers(ids, KEYS), echoless_hashes(ids, KEYS),
                             echoless_at(echoless_numbers(ids, KEYS), ids)};
    for (int form = 0; form < 3; form++) {
        echoless_keys keys = forms[form];
        KEEPS_LITTLE(echoless_observe(filter, keys, words, NULL));
        KEEPS_LITTLE(echoless_contains(filter, keys, words, NULL));
        KEEPS_LITTLE(echoless_hash(filter, keys, words));
        KEEPS_LITTLE(echoless_observe(shared, keys, words, NULL));
        KEEPS_LITTLE(echoless_contains(shared, keys, words, NULL));
        KEEPS_LITTLE(echoless_observe(thread, keys, words, NULL));
        size_t count = 0;
        KEEPS_LITTLE((echoless_submit(port, keys) ||
                      echoless_drain(port, echoless_into(words, 8 * KEYS, NULL), &count, NULL)));
        CHECK(count == KEYS);
    }
    OK(echoless_free(port));
    OK(echoless_free(engine));
    OK(echoless_free(thread));
    OK(echoless_free(ordered));
    OK(echoless_free(shared));
    OK(echoless_free(filter));
    free(ids), free(words);
    CHECK(!failed);
    puts("ok");
    return 0;
}
