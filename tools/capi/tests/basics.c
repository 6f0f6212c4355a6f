/* Every function of the interface, with right and wrong arguments. Prints "ok" at the end. */
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

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
    echoless_handle *filter = NULL;
    OK(echoless_new(ECHOLESS_KIND_FILTER, LINES, NULL, 1, &filter));
    uint64_t hashes[10];
    OK(echoless_hash(filter, echoless_slices(slices, 10), hashes));
    echoless_keys forms[] = {
        echoless_fixed(records[0].id, 8, sizeof records[0], 10),
        echoless_slices(slices, 10),
        echoless_packed(packed, offsets, 10),
        echoless_packed32(packed, offsets32, 10),
        echoless_hashes(hashes, 10),
    };
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        uint64_t duplicates = 1, count = 0;
        OK(echoless_clear(filter));
        OK(echoless_contains(filter, forms[form], &duplicates, &count));
        CHECK(duplicates == 0 && count == 0);
        OK(echoless_observe(filter, forms[form], &duplicates, &count));
        CHECK(duplicates == 0x380 && count == 3);
        CHECK(echoless_is_duplicate(&duplicates, 7) && !echoless_is_duplicate(&duplicates, 6));
        OK(echoless_contains(filter, forms[form], &duplicates, NULL));
        CHECK(duplicates == 0x3ff);
    }
    uint64_t ids[] = {5, 6, 5}, duplicates = 0;
    OK(echoless_observe(filter, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 4);
    OK(echoless_observe(filter, echoless_hashes(NULL, 0), NULL, NULL));
    OK(echoless_free(filter));
}

