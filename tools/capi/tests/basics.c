/* Every function of the interface, with right and wrong arguments. Prints "ok" at the end. */
#include <echoless.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition,        \
                    echoless_last_error());                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == ECHOLESS_OK)
#define FAILS(status, words, call)                                                                 \
    do {                                                                                           \
        CHECK((call) == (int)(status));                                                            \
        CHECK(strstr(echoless_last_error(), words) != NULL);                                       \
    } while (0)

static const char LINES[] = "fingerprint:fpr=1e-8,memory=1MiB";

struct call_record {
    uint32_t price;
    char id[8];
};

/* The same ten keys in every form have the same verdicts. */
static void forms(void) {
    struct call_record records[10];
    echoless_slice slices[10];
    char packed[80];
    int64_t offsets[11];
    int32_t offsets32[11];
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "call %03d", i % 7);
        memcpy(records[i].id, id, 8);
        memcpy(packed + 8 * i, id, 8);
        records[i].price = (uint32_t)i;
        slices[i] = (echoless_slice){(const uint8_t *)records[i].id, 8};
        offsets[i] = offsets32[i] = 8 * i;
    }
    offsets[10] = offsets32[10] = 80;
    echoless_filter *filter = NULL;
    OK(echoless_filter_new(LINES, NULL, &filter));
    uint64_t hashes[10];
    OK(echoless_filter_hash(filter, echoless_slices(slices, 10), hashes));
    echoless_keys forms[] = {
        echoless_fixed(records[0].id, 8, sizeof records[0], 10),
        echoless_slices(slices, 10),
        echoless_packed(packed, offsets, 10),
        echoless_packed32(packed, offsets32, 10),
        echoless_hashes(hashes, 10),
    };
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        uint64_t duplicates = 1, count = 0;
        OK(echoless_filter_clear(filter));
        OK(echoless_filter_contains(filter, forms[form], &duplicates, &count));
        CHECK(duplicates == 0 && count == 0);
        OK(echoless_filter_observe(filter, forms[form], &duplicates, &count));
        CHECK(duplicates == 0x380 && count == 3);
        CHECK(echoless_is_duplicate(&duplicates, 7) && !echoless_is_duplicate(&duplicates, 6));
        OK(echoless_filter_contains(filter, forms[form], &duplicates, NULL));
        CHECK(duplicates == 0x3ff);
    }
    uint64_t ids[] = {5, 6, 5}, duplicates = 0;
    OK(echoless_filter_observe(filter, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 4);
    OK(echoless_filter_observe(filter, echoless_hashes(NULL, 0), NULL, NULL));
    OK(echoless_filter_free(filter));
}

