/* Reads files of call records with a thread for each file, and counts the duplicates.
 *
 *     call_records FILE...
 *
 * A file is an array of `struct call_record`. Each thread has a port of one engine, and keeps some
 * batches in flight, so that it reads while the workers judge.
 *
 *     cc -pthread call_records.c $(pkg-config --cflags --libs echoless) -o call_records
 */
#include <echoless.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1024
#define IN_FLIGHT 4
#define MOST_FILES 64

/* A record, of which `caller`, `called` and `start` are the key: no two calls share them. What
 * comes before and after may differ between copies. */
struct call_record {
    uint64_t received;
    char caller[16];
    char called[16];
    uint64_t start;
    uint32_t seconds;
    uint32_t cell;
};

#define KEY_WIDTH (offsetof(struct call_record, seconds) - offsetof(struct call_record, caller))

struct producer {
    const char *path;
    echoless_handle *port;
    uint64_t records, duplicates, duplicate_seconds;
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "call_records: %s: %s\n", what, why);
    exit(2);
}

static void check(int status) {
    if (status != ECHOLESS_OK) fail("echoless", echoless_last_error());
}

/* Waits for the oldest batch in flight. Its records are `batch`. */
static void drain(struct producer *producer, const struct call_record *batch) {
    uint64_t duplicates[BATCH / 64], count = 0;
    size_t records = 0;
    check(echoless_drain(producer->port, echoless_into(duplicates, 8 * (BATCH / 64), NULL),
                         &records, &count));
    producer->records += records;
    producer->duplicates += count;
    for (size_t i = 0; count > 0 && i < records; i++) {
        if (echoless_is_duplicate(duplicates, i))
            producer->duplicate_seconds += batch[i].seconds;
    }
}

static void *produce(void *context) {
    struct producer *producer = context;
    FILE *file = fopen(producer->path, "rb");
    if (!file) fail(producer->path, "cannot be opened");
    /* The batches in flight, in a ring: a record is needed until its verdict is there. */
    struct call_record(*ring)[BATCH] = calloc(IN_FLIGHT, sizeof *ring);
    if (!ring) fail("records", "no memory");
    size_t submitted = 0, drained = 0, count;
    do {
        if (submitted - drained == IN_FLIGHT) drain(producer, ring[drained++ % IN_FLIGHT]);
        struct call_record *batch = ring[submitted % IN_FLIGHT];
        count = fread(batch, sizeof *batch, BATCH, file);
        if (count > 0) {
            check(echoless_submit(producer->port,
                                  echoless_fixed(batch->caller, KEY_WIDTH, sizeof *batch, count)));
            submitted++;
        }
    } while (count == BATCH);
    while (drained < submitted) drain(producer, ring[drained++ % IN_FLIGHT]);
    if (ferror(file)) fail(producer->path, "cannot be read");
    fclose(file);
    free(ring);
    return NULL;
}

int main(int count, char **arguments) {
    static struct producer producers[MOST_FILES];
    pthread_t threads[MOST_FILES];
    int files = count - 1;
    if (files < 1 || files > MOST_FILES) fail("arguments", "expected 1 to 64 files");

    echoless_handle *engine = NULL;
    check(echoless_new(ECHOLESS_KIND_ENGINE, "fingerprint:fpr=1e-9,memory=64MiB", NULL, 2,
                       &engine));
    for (int i = 0; i < files; i++) {
        producers[i].path = arguments[i + 1];
        check(echoless_open(engine, &producers[i].port));
        if (pthread_create(&threads[i], NULL, produce, &producers[i]))
            fail("thread", "cannot be started");
    }
    struct producer all = {0};
    for (int i = 0; i < files; i++) {
        pthread_join(threads[i], NULL);
        check(echoless_free(producers[i].port));
        all.records += producers[i].records;
        all.duplicates += producers[i].duplicates;
        all.duplicate_seconds += producers[i].duplicate_seconds;
    }
    echoless_report report = {.size = sizeof report};
    check(echoless_shutdown(engine, &report));
    check(echoless_free(engine));
    printf("records %" PRIu64 "\nduplicates %" PRIu64 "\nduplicate seconds %" PRIu64 "\n",
           all.records, all.duplicates, all.duplicate_seconds);
    printf("false duplicates expected %.1e\n", report.expected_false_duplicates);
    return report.observed == all.records ? 0 : 1;
}