static void windows(void) {
    echoless_handle *filter = NULL;
    OK(echoless_new(ECHOLESS_KIND_FILTER, "clocked:window=60,refresh=false,form=line,memory=1MiB",
                    NULL, 1, &filter));
    uint64_t ids[] = {7, 7, 7}, ticks[] = {100, 160, 221}, duplicates = 0;
    OK(echoless_observe(filter, echoless_at(echoless_numbers(ids, 3), ticks), &duplicates, NULL));
    CHECK(duplicates == 2);
    OK(echoless_advance(filter, 1000));
    OK(echoless_contains(filter, echoless_numbers(ids, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    echoless_report report = {.size = sizeof report};
    OK(echoless_read_report(filter, &report));
    CHECK(report.observed == 3 && report.fresh == 2 && report.window_ticks == 60);
    CHECK(report.memory_bytes == 1 << 20 && report.expected_fpr < 1e-6);
    /* An older program knows fewer fields. */
    report.size = offsetof(echoless_report, fresh);
    report.fresh = 17;
    OK(echoless_read_report(filter, &report));
    CHECK(report.fresh == 17 && report.size == offsetof(echoless_report, fresh));
    OK(echoless_free(filter));
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
    echoless_handle *filter = NULL, *loaded = NULL;
    OK(echoless_new(ECHOLESS_KIND_FILTER, LINES, &hashing, 1, &filter));
    uint64_t ids[] = {1, 2, 3}, duplicates = 0, lines = 0;
    OK(echoless_observe(filter, echoless_numbers(ids, 3), &duplicates, NULL));
    OK(echoless_save(filter, echoless_to_file(path), echoless_bytes("at 42", 5)));
    uint8_t bytes[16];
    size_t length = 0;
    OK(echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                     echoless_into(bytes, sizeof bytes, &length), &loaded));
    CHECK(length == 5 && memcmp(bytes, "at 42", 5) == 0);
    OK(echoless_observe(loaded, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_free(loaded));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), NULL, 1, UINT64_MAX,
                        echoless_into(NULL, 0, NULL), &loaded));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "memory",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &hashing, 1, 1 << 19,
                        echoless_into(NULL, 0, NULL), &loaded));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "capacity",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                        echoless_into(bytes, 4, NULL), &loaded));
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file("/nowhere/at/all"), NULL, 1,
                        UINT64_MAX, echoless_into(NULL, 0, NULL), &loaded));
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_save(filter, echoless_to_file("/nowhere/at/all"), echoless_bytes(NULL, 0)));

    echoless_handle *shared = NULL;
    OK(echoless_new(ECHOLESS_KIND_SHARED, "row2x32:memory=1MiB", &hashing, 1, &shared));
    OK(echoless_observe(shared, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 0);
    FAILS(ECHOLESS_STATUS_IO, "nowhere",
          echoless_save(shared, echoless_to_file("/nowhere/at/all"), echoless_bytes(NULL, 0)));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "a filter in lines",
          echoless_load(ECHOLESS_KIND_SHARED, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                        echoless_into(NULL, 0, NULL), &shared));
    OK(echoless_save(shared, echoless_to_file(path), echoless_bytes("at 43", 5)));
    OK(echoless_free(shared));
    FAILS(ECHOLESS_STATUS_STATE_MISMATCH, "a shared filter",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                        echoless_into(NULL, 0, NULL), &loaded));
    OK(echoless_load(ECHOLESS_KIND_SHARED, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                     echoless_into(bytes, sizeof bytes, &length), &shared));
    CHECK(length == 5 && memcmp(bytes, "at 43", 5) == 0);
    OK(echoless_contains(shared, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_free(shared));

    OK(echoless_lines(filter, &lines));
    CHECK(lines == (1 << 20) / 64);
    uint64_t memory = 0;
    OK(echoless_memory_bytes(filter, &memory));
    CHECK(memory == 1 << 20);
    struct memory_file *parts = calloc(2, sizeof *parts);
    OK(echoless_save(filter, echoless_to_lines(0, lines / 4, append, &parts[0]),
                     echoless_bytes("a", 1)));
    OK(echoless_save(filter, echoless_to_lines(lines / 4, lines, append, &parts[1]),
                     echoless_bytes("b", 1)));
    void *contexts[] = {&parts[1], &parts[0]};
    OK(echoless_load(ECHOLESS_KIND_FILTER, echoless_from_streams(take, contexts, 2), &hashing, 1,
                     UINT64_MAX, echoless_into(bytes, sizeof bytes, &length), &loaded));
    CHECK(length == 2 && memcmp(bytes, "ab", 2) == 0);
    OK(echoless_contains(loaded, echoless_numbers(ids, 3), &duplicates, NULL));
    CHECK(duplicates == 7);
    OK(echoless_free(loaded));
    parts[0].position = parts[1].position = 0;
    FAILS(ECHOLESS_STATUS_INVALID_STATE, "lines",
          echoless_load(ECHOLESS_KIND_FILTER, echoless_from_streams(take, contexts, 1), &hashing,
                        1, UINT64_MAX, echoless_into(NULL, 0, NULL), &loaded));
    FAILS(ECHOLESS_STATUS_IO, "5",
          echoless_save(filter, echoless_to_lines(0, lines, refuse, NULL),
                        echoless_bytes(NULL, 0)));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "lines",
          echoless_save(filter, echoless_to_lines(5, 5, append, &parts[0]),
                        echoless_bytes(NULL, 0)));
    free(parts);
    OK(echoless_free(filter));
    unlink(path);
}