static void windows(void) {
    echoless_filter *filter = NULL;
    OK(echoless_filter_new("clocked:window=60,refresh=false,form=line,memory=1MiB", NULL, &filter));
    uint64_t ids[] = {7, 7, 7}, ticks[] = {100, 160, 221}, duplicates = 0;
    OK(echoless_filter_observe(filter, echoless_at(echoless_numbers(ids, 3), ticks), &duplicates,
                               NULL));
    CHECK(duplicates == 2);
    OK(echoless_filter_advance(filter, 1000));
    OK(echoless_filter_contains(filter, echoless_numbers(ids, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    echoless_report report = {.size = sizeof report};
    OK(echoless_filter_report(filter, &report));
    CHECK(report.observed == 3 && report.fresh == 2 && report.window_ticks == 60);
    CHECK(report.memory_bytes == 1 << 20 && report.expected_fpr < 1e-6);
    /* An older program knows fewer fields. */
    report.size = offsetof(echoless_report, fresh);
    report.fresh = 17;
    OK(echoless_filter_report(filter, &report));
    CHECK(report.fresh == 17 && report.size == offsetof(echoless_report, fresh));
    OK(echoless_filter_free(filter));
}

struct memory_file {
    uint8_t bytes[4 << 20];
    size_t length, position;
};

static int append(void *context, const uint8_t *bytes, size_t length) {
    struct memory_file *file = context;
    if (length > sizeof file->bytes - file->length) return 1;
    memcpy(file->bytes + file->length, bytes, length);
    file->length += length;
    return 0;
}

static int take(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    struct memory_file *file = context;
    size_t rest = file->length - file->position;
    *length = rest < capacity ? rest : capacity;
    memcpy(bytes, file->bytes + file->position, *length);
    file->position += *length;
    return 0;
}

static int refuse(void *context, const uint8_t *bytes, size_t length) {
    (void)context, (void)bytes, (void)length;
    return 5;
}

static void states(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/filter.state", folder);
    const uint8_t secret[16] = "sixteen bytes..";
    echoless_hashing hashing = {0, secret};
    echoless_filter *filter = NULL, *loaded = NULL;
    OK(echoless_filter_new(LINES, &hashing, &filter));
    uint64_t ids[] = {1, 2, 3}, duplicates = 0, lines = 0;
    OK(echoless_filter_observe(filter, echoless_numbers(ids, 3), &duplicates, NULL));
    OK(echoless_filter_save_file(filter, path, (const uint8_t *)"at 42", 5));
    uint8_t bytes[16];
    size_t length = 0;
    OK(echoless_filter_load_file(path, &hashing, UINT64_MAX, bytes, sizeof bytes, &length,
                                 &loaded));
    CHECK(length == 5 && memcmp(bytes, "at 42", 5) == 0);
    OK(echoless_filter_observe(loaded, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_filter_free(loaded));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "",
          echoless_filter_load_file(path, NULL, UINT64_MAX, NULL, 0, NULL, &loaded));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "memory",
          echoless_filter_load_file(path, &hashing, 1 << 19, NULL, 0, NULL, &loaded));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "capacity",
          echoless_filter_load_file(path, &hashing, UINT64_MAX, bytes, 4, NULL, &loaded));
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_filter_load_file("/nowhere/at/all", NULL, UINT64_MAX, NULL, 0, NULL, &loaded));
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_filter_save_file(filter, "/nowhere/at/all", NULL, 0));

    echoless_shared *shared = NULL;
    OK(echoless_shared_new("row2x32:memory=1MiB", &hashing, &shared));
    OK(echoless_shared_observe(shared, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 0);
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_shared_save_file(shared, "/nowhere/at/all", NULL, 0));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "a filter in lines",
          echoless_shared_load_file(path, &hashing, UINT64_MAX, NULL, 0, NULL, &shared));
    OK(echoless_shared_save_file(shared, path, (const uint8_t *)"at 43", 5));
    OK(echoless_shared_free(shared));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "a shared filter",
          echoless_filter_load_file(path, &hashing, UINT64_MAX, NULL, 0, NULL, &loaded));
    OK(echoless_shared_load_file(path, &hashing, UINT64_MAX, bytes, sizeof bytes, &length,
                                 &shared));
    CHECK(length == 5 && memcmp(bytes, "at 43", 5) == 0);
    OK(echoless_shared_contains(shared, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_shared_free(shared));

    OK(echoless_filter_lines(filter, &lines));
    CHECK(lines == (1 << 20) / 64);
    struct memory_file *parts = calloc(2, sizeof *parts);
    OK(echoless_filter_save_part(filter, 0, lines / 4, (const uint8_t *)"a", 1, append, &parts[0]));
    OK(echoless_filter_save_part(filter, lines / 4, lines, (const uint8_t *)"b", 1, append,
                                 &parts[1]));
    void *contexts[] = {&parts[1], &parts[0]};
    OK(echoless_filter_load_parts(take, contexts, 2, &hashing, UINT64_MAX, bytes, sizeof bytes,
                                  &length, &loaded));
    CHECK(length == 2 && memcmp(bytes, "ab", 2) == 0);
    OK(echoless_filter_contains(loaded, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_filter_free(loaded));
    parts[0].position = parts[1].position = 0;
    FAILS(ECHOLESS_STATUS_INVALID_STATE, "lines",
          echoless_filter_load_parts(take, contexts, 1, &hashing, UINT64_MAX, NULL, 0, NULL,
                                     &loaded));
    FAILS(ECHOLESS_STATUS_IO, "5",
          echoless_filter_save_part(filter, 0, lines, NULL, 0, refuse, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "lines",
          echoless_filter_save_part(filter, 5, 5, NULL, 0, append, &parts[0]));
    free(parts);
    OK(echoless_filter_free(filter));
    OK(echoless_filter_new("bloom:k=4,memory=1MiB", NULL, &filter));
    FAILS(ECHOLESS_STATUS_UNSUPPORTED, "form=line",
          echoless_filter_save_file(filter, path, NULL, 0));
    OK(echoless_filter_free(filter));
    unlink(path);
}

static void misuse(void) {
    echoless_filter *filter = NULL;
    echoless_shared *shared = NULL;
    uint64_t ids[] = {1, 2}, duplicates[2] = {0};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "spec", echoless_filter_new(NULL, NULL, &filter));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "out", echoless_filter_new(LINES, NULL, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "UTF-8", echoless_filter_new("\xff", NULL, &filter));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "memory", echoless_filter_new("lru:form=line", NULL, &filter));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "invalid k=0: expected 1 to 64",
          echoless_filter_new("rlbsbf:k=0,memory=1MiB", NULL, &filter));
    CHECK(filter == NULL);
    echoless_keys keys = echoless_numbers(ids, 2);
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "NULL",
          echoless_filter_observe(NULL, keys, duplicates, NULL));
    OK(echoless_filter_new(LINES, NULL, &filter));
    OK(echoless_shared_new("row4x16:memory=1MiB", NULL, &shared));
    /* A handle of another kind. */
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "shared filter",
          echoless_shared_observe((echoless_shared *)(void *)filter, keys, duplicates, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "filter",
          echoless_filter_observe((echoless_filter *)(void *)duplicates, keys, duplicates, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "duplicates",
          echoless_filter_observe(filter, keys, NULL, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "divisible by 8",
          echoless_filter_observe(filter, keys, (uint64_t *)(void *)((char *)duplicates + 1), NULL));
    keys.data = NULL;
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "NULL",
          echoless_filter_observe(filter, keys, duplicates, NULL));
    keys = echoless_numbers(ids, 2);
    keys.form = 0;
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "form",
          echoless_filter_observe(filter, keys, duplicates, NULL));
    keys = echoless_numbers(ids, SIZE_MAX);
    CHECK(echoless_filter_observe(filter, keys, duplicates, NULL) ==
          ECHOLESS_STATUS_INVALID_ARGUMENT);
    keys = echoless_fixed(ids, SIZE_MAX / 2, SIZE_MAX / 2, 5);
    CHECK(echoless_filter_observe(filter, keys, duplicates, NULL) ==
          ECHOLESS_STATUS_INVALID_ARGUMENT);
    keys = echoless_fixed(ids, 8, 4, 2);
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "stride",
          echoless_filter_observe(filter, keys, duplicates, NULL));
    int64_t descending[] = {0, 8, 4}, negative[] = {-1, 8, 16};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "offset",
          echoless_filter_observe(filter, echoless_packed(ids, descending, 2), duplicates, NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "offset",
          echoless_filter_observe(filter, echoless_packed(ids, negative, 2), duplicates, NULL));
    echoless_slice slices[] = {{(const uint8_t *)"a", 1}, {NULL, 1}};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "at 1",
          echoless_filter_observe(filter, echoless_slices(slices, 2), duplicates, NULL));
    slices[1].length = 0;
    OK(echoless_filter_observe(filter, echoless_slices(slices, 2), duplicates, NULL));
    echoless_packet packet = {(const uint8_t *)"x", 1, 1};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "packet_keys",
          echoless_filter_observe(filter, echoless_packets(&packet, 1, NULL), duplicates, NULL));
    echoless_report report = {.size = 0};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "size", echoless_filter_report(filter, &report));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "report", echoless_filter_report(filter, NULL));
    char text[8];
    size_t length = 0;
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "capacity",
          echoless_filter_spec(filter, text, sizeof text, &length));
    CHECK(length > sizeof text);
    char *spec = malloc(length + 1);
    OK(echoless_filter_spec(filter, spec, length + 1, NULL));
    CHECK(strlen(spec) == length && strstr(spec, "memory=1MiB") != NULL);
    free(spec);
    /* Freed handles are found out, also when another filter has the place. */
    echoless_filter *freed = filter, *next = NULL;
    OK(echoless_filter_free(filter));
    CHECK(echoless_filter_free(freed) == ECHOLESS_STATUS_INVALID_ARGUMENT);
    OK(echoless_filter_new(LINES, NULL, &next));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "not freed",
          echoless_filter_observe(freed, echoless_numbers(ids, 2), duplicates, NULL));
    OK(echoless_filter_free(next));
    for (int i = 0; i < 2000; i++) {
        OK(echoless_filter_new("bloom:k=4,memory=64B", NULL, &next));
        CHECK(echoless_filter_clear(freed) == ECHOLESS_STATUS_INVALID_ARGUMENT);
        OK(echoless_filter_free(next));
    }
    OK(echoless_filter_free(NULL));
    OK(echoless_shared_free(shared));
    CHECK(strcmp(echoless_version(), ECHOLESS_VERSION) == 0);
}