/* More keys than one line has slots: a filter would forget some. */
static void exact(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/exact", folder);
    uint64_t ids[500], mask[8], count = 0;
    for (size_t i = 0; i < 500; i++) ids[i] = i % 400;
    echoless_handle *filter = NULL, *again = NULL;
    OK(echoless_new(ECHOLESS_KIND_EXACT, "fingerprint:memory=64", NULL, 1, &filter));
    OK(echoless_observe(filter, echoless_numbers(ids, 500), mask, &count));
    CHECK(count == 100);
    for (size_t i = 0; i < 500; i++) CHECK(echoless_is_duplicate(mask, i) == (i >= 400));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "the keys themselves",
          echoless_observe(filter, echoless_hashes(ids, 500), mask, NULL));
    /* From here on the keys are in the folder, and what comes after is not yet. */
    OK(echoless_save(filter, echoless_to_file(path), echoless_bytes("line 500", 8)));
    OK(echoless_observe(filter, echoless_slices(&(echoless_slice){(const uint8_t *)"new", 3}, 1), mask,
                        &count));
    CHECK(count == 0);
    FAILS(ECHOLESS_STATUS_BUSY, "in use",
          echoless_load(ECHOLESS_KIND_EXACT, echoless_from_file(path), NULL, 1, UINT64_MAX,
                        echoless_into(NULL, 0, NULL), &again));
    OK(echoless_free(filter));
    char bytes[16];
    size_t length = 0;
    OK(echoless_load(ECHOLESS_KIND_EXACT, echoless_from_file(path), NULL, 1, UINT64_MAX,
                     echoless_into(bytes, sizeof bytes, &length), &again));
    CHECK(length == 8 && memcmp(bytes, "line 500", 8) == 0);
    OK(echoless_observe(again, echoless_numbers(ids, 500), mask, &count));
    CHECK(count == 500);
    OK(echoless_contains(again, echoless_slices(&(echoless_slice){(const uint8_t *)"new", 3}, 1), mask,
                         &count));
    CHECK(count == 0);
    echoless_report report = {.size = sizeof report};
    OK(echoless_read_report(again, &report));
    CHECK(report.fresh == 400 && report.expected_fpr == 0);
    OK(echoless_save(again, echoless_to_file(path), echoless_bytes(NULL, 0)));
    FAILS(ECHOLESS_STATUS_UNSUPPORTED, "never saved", echoless_clear(again));
    OK(echoless_free(again));
    char command[4200];
    snprintf(command, sizeof command, "rm -r '%s'", path);
    CHECK(system(command) == 0);
}

static void shared_window(void) {
    echoless_handle *shared = NULL;
    uint64_t id = 7, duplicates = 0;
    OK(echoless_new(ECHOLESS_KIND_SHARED, "stamped:window=60,memory=1MiB", NULL, 1, &shared));
    const uint64_t ticks[] = {100, 160, 221};
    const uint64_t ids[] = {id, id, id};
    OK(echoless_observe(shared, echoless_at(echoless_numbers(ids, 3), ticks), &duplicates, NULL));
    CHECK(duplicates == 2);
    OK(echoless_advance(shared, 1000));
    OK(echoless_contains(shared, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_free(shared));
}

static void misuse(void) {
    echoless_handle *filter = NULL;
    echoless_handle *shared = NULL;
    uint64_t ids[] = {1, 2}, duplicates[2] = {0};
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "memory",
          echoless_new(ECHOLESS_KIND_FILTER, "fingerprint:fpr=1e-8", NULL, 1, &filter));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "invalid fpr=2",
          echoless_new(ECHOLESS_KIND_FILTER, "fingerprint:fpr=2,memory=1MiB", NULL, 1, &filter));
    CHECK(filter == NULL);
    OK(echoless_new(ECHOLESS_KIND_FILTER, LINES, NULL, 1, &filter));
    OK(echoless_new(ECHOLESS_KIND_SHARED, "row4x16:memory=1MiB", NULL, 1, &shared));
    /* Each argument is checked as tests/arguments.rs does; here as a compiler passes them. */
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "invalid handle=shared filter: expected",
          echoless_take(shared));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "divisible by 8",
          echoless_observe(filter, echoless_numbers(ids, 2),
                           (uint64_t *)(void *)((char *)duplicates + 1), NULL));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "stride",
          echoless_observe(filter, echoless_fixed(ids, 8, 4, 2), duplicates, NULL));
    echoless_slice slices[] = {{(const uint8_t *)"a", 1}, {NULL, 1}};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "at 1",
          echoless_observe(filter, echoless_slices(slices, 2), duplicates, NULL));
    slices[1].length = 0;
    OK(echoless_observe(filter, echoless_slices(slices, 2), duplicates, NULL));
    echoless_packet packet = {(const uint8_t *)"x", 1, 1};
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "packet_keys",
          echoless_observe(filter, echoless_packets(&packet, 1, NULL), duplicates, NULL));
    char text[8];
    size_t length = 0;
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "capacity",
          echoless_spec(filter, echoless_into(text, sizeof text, &length)));
    CHECK(length > sizeof text);
    char *spec = malloc(length + 1);
    OK(echoless_spec(filter, echoless_into(spec, length + 1, NULL)));
    CHECK(strlen(spec) == length && strstr(spec, "memory=1MiB") != NULL);
    free(spec);
    /* Freed handles are found out, also when another filter has the place. */
    echoless_handle *freed = filter, *next = NULL;
    OK(echoless_free(filter));
    CHECK(echoless_free(freed) == ECHOLESS_STATUS_INVALID_ARGUMENT);
    OK(echoless_new(ECHOLESS_KIND_FILTER, LINES, NULL, 1, &next));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "not freed",
          echoless_observe(freed, echoless_numbers(ids, 2), duplicates, NULL));
    OK(echoless_free(next));
    for (int i = 0; i < 2000; i++) {
        OK(echoless_new(ECHOLESS_KIND_FILTER, "fingerprint:memory=4KiB", NULL, 1, &next));
        CHECK(echoless_clear(freed) == ECHOLESS_STATUS_INVALID_ARGUMENT);
        OK(echoless_free(next));
    }
    OK(echoless_free(NULL));
    OK(echoless_free(shared));
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
    echoless_handle *reader = NULL;
    echoless_packet_options options = {.link_type = 1, .ignore = "nonsense"};
    OK(echoless_packet_keys(NULL, &reader));
    echoless_handle *filter = NULL;
    OK(echoless_new(ECHOLESS_KIND_FILTER, LINES, NULL, 1, &filter));
    uint64_t duplicates = 0;
    OK(echoless_observe(filter, echoless_packets(batch, 2, reader), &duplicates, NULL));
    CHECK(duplicates == 2);
    OK(echoless_free(reader));
    FAILS(ECHOLESS_STATUS_INVALID_SPEC, "ignore", echoless_packet_keys(&options, &reader));
    options.ignore = "mac";
    OK(echoless_packet_keys(&options, &reader));
    OK(echoless_clear(filter));
    OK(echoless_observe(filter, echoless_packets(batch, 2, reader), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_free(reader));
    OK(echoless_free(filter));
}

#define KEYS 20000

struct work {
    echoless_handle *shared;
    echoless_handle *thread;
    uint64_t fresh;
};