static void packets(void) {
    /* The same IPv4 packet in front of a router and behind it: the TTL and the checksum differ. */
    uint8_t frame[2][60] = {{0}};
    for (int i = 0; i < 2; i++) {
        frame[i][12] = 8;
        uint8_t *ip = frame[i] + 14;
        ip[0] = 0x45, ip[3] = 46, ip[5] = 7, ip[8] = (uint8_t)(64 - i), ip[9] = 17;
        ip[10] = (uint8_t)(100 + i);
        memcpy(ip + 12, "\x0a\0\0\1\x0a\0\0\2", 8);
    }
    echoless_packet batch[2];
    for (int i = 0; i < 2; i++) batch[i] = (echoless_packet){frame[i], 60, 60};
    echoless_packet_keys *reader = NULL;
    echoless_packet_options options = {.link_type = 1, .ignore = "nonsense"};
    OK(echoless_packet_keys_new(NULL, &reader));
    echoless_filter *filter = NULL;
    OK(echoless_filter_new(LINES, NULL, &filter));
    uint64_t duplicates = 0;
    OK(echoless_filter_observe(filter, echoless_packets(batch, 2, reader), &duplicates, NULL));
    CHECK(duplicates == 2);
    OK(echoless_packet_keys_free(reader));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "ignore", echoless_packet_keys_new(&options, &reader));
    options.ignore = "mac";
    OK(echoless_packet_keys_new(&options, &reader));
    OK(echoless_filter_clear(filter));
    OK(echoless_filter_observe(filter, echoless_packets(batch, 2, reader), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_packet_keys_free(reader));
    OK(echoless_filter_free(filter));
}

#define KEYS 20000

struct work {
    echoless_shared *shared;
    echoless_thread *thread;
    uint64_t fresh;
};

static void *observe_all(void *context) {
    struct work *work = context;
    uint64_t ids[100], duplicates[2], count = 0;
    for (uint64_t from = 0; from < KEYS; from += 100) {
        for (uint64_t i = 0; i < 100; i++) ids[i] = from + i;
        echoless_keys keys = echoless_numbers(ids, 100);
        if (work->shared) {
            OK(echoless_shared_observe(work->shared, keys, duplicates, &count));
        } else {
            OK(echoless_thread_take(work->thread));
            OK(echoless_thread_observe(work->thread, keys, duplicates, &count));
        }
        work->fresh += 100 - count;
    }
    return NULL;
}

static int position(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    (void)capacity;
    memcpy(bytes, context, 3);
    *length = 3;
    return 0;
}

struct inside {
    echoless_ordered *ordered;
    echoless_thread *thread;
    char path[4096];
    int calls;
};

/* Uses the filter that is saved, which has a ticket: an error, where it would wait for itself. */
static int position_inside(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    (void)bytes, (void)capacity;
    struct inside *inside = context;
    uint64_t id = 1, duplicates = 0;
    echoless_report report = {.size = sizeof report};
    FAILS(ECHOLESS_STATUS_BUSY, "position",
          echoless_thread_observe(inside->thread, echoless_numbers(&id, 1), &duplicates, NULL));
    FAILS(ECHOLESS_STATUS_BUSY, "position", echoless_thread_wait(inside->thread, UINT64_MAX));
    FAILS(ECHOLESS_STATUS_BUSY, "position", echoless_ordered_report(inside->ordered, &report));
    FAILS(ECHOLESS_STATUS_BUSY, "position",
          echoless_ordered_save_file(inside->ordered, inside->path, NULL, NULL, NULL));
    inside->calls++;
    *length = 0;
    return inside->calls == 1 ? 0 : 9;
}