static void *observe_all(void *context) {
    struct work *work = context;
    uint64_t ids[100], duplicates[2], count = 0;
    for (uint64_t from = 0; from < KEYS; from += 100) {
        for (uint64_t i = 0; i < 100; i++) ids[i] = from + i;
        echoless_keys keys = echoless_numbers(ids, 100);
        if (work->shared) {
            OK(echoless_observe(work->shared, keys, duplicates, &count));
        } else {
            OK(echoless_take(work->thread));
            OK(echoless_observe(work->thread, keys, duplicates, &count));
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
    echoless_handle *ordered;
    echoless_handle *thread;
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
          echoless_observe(inside->thread, echoless_numbers(&id, 1), &duplicates, NULL));
    FAILS(ECHOLESS_STATUS_BUSY, "position", echoless_wait(inside->thread, UINT64_MAX));
    FAILS(ECHOLESS_STATUS_BUSY, "position", echoless_read_report(inside->ordered, &report));
    FAILS(ECHOLESS_STATUS_BUSY, "position",
          echoless_save_at(inside->ordered, echoless_to_file(inside->path),
                           (echoless_cut){NULL, NULL, NULL}));
    inside->calls++;
    *length = 0;
    return inside->calls == 1 ? 0 : 9;
}

static void reentrance(const char *folder) {
    struct inside inside = {0};
    uint64_t id = 1, duplicates = 0;
    snprintf(inside.path, sizeof inside.path, "%s/inside.state", folder);
    OK(echoless_new(ECHOLESS_KIND_ORDERED, LINES, NULL, 2, &inside.ordered));
    OK(echoless_open(inside.ordered, &inside.thread));
    OK(echoless_save_at(inside.ordered, echoless_to_file(inside.path),
                        (echoless_cut){NULL, position_inside, &inside}));
    FAILS(ECHOLESS_STATUS_IO, "9",
          echoless_save_at(inside.ordered, echoless_to_file(inside.path),
                           (echoless_cut){NULL, position_inside, &inside}));
    CHECK(inside.calls == 2);
    OK(echoless_observe(inside.thread, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_free(inside.thread));
    OK(echoless_free(inside.ordered));
    unlink(inside.path);
}

static void threads(const char *folder) {
    echoless_handle *shared = NULL;
    echoless_handle *ordered = NULL;
    OK(echoless_new(ECHOLESS_KIND_SHARED, "row2x32:memory=4MiB", NULL, 1, &shared));
    OK(echoless_new(ECHOLESS_KIND_ORDERED, "fingerprint:fpr=1e-8,memory=4MiB", NULL, 2, &ordered));
    for (int kind = 0; kind < 2; kind++) {
        pthread_t running[3];
        struct work work[3] = {{0}};
        uint64_t fresh = 0;
        for (int i = 0; i < 3; i++) {
            if (kind == 0) work[i].shared = shared;
            else OK(echoless_open(ordered, &work[i].thread));
            pthread_create(&running[i], NULL, observe_all, &work[i]);
        }
        if (kind == 1) {
            char path[4096];
            snprintf(path, sizeof path, "%s/ordered.state", folder);
            OK(echoless_save_at(ordered, echoless_to_file(path),
                                (echoless_cut){NULL, position, (void *)"abc"}));
            echoless_handle *loaded = NULL;
            uint8_t bytes[8];
            size_t length = 0;
            OK(echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), NULL, 1, UINT64_MAX,
                             echoless_into(bytes, 8, &length), &loaded));
            CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
            OK(echoless_free(loaded));
            echoless_handle *again = NULL;
            CHECK(echoless_load(ECHOLESS_KIND_ORDERED, echoless_from_file(path), NULL, 0,
                                UINT64_MAX, echoless_into(NULL, 0, NULL), &again) ==
                  ECHOLESS_STATUS_INVALID_SPEC);
            OK(echoless_load(ECHOLESS_KIND_ORDERED, echoless_from_file(path), NULL, 3, UINT64_MAX,
                             echoless_into(bytes, 8, &length), &again));
            CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
            echoless_report saved = {.size = sizeof saved};
            OK(echoless_read_report(again, &saved));
            CHECK(saved.observed <= 3 * KEYS && saved.fresh <= KEYS);
            OK(echoless_free(again));
            unlink(path);
        }
        for (int i = 0; i < 3; i++) {
            pthread_join(running[i], NULL);
            fresh += work[i].fresh;
            OK(echoless_free(work[i].thread));
        }
        /* A shared filter forgets a few; no key is fresh twice at one time. */
        CHECK(kind == 1 ? fresh == KEYS : fresh >= KEYS * 99 / 100 && fresh <= KEYS * 102 / 100);
    }
    echoless_report report = {.size = sizeof report};
    OK(echoless_read_report(shared, &report));
    CHECK(report.fresh > 0 && report.expected_fpr < 1e-6);
    OK(echoless_read_report(ordered, &report));
    CHECK(report.observed == 3 * KEYS && report.fresh == KEYS);
    /* A ticket that is left out does not block the others. */
    echoless_handle *one = NULL, *two = NULL;
    OK(echoless_open(ordered, &one));
    OK(echoless_open(ordered, &two));
    uint64_t id = KEYS, duplicates = 0;
    OK(echoless_take(one));
    FAILS(ECHOLESS_STATUS_TIMED_OUT, "", echoless_wait(two, 1));
    OK(echoless_leave(one));
    OK(echoless_wait(two, 60000));
    OK(echoless_observe(two, echoless_numbers(&id, 1), &duplicates, NULL));
    OK(echoless_free(ordered));
    OK(echoless_observe(one, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 1);
    OK(echoless_free(one));
    OK(echoless_free(two));
    OK(echoless_clear(shared));
    OK(echoless_contains(shared, echoless_numbers(&id, 1), &duplicates, NULL));
    CHECK(duplicates == 0);
    OK(echoless_free(shared));
}

static void engines(void) {
    echoless_handle *engine = NULL;
    echoless_handle *port = NULL;
    OK(echoless_new(ECHOLESS_KIND_ENGINE, LINES, NULL, 2, &engine));
    OK(echoless_open(engine, &port));
    uint64_t ids[130], duplicates[3], count = 0;
    size_t keys = 1;
    OK(echoless_drain(port, echoless_into(NULL, 0, NULL), &keys, NULL));
    CHECK(keys == 0);
    for (int i = 0; i < 130; i++) ids[i] = (uint64_t)(i % 100);
    OK(echoless_submit(port, echoless_numbers(ids, 130)));
    FAILS(ECHOLESS_STATUS_INVALID_ARGUMENT, "3 words",
          echoless_drain(port, echoless_into(duplicates, 8 * 2, NULL), &keys, &count));
    OK(echoless_drain(port, echoless_into(duplicates, 8 * 3, NULL), &keys, &count));
    CHECK(keys == 130 && count == 30 && echoless_is_duplicate(duplicates, 129));
    OK(echoless_wait(port, 0));
    echoless_report report = {.size = sizeof report};
    /* Once a wait is over, every partition has answered. */
    for (int i = 0; i < 100; i++) {
        OK(echoless_submit(port, echoless_numbers(ids, 130)));
        OK(echoless_submit(port, echoless_numbers(NULL, 0)));
        OK(echoless_wait(port, 60000));
        OK(echoless_read_report(engine, &report));
        CHECK(report.observed == 130 * (uint64_t)(i + 2));
        OK(echoless_drain(port, echoless_into(duplicates, 8 * 3, NULL), &keys, &count));
        CHECK(keys == 130 && count == 130);
        OK(echoless_wait(port, 60000));
        OK(echoless_drain(port, echoless_into(duplicates, 8 * 3, NULL), &keys, &count));
        CHECK(keys == 0 && count == 0);
    }
    OK(echoless_free(engine));
    OK(echoless_free(port));
    OK(echoless_new(ECHOLESS_KIND_ENGINE, LINES, NULL, 2, &engine));
    OK(echoless_open(engine, &port));
    OK(echoless_submit(port, echoless_numbers(ids, 130)));
    OK(echoless_drain(port, echoless_into(duplicates, 8 * 3, NULL), &keys, &count));
    OK(echoless_read_report(engine, &report));
    CHECK(report.observed == 130 && report.fresh == 100);
    OK(echoless_shutdown(engine, &report));
    CHECK(report.observed == 130 && report.fresh == 100);
    FAILS(ECHOLESS_STATUS_DISCONNECTED, "shut down", echoless_shutdown(engine, NULL));
    FAILS(ECHOLESS_STATUS_DISCONNECTED, "", echoless_submit(port, echoless_numbers(ids, 1)));
    OK(echoless_free(port));
    OK(echoless_free(engine));
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : ".";
    forms();
    windows();
    states(folder);
    exact(folder);
    shared_window();
    misuse();
    packets();
    threads(folder);
    reentrance(folder);
    engines();
    puts("ok");
    return 0;
}