static void reentrance(const char *folder) {
    struct inside inside = {0};
    uint64_t id = 1, duplicates = 0;
    snprintf(inside.path, sizeof inside.path, "%s/inside.state", folder);
    OK(echoless_ordered_new(LINES, NULL, 2, &inside.ordered));
    OK(echoless_thread_new(inside.ordered, &inside.thread));
    OK(echoless_ordered_save_file(inside.ordered, inside.path, NULL, position_inside, &inside));
    FAILS(ECHOLESS_STATUS_IO, "9",
          echoless_ordered_save_file(inside.ordered, inside.path, NULL, position_inside, &inside));
    CHECK(inside.calls == 2);
    OK(echoless_thread_observe(inside.thread, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_thread_free(inside.thread));
    OK(echoless_ordered_free(inside.ordered));
    unlink(inside.path);
}

static void threads(const char *folder) {
    echoless_shared *shared = NULL;
    echoless_ordered *ordered = NULL;
    OK(echoless_shared_new("row2x32:memory=4MiB", NULL, &shared));
    OK(echoless_ordered_new("fingerprint:fpr=1e-8,memory=4MiB", NULL, 2, &ordered));
    for (int kind = 0; kind < 2; kind++) {
        pthread_t running[3];
        struct work work[3] = {{0}};
        uint64_t fresh = 0;
        for (int i = 0; i < 3; i++) {
            if (kind == 0) work[i].shared = shared;
            else OK(echoless_thread_new(ordered, &work[i].thread));
            pthread_create(&running[i], NULL, observe_all, &work[i]);
        }
        if (kind == 1) {
            char path[4096];
            snprintf(path, sizeof path, "%s/ordered.state", folder);
            OK(echoless_ordered_save_file(ordered, path, NULL, position, (void *)"abc"));
            echoless_filter *loaded = NULL;
            uint8_t bytes[8];
            size_t length = 0;
            OK(echoless_filter_load_file(path, NULL, UINT64_MAX, bytes, 8, &length, &loaded));
            CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
            OK(echoless_filter_free(loaded));
            echoless_ordered *again = NULL;
            CHECK(echoless_ordered_load_file(path, NULL, 0, UINT64_MAX, NULL, 0, NULL, &again) ==
                  ECHOLESS_STATUS_INVALID_SPEC);
            OK(echoless_ordered_load_file(path, NULL, 3, UINT64_MAX, bytes, 8, &length, &again));
            CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
            echoless_report saved = {.size = sizeof saved};
            OK(echoless_ordered_report(again, &saved));
            CHECK(saved.observed <= 3 * KEYS && saved.fresh <= KEYS);
            OK(echoless_ordered_free(again));
            unlink(path);
        }
        for (int i = 0; i < 3; i++) {
            pthread_join(running[i], NULL);
            fresh += work[i].fresh;
            OK(echoless_thread_free(work[i].thread));
        }
        /* A shared filter forgets a few; no key is fresh twice at one time. */
        CHECK(kind == 1 ? fresh == KEYS : fresh >= KEYS * 99 / 100 && fresh <= KEYS * 102 / 100);
    }
    echoless_report report = {.size = sizeof report};
    OK(echoless_shared_report(shared, &report));
    CHECK(report.fresh > 0 && report.expected_fpr < 1e-6);
    OK(echoless_ordered_report(ordered, &report));
    CHECK(report.observed == 3 * KEYS && report.fresh == KEYS);
    /* A ticket that is left out does not block the others. */
    echoless_thread *one = NULL, *two = NULL;
    OK(echoless_thread_new(ordered, &one));
    OK(echoless_thread_new(ordered, &two));
    uint64_t id = KEYS, duplicates = 0;
    OK(echoless_thread_take(one));
    FAILS(ECHOLESS_STATUS_TIMED_OUT, "", echoless_thread_wait(two, 1));
    OK(echoless_thread_leave(one));
    OK(echoless_thread_wait(two, 60000));
    OK(echoless_thread_observe(two, echoless_numbers(&id, 1), &duplicates, NULL));
    OK(echoless_ordered_free(ordered));
    OK(echoless_thread_observe(one, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 1);
    OK(echoless_thread_free(one));
    OK(echoless_thread_free(two));
    OK(echoless_shared_clear(shared));
    OK(echoless_shared_contains(shared, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_shared_free(shared));
}

static void engines(void) {
    echoless_engine *engine = NULL;
    echoless_port *port = NULL;
    OK(echoless_engine_new(LINES, NULL, 2, &engine));
    OK(echoless_port_new(engine, &port));
    uint64_t ids[130], duplicates[3], count = 0;
    size_t keys = 1;
    OK(echoless_port_drain(port, NULL, 0, &keys, NULL));
    CHECK(keys == 0);
    for (int i = 0; i < 130; i++) ids[i] = (uint64_t)(i % 100);
    OK(echoless_port_submit(port, echoless_numbers(ids, 130)));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "3 words",
          echoless_port_drain(port, duplicates, 2, &keys, &count));
    OK(echoless_port_drain(port, duplicates, 3, &keys, &count));
    CHECK(keys == 130 && count == 30 && echoless_is_duplicate(duplicates, 129));
    OK(echoless_port_wait(port, 0));
    echoless_report report = {.size = sizeof report};
    /* Once a wait is over, every partition has answered. */
    for (int i = 0; i < 100; i++) {
        OK(echoless_port_submit(port, echoless_numbers(ids, 130)));
        OK(echoless_port_submit(port, echoless_numbers(NULL, 0)));
        OK(echoless_port_wait(port, 60000));
        OK(echoless_engine_report(engine, &report));
        CHECK(report.observed == 130 * (uint64_t)(i + 2));
        OK(echoless_port_drain(port, duplicates, 3, &keys, &count));
        CHECK(keys == 130 && count == 130);
        OK(echoless_port_wait(port, 60000));
        OK(echoless_port_drain(port, duplicates, 3, &keys, &count));
        CHECK(keys == 0 && count == 0);
    }
    OK(echoless_engine_free(engine));
    OK(echoless_port_free(port));
    OK(echoless_engine_new(LINES, NULL, 2, &engine));
    OK(echoless_port_new(engine, &port));
    OK(echoless_port_submit(port, echoless_numbers(ids, 130)));
    OK(echoless_port_drain(port, duplicates, 3, &keys, &count));
    OK(echoless_engine_report(engine, &report));
    CHECK(report.observed == 130 && report.fresh == 100);
    OK(echoless_engine_shutdown(engine, &report));
    CHECK(report.observed == 130 && report.fresh == 100);
    FAILS(ECHOLESS_STATUS_DISCONNECTED, "shut down", echoless_engine_shutdown(engine, NULL));
    FAILS(ECHOLESS_STATUS_DISCONNECTED, "", echoless_port_submit(port, echoless_numbers(ids, 1)));
    OK(echoless_port_free(port));
    OK(echoless_engine_free(engine));
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : ".";
    forms();
    windows();
    states(folder);
    misuse();
    packets();
    threads(folder);
    reentrance(folder);
    engines();
    puts("ok");
    return 0;
}
