/* Random calls of the whole interface, checked against a model: from a seed,
 *
 *     random_calls FOLDER [SEED] [STEPS]
 *
 * or from the bytes of a fuzzer, which calls `calls_from_bytes` (fuzz/fuzz_targets/calls.rs).
 *
 * What a call reads and writes ends at a page that cannot be accessed, so that a byte too many is a
 * crash, also in code without the sanitizer. A call with a wrong argument must fail, and change
 * nothing. */
#define _GNU_SOURCE
#include <echoless.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t seed, step;
static const char *folder;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s at seed %" PRIu64 ", step %" PRIu64 " (last error: %s)\n",  \
                    __FILE__, __LINE__, #condition, seed, step, echoless_last_error());            \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == ECHOLESS_OK)

static uint64_t next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Where choices come from: the bytes of a fuzzer, followed by zeros, or else the numbers of the
 * seed. */
static uint64_t state;
static const uint8_t *input;
static size_t input_left;

static uint64_t draw(size_t bytes) {
    if (!input) return next(&state);
    uint64_t value = 0;
    for (; bytes > 0 && input_left > 0; bytes--, input_left--) value = value << 8 | *input++;
    return value;
}

static uint64_t below(uint64_t end) {
    return draw(end <= 1 << 8 ? 1 : end <= 1 << 16 ? 2 : 8) % end;
}

static bool one_in(uint64_t times) { return below(times) == 0; }

/* Memory that ends at a page without access. One call uses each arena once at most. Under the
 * address sanitizer what is in front cannot be accessed either, to within eight bytes. */
enum arena { KEYS, POINTERS, TICKS, MASK, HASHES, REPORT, ARENAS };

#define ARENA_BYTES (1 << 18)

static uint8_t *arenas[ARENAS];

/* Of the sanitizer, if the program has it. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *, size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *, size_t);

static void *guarded(enum arena arena, size_t bytes) {
    if (!arenas[arena]) {
        long page = sysconf(_SC_PAGESIZE);
        uint8_t *mapped = mmap(NULL, ARENA_BYTES + (size_t)page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapped != MAP_FAILED);
        CHECK(mprotect(mapped + ARENA_BYTES, (size_t)page, PROT_NONE) == 0);
        arenas[arena] = mapped;
    }
    CHECK(bytes <= ARENA_BYTES);
    if (__asan_poison_memory_region) {
        __asan_unpoison_memory_region(arenas[arena], ARENA_BYTES);
        __asan_poison_memory_region(arenas[arena], ARENA_BYTES - bytes);
    }
    return arenas[arena] + ARENA_BYTES - bytes;
}

/* ---- handles and what is known about them ---- */

enum kind { FILTER, SHARED, ORDERED, THREAD, ENGINE, PORT, READER, KINDS };

#define UNIVERSE 2048
#define MOST_KEYS 2500

/* Keys of different spaces are never equal. */
enum space { TEXTS, NUMBERS, UNIFORM, PACKETS, SPACES };

struct model {
    int owners;
    /* Whether the verdicts are known: the filter forgets nothing. */
    bool exact;
    bool lines, secret;
    uint8_t seen[SPACES][UNIVERSE];
    uint64_t observed, fresh;
    /* Of an ordered filter: the thread that holds a ticket. One at a time, or one of them waits
     * forever for the other. */
    void *holder;
    bool shut_down;
    /* An engine that is freed stops some time later: until then batches are judged. */
    bool freed;
};

struct entry {
    enum kind kind;
    void *handle;
    struct model *model;
    /* Of a port: the batches in flight. */
    size_t in_flight, keys[8];
};

#define ENTRIES 48
#define STALE 256

static struct entry entries[ENTRIES];
static size_t count_entries;
static void *stale[STALE];
static size_t count_stale;

static void release(struct model *model) {
    if (model && --model->owners == 0) free(model);
}

static void drop_entry(size_t index) {
    struct entry *entry = &entries[index];
    OK(echoless_free(entry->handle));
    if (entry->kind == THREAD && entry->model->holder == entry->handle)
        entry->model->holder = NULL;
    if (entry->kind == ENGINE) entry->model->freed = true;
    stale[count_stale++ % STALE] = entry->handle;
    release(entry->model);
    *entry = entries[--count_entries];
}

/* A random live entry of a kind, or NULL. */
static struct entry *any(enum kind kind) {
    size_t from = below(ENTRIES);
    for (size_t i = 0; i < count_entries; i++) {
        struct entry *entry = &entries[(from + i) % count_entries];
        if (entry->kind == kind) return entry;
    }
    return NULL;
}

/* What is no handle: NULL, freed, or never one. */
static void *no_handle(void) {
    static uint64_t word;
    switch (below(4)) {
    case 0: return NULL;
    case 1: if (count_stale > 0) return stale[below(count_stale < STALE ? count_stale : STALE)];
        return NULL;
    case 2: return &word;
    default: return (void *)(uintptr_t)draw(8);
    }
}

/* What no call with a handle of the kind takes: no handle, or one of another kind. */
static void *wrong_handle(enum kind kind) {
    struct entry *other = any(kind == READER ? FILTER : READER);
    return other && one_in(5) ? other->handle : no_handle();
}

/* ---- keys ---- */

struct call {
    echoless_keys keys;
    enum space space;
    uint16_t ids[MOST_KEYS];
    /* Whether a wrong argument is among them. */
    bool wrong;
};

static size_t any_count(void) {
    static const size_t counts[] = {0, 1, 2, 63, 64, 65, 127, 128, 2047, 2048, 2049, MOST_KEYS};
    return one_in(2) ? counts[below(sizeof counts / sizeof *counts)] : below(200);
}

/* The text of a key; that of key 0 is empty. */
static size_t text_of(uint16_t id, char text[16]) {
    return id == 0 ? 0 : (size_t)snprintf(text, 16, "key %08x", id);
}

static void fill_ids(struct call *call, size_t count) {
    uint64_t range = 1 + below(UNIVERSE), ids = draw(2);
    for (size_t i = 0; i < count; i++) call->ids[i] = (uint16_t)(next(&ids) % range);
}

static void texts(struct call *call, size_t count) {
    char text[16];
    call->space = TEXTS;
    switch (below(5)) {
    case 0: {
        /* One width: no empty keys. */
        size_t stride = (size_t[]){12, 13, 16, 40}[below(4)];
        uint8_t *bytes = guarded(KEYS, count ? (count - 1) * stride + 12 : 0);
        for (size_t i = 0; i < count; i++) {
            if (call->ids[i] == 0) call->ids[i] = 1;
            memcpy(bytes + i * stride, text, text_of(call->ids[i], text));
        }
        call->keys = echoless_fixed(count ? bytes : NULL, 12, stride, count);
        break;
    }
    case 1: {
        uint8_t *bytes = guarded(KEYS, 12 * count), *at = bytes;
        echoless_slice *slices = guarded(POINTERS, count * sizeof *slices);
        for (size_t i = 0; i < count; i++) {
            size_t length = text_of(call->ids[i], text);
            memcpy(at, text, length);
            slices[i] = (echoless_slice){length ? at : NULL, length};
            at += length;
        }
        call->keys = echoless_slices(slices, count);
        break;
    }
    case 2:
    case 3: {
        bool wide = one_in(2);
        size_t total = 0, end = 0;
        for (size_t i = 0; i < count; i++) total += text_of(call->ids[i], text);
        uint8_t *bytes = guarded(KEYS, total);
        int64_t *offsets = guarded(POINTERS, (count + 1) * (wide ? 8 : 4));
        for (size_t i = 0; i <= count; i++) {
            if (wide) offsets[i] = (int64_t)end;
            else ((int32_t *)(void *)offsets)[i] = (int32_t)end;
            if (i == count) break;
            size_t length = text_of(call->ids[i], text);
            memcpy(bytes + end, text, length);
            end += length;
        }
        call->keys = echoless_packed(total ? bytes : NULL, offsets, count);
        if (!wide) call->keys.form = ECHOLESS_FORM_PACKED32;
        break;
    }
    default:
        /* Keys of no bytes are all equal. */
        memset(call->ids, 0, sizeof call->ids);
        call->keys = echoless_fixed(NULL, 0, 0, count);
    }
}

static void words(struct call *call, size_t count) {
    bool uniform = one_in(2);
    call->space = uniform ? UNIFORM : NUMBERS;
    uint64_t *numbers = guarded(KEYS, 8 * count);
    for (size_t i = 0; i < count; i++) {
        uint64_t id = call->ids[i];
        numbers[i] = uniform ? next(&id) : id;
    }
    call->keys = uniform ? echoless_hashes(numbers, count) : echoless_numbers(numbers, count);
}

#define FRAME 62

static void packets(struct call *call, size_t count, struct entry *reader) {
    call->space = PACKETS;
    if (count > 1000) count = 1000;
    uint8_t *bytes = guarded(KEYS, FRAME * count);
    echoless_packet *packets = guarded(POINTERS, count * sizeof *packets);
    memset(bytes, 0, FRAME * count);
    uint64_t hops = draw(1);
    for (size_t i = 0; i < count; i++) {
        uint8_t *frame = bytes + FRAME * i, *ip = frame + 14;
        frame[12] = 8;
        ip[0] = 0x45, ip[3] = 48, ip[9] = 17;
        ip[8] = (uint8_t)next(&hops);
        memcpy(ip + 12, &call->ids[i], 2);
        packets[i] = (echoless_packet){frame, FRAME, FRAME};
    }
    call->keys = echoless_packets(packets, count, reader->handle);
}

/* Breaks one argument, if the keys have one that can be broken. Returns whether they have. */
static bool break_keys(struct call *call) {
    echoless_keys *keys = &call->keys;
    size_t count = keys->count;
    uint8_t *pointers = arenas[POINTERS];
    switch (below(6)) {
    case 0: keys->form = (uint32_t[]){0, 8, 1000, UINT32_MAX}[below(4)]; return true;
    case 1:
        if (keys->form <= ECHOLESS_FORM_NUMBERS) {
            keys->count = SIZE_MAX - below(1000);
            return true;
        }
        break;
    case 2:
        if (count > 0 && keys->width != 0 && keys->form != ECHOLESS_FORM_PACKED32 &&
            keys->form != ECHOLESS_FORM_PACKED64) {
            keys->data = NULL;
            return true;
        }
        break;
    case 3:
        if (keys->form == ECHOLESS_FORM_FIXED && keys->width > 0) {
            if (one_in(2)) keys->stride = below(keys->width);
            else keys->count = 3, keys->stride = SIZE_MAX / 2 + below(9);
            return true;
        }
        if (count > 0 && keys->form <= ECHOLESS_FORM_NUMBERS) {
            keys->data = (const uint8_t *)keys->data - 1 - below(7);
            return true;
        }
        break;
    case 4:
        if (keys->form == ECHOLESS_FORM_PACKETS) {
            keys->extra = wrong_handle(READER);
            return true;
        }
        if (keys->form == ECHOLESS_FORM_PACKED32 || keys->form == ECHOLESS_FORM_PACKED64) {
            keys->extra = one_in(2) ? NULL : (const uint8_t *)keys->extra - 1;
            return true;
        }
        break;
    default:
        if (count > 0 && keys->form == ECHOLESS_FORM_SLICES) {
            echoless_slice *slice = guarded(POINTERS, count * sizeof *slice);
            slice += below(count);
            if (one_in(2)) *slice = (echoless_slice){NULL, 1 + below(99)};
            else *slice = (echoless_slice){pointers, SIZE_MAX - below(99)};
            return true;
        }
        if (count > 0 && keys->form == ECHOLESS_FORM_PACKED64) {
            int64_t *offsets = guarded(POINTERS, (count + 1) * sizeof *offsets);
            offsets[below(count)] = one_in(2) ? -1 - (int64_t)below(99) : INT64_MAX;
            return true;
        }
        if (count > 0 && keys->form == ECHOLESS_FORM_PACKETS) {
            echoless_packet *packet = guarded(POINTERS, count * sizeof *packet);
            packet[below(count)].data = NULL;
            return true;
        }
    }
    return false;
}

static void make_call(struct call *call) {
    size_t count = any_count();
    call->wrong = false;
    fill_ids(call, count);
    struct entry *reader = any(READER);
    if (reader && one_in(4)) packets(call, count, reader);
    else if (one_in(3)) words(call, count);
    else texts(call, count);
    count = call->keys.count;
    if (one_in(4)) {
        uint64_t *ticks = guarded(TICKS, 8 * count);
        uint64_t late = draw(1);
        for (size_t i = 0; i < count; i++) ticks[i] = step + next(&late) % 50;
        call->keys = echoless_at(call->keys, ticks);
        if (one_in(8) && count > 0) {
            call->keys.ticks = (const uint64_t *)(const void *)((const char *)ticks - 3);
            call->wrong = true;
        }
    }
    if (one_in(4) && break_keys(call)) call->wrong = true;
}

/* ---- calls ---- */

typedef int judge(echoless_handle *handle, echoless_keys keys, uint64_t *duplicates,
                  uint64_t *count);

/* Observes or probes, with right arguments or wrong ones, and compares with the model. */
static void judge_with(judge *function, struct entry *entry, bool records) {
    struct call call;
    make_call(&call);
    void *handle = entry->handle;
    size_t words = (call.wrong ? MOST_KEYS : call.keys.count + 63) / 64, keys = call.keys.count;
    uint64_t *mask = guarded(MASK, 8 * words), duplicates = 99;
    memset(mask, 0xa5, 8 * words);
    uint64_t *into = mask;
    bool wrong = call.wrong;
    if (one_in(20)) handle = wrong_handle(entry->kind), wrong = true;
    if (one_in(20) && call.keys.count > 0)
        into = one_in(2) ? NULL : (void *)((char *)mask - 1 - below(7)), wrong = true;
    int status = function(handle, call.keys, into, one_in(3) ? NULL : &duplicates);
    if (wrong) {
        CHECK(status == ECHOLESS_STATUS_INVALID_ARGUMENT && duplicates == 99);
        return;
    }
    OK(status);
    uint64_t found = 0;
    for (size_t i = 0; i < words; i++) found += (uint64_t)__builtin_popcountll(mask[i]);
    CHECK(duplicates == 99 || duplicates == found);
    CHECK(keys % 64 == 0 || mask[words - 1] >> keys % 64 == 0);
    struct model *model = entry->model;
    for (size_t i = 0; i < keys; i++) {
        uint8_t *seen = &model->seen[call.space][call.ids[i]];
        CHECK(!model->exact || echoless_is_duplicate(mask, i) == *seen);
        if (records) *seen = 1;
    }
    if (records) model->observed += keys, model->fresh += keys - found;
}

static const char *any_spec(enum kind kind, bool *exact, bool *lines, bool *valid) {
    static const char *const specs[] = {
        "fingerprint:fpr=1e-9,memory=1MiB",
        "clocked:window=300,form=line,memory=64KiB",
        "stamped:window=300,memory=64KiB",
        "dense:replacement=fifo,memory=64KiB",
    };
    static const char *const wrong[] = {
        "", ":", "fingerprint", "fingerprint:memory=", "no such:memory=1MiB",
        "fingerprint:memory=-1",
        "dense:memory=16EiB", "fingerprint:fpr=2,memory=1MiB", "\xc3\x28",
        "clocked:window=0,memory=1MiB", "fingerprint:memory=1MiB,memory=1MiB",
        "fingerprint:fpr=1e-9,memory=256PiB",
    };
    *valid = !one_in(6);
    if (!*valid) return one_in(9) ? NULL : wrong[below(sizeof wrong / sizeof *wrong)];
    if (kind == SHARED) {
        *exact = *lines = false;
        return one_in(2) ? "row2x32:memory=256KiB" : "row4x16:memory=64KiB";
    }
    size_t index = below(kind == FILTER ? 4 : 2);
    *exact = index == 0, *lines = true;
    return specs[index];
}

static void add(enum kind kind, void *handle, struct model *model) {
    if (model) model->owners++;
    entries[count_entries++] = (struct entry){.kind = kind, .handle = handle, .model = model};
}

static struct model *new_model(void) {
    struct model *model = calloc(1, sizeof *model);
    CHECK(model);
    return model;
}

static const uint8_t SECRET[16] = "sixteen bytes..";

static void create(void) {
    if (count_entries == ENTRIES) {
        drop_entry(below(count_entries));
        return;
    }
    enum kind kind = below(KINDS);
    void *handle = NULL;
    bool exact = false, lines = false, valid = true, secret = one_in(4);
    echoless_hashing hashing = {0, secret ? SECRET : NULL};
    size_t partitions = (size_t[]){1, 2, 3, 0, SIZE_MAX, 1 << 20}[below(one_in(4) ? 6 : 3)];
    const char *spec = any_spec(kind, &exact, &lines, &valid);
    size_t most = kind == ORDERED || kind == ENGINE ? 3 : 1;
    if (partitions <= 3 && most == 1) partitions = 1;
    valid = valid && partitions >= 1 && partitions <= most;
    struct entry *owner = kind == THREAD ? any(ORDERED) : kind == PORT ? any(ENGINE) : NULL;
    if ((kind == THREAD || kind == PORT) && !owner) return;
    if (owner) valid = !one_in(6), lines = exact = false;
    void *of = owner && valid ? owner->handle : owner ? wrong_handle(owner->kind) : NULL;
    /* All have the same options: a model does not tell the keys of two readers apart. */
    echoless_packet_options options = {.link_type = 1};
    if (kind == READER && !(valid = !one_in(6))) options.snap_safe = 1;
    echoless_handle *made = NULL, **place = one_in(30) ? NULL : &made;
    static const echoless_kind kinds[KINDS] = {[FILTER] = ECHOLESS_KIND_FILTER,
                                               [SHARED] = ECHOLESS_KIND_SHARED,
                                               [ORDERED] = ECHOLESS_KIND_ORDERED,
                                               [ENGINE] = ECHOLESS_KIND_ENGINE};
    int status = kind == READER ? echoless_packet_keys(&options, place)
                 : owner        ? echoless_open(of, place)
                                : echoless_new(kinds[kind], spec, &hashing, partitions, place);
    if (!place) {
        /* Without a place for the handle nothing stays behind. */
        CHECK(status != ECHOLESS_OK);
        return;
    }
    if (kind == PORT && owner->model->shut_down && valid) {
        CHECK(status == ECHOLESS_STATUS_DISCONNECTED && !made);
        return;
    }
    handle = made;
    CHECK((status == ECHOLESS_OK) == valid && (handle != NULL) == valid);
    if (!valid) return;
    struct model *model = owner ? owner->model : kind == READER ? NULL : new_model();
    if (model && !owner) model->exact = exact, model->lines = lines, model->secret = secret;
    add(kind, handle, model);
}

static void report(struct entry *entry) {
    size_t known = sizeof(echoless_report);
    size_t size = one_in(2) ? known : below(2 * known);
    /* The struct begins where it is aligned, and canaries fill the rest of its last word. */
    size_t room = (size < 8 ? 8 : size + 7) / 8 * 8;
    uint8_t *bytes = guarded(REPORT, room);
    memset(bytes, 0x5a, room);
    echoless_report *into = (void *)bytes;
    into->size = size;
    void *handle = one_in(20) ? wrong_handle(entry->kind) : entry->handle;
    bool wrong = handle != entry->handle || size < sizeof(size_t);
    if (entry->kind == ORDERED && entry->model->holder) return;
    int status = echoless_read_report(handle, into);
    CHECK(status == (wrong ? ECHOLESS_STATUS_INVALID_ARGUMENT : ECHOLESS_OK));
    for (size_t i = wrong ? sizeof(size_t) : size < known ? size : known; i < room; i++)
        CHECK(bytes[i] == 0x5a);
    if (!wrong && size >= known) {
        CHECK(into->size == known);
        CHECK(into->observed == entry->model->observed || into->observed == ECHOLESS_UNKNOWN);
        CHECK(into->fresh == entry->model->fresh || into->fresh == ECHOLESS_UNKNOWN);
    }
}

static void forget(struct model *model) {
    memset(model->seen, 0, sizeof model->seen);
    model->observed = model->fresh = 0;
}

/* ---- states ---- */

struct memory {
    uint8_t *bytes;
    size_t length, capacity, position;
    /* The call at which the function fails; 0 is never. */
    uint64_t fails_at, calls;
    echoless_handle *filter;
};

static int append(void *context, const uint8_t *bytes, size_t length) {
    struct memory *memory = context;
    if (++memory->calls == memory->fails_at) return 7;
    /* The filter is in use: an error, and no deadlock. */
    if (memory->calls == 1)
        CHECK(echoless_clear(memory->filter) == ECHOLESS_STATUS_BUSY);
    if (memory->length + length > memory->capacity) {
        memory->capacity = 2 * (memory->length + length);
        memory->bytes = realloc(memory->bytes, memory->capacity);
        CHECK(memory->bytes);
    }
    memcpy(memory->bytes + memory->length, bytes, length);
    memory->length += length;
    return 0;
}

static int take(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    struct memory *memory = context;
    if (++memory->calls == memory->fails_at) return one_in(2) ? 7 : (*length = capacity + 1, 0);
    size_t rest = memory->length - memory->position;
    *length = rest < capacity ? rest : capacity;
    if (*length > 1 && one_in(4)) *length = 1 + below(*length);
    if (*length > 0) memcpy(bytes, memory->bytes + memory->position, *length);
    memory->position += *length;
    return 0;
}

static void parts(struct entry *entry) {
    uint64_t lines = 0;
    int status = echoless_lines(entry->handle, &lines);
    CHECK(status == (entry->model->lines ? ECHOLESS_OK : ECHOLESS_STATUS_UNSUPPORTED));
    if (status != ECHOLESS_OK) return;
    struct memory memory[2] = {{0}};
    uint64_t middle = below(lines / 64) * 64;
    size_t count = middle ? 2 : 1;
    bool fails = one_in(5);
    if (fails) memory[0].fails_at = 1;
    for (size_t part = 0; part < count; part++) {
        memory[part].filter = entry->handle;
        status = echoless_save(entry->handle,
                               echoless_to_lines(part ? middle : 0, part || count == 1 ? lines : middle, append, &memory[part]),
                               echoless_bytes("position", below(9)));
        CHECK(status == (part == 0 && fails ? ECHOLESS_STATUS_IO : ECHOLESS_OK));
        memory[part].fails_at = memory[part].calls = 0;
    }
    bool damaged = !fails && one_in(3), refused = !fails && !damaged && one_in(4);
    if (damaged) memory[0].bytes[below(memory[0].length)] ^= (uint8_t)(1 << below(8));
    if (refused) memory[0].fails_at = 1;
    void *contexts[2] = {&memory[0], &memory[1]};
    if (one_in(2)) contexts[0] = &memory[count - 1], contexts[count - 1] = &memory[0];
    uint8_t bytes[16];
    size_t length = 0;
    echoless_handle *loaded = NULL;
    echoless_hashing hashing = {0, entry->model->secret ? SECRET : NULL};
    status = echoless_load(ECHOLESS_KIND_FILTER, echoless_from_streams(take, contexts, count),
                           &hashing, 1, 1 << 20, echoless_into(bytes, sizeof bytes, &length),
                           &loaded);
    CHECK((status == ECHOLESS_OK) == (!fails && !damaged && !refused));
    CHECK((loaded != NULL) == (status == ECHOLESS_OK));
    if (loaded && count_entries < ENTRIES) {
        struct model *model = new_model();
        *model = *entry->model;
        model->owners = 0;
        add(FILTER, loaded, model);
    } else {
        OK(echoless_free(loaded));
    }
    free(memory[0].bytes);
    free(memory[1].bytes);
}

/* A file of this process alone. */
static const char *state_file(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/random-%ld.state", folder, (long)getpid());
    return path;
}

static void file(struct entry *entry) {
    const char *path = state_file();
    const char *into = one_in(6) ? NULL : path;
    int status = echoless_save(entry->handle, echoless_to_file(into), echoless_bytes(NULL, 0));
    if (!into) CHECK(status == ECHOLESS_STATUS_INVALID_ARGUMENT || status == ECHOLESS_STATUS_IO);
    else CHECK(status == (entry->model->lines ? ECHOLESS_OK : ECHOLESS_STATUS_UNSUPPORTED));
    if (status != ECHOLESS_OK) return;
    echoless_hashing hashing = {0, entry->model->secret ? SECRET : NULL}, other = {1, NULL};
    echoless_handle *loaded = NULL;
    CHECK(echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &other, 1, UINT64_MAX,
                        echoless_into(NULL, 0, NULL), &loaded) ==
          ECHOLESS_STATUS_STATE_MISMATCH);
    OK(echoless_load(ECHOLESS_KIND_FILTER, echoless_from_file(path), &hashing, 1, UINT64_MAX,
                     echoless_into(NULL, 0, NULL), &loaded));
    OK(echoless_free(loaded));
    unlink(path);
}

/* ---- the kinds ---- */

static void call_filter(struct entry *entry) {
    switch (below(12)) {
    case 0: report(entry); break;
    case 1:
        if (one_in(4)) {
            OK(echoless_clear(entry->handle));
            forget(entry->model);
        }
        break;
    case 2: OK(echoless_advance(entry->handle, one_in(9) ? draw(8) >> 8 : step)); break;
    case 3: {
        char text[200];
        size_t length = 0, capacity = below(sizeof text);
        int status = echoless_spec(entry->handle,
                                   echoless_into(guarded(REPORT, capacity), capacity, &length));
        CHECK(length > 5 && (status == ECHOLESS_OK) == (length < capacity));
        break;
    }
    case 4: if (one_in(3)) parts(entry); break;
    case 5: if (one_in(3)) file(entry); break;
    case 6: {
        struct call call;
        make_call(&call);
        if (call.wrong) break;
        uint64_t *hashes = guarded(HASHES, 8 * call.keys.count);
        OK(echoless_hash(entry->handle, call.keys, hashes));
        for (size_t i = 1; i < call.keys.count; i++)
            CHECK((hashes[i] == hashes[0]) == (call.ids[i] == call.ids[0]));
        break;
    }
    case 7:
    case 8: judge_with(echoless_contains, entry, false); break;
    default: judge_with(echoless_observe, entry, true);
    }
}

static void call_shared(struct entry *entry) {
    if (one_in(8)) report(entry);
    else if (one_in(20)) {
        OK(echoless_clear(entry->handle));
        forget(entry->model);
    } else if (one_in(3)) judge_with(echoless_contains, entry, false);
    else judge_with(echoless_observe, entry, true);
}

static void call_ordered(struct entry *entry) {
    if (one_in(2)) {
        report(entry);
    } else if (!entry->model->holder && entry->model->lines && one_in(4)) {
        const char *path = state_file();
        OK(echoless_save_at(entry->handle, echoless_to_file(path),
                            (echoless_cut){NULL, NULL, NULL}));
        unlink(path);
    }
}

static void call_thread(struct entry *entry) {
    void **holder = &entry->model->holder;
    if (one_in(4) && !*holder) {
        OK(echoless_take(entry->handle));
        *holder = entry->handle;
    } else if (one_in(6)) {
        OK(echoless_leave(entry->handle));
        if (*holder == entry->handle) *holder = NULL;
    } else if (!*holder || *holder == entry->handle) {
        /* Only this thread has a ticket, or takes one to wait for, so it is its turn. */
        if (one_in(8)) {
            OK(echoless_wait(entry->handle, below(3)));
            *holder = entry->handle;
        }
        uint64_t before = entry->model->observed;
        judge_with(echoless_observe, entry, true);
        /* After a wrong argument the ticket is still there. */
        if (entry->model->observed != before) *holder = NULL;
        else if (*holder) {
            OK(echoless_leave(entry->handle));
            *holder = NULL;
        }
    }
}

static void call_port(struct entry *entry) {
    struct model *model = entry->model;
    if (entry->in_flight < 8 && one_in(2)) {
        struct call call;
        make_call(&call);
        if (call.keys.count == 0) return;
        int status = echoless_submit(entry->handle, call.keys);
        if (call.wrong) {
            CHECK(status == ECHOLESS_STATUS_INVALID_ARGUMENT);
        } else if (model->shut_down || (model->freed && status != ECHOLESS_OK)) {
            CHECK(status == ECHOLESS_STATUS_DISCONNECTED);
        } else {
            OK(status);
            entry->keys[entry->in_flight++] = call.keys.count;
            model->observed += call.keys.count;
            for (size_t i = 0; i < call.keys.count; i++) {
                uint8_t *seen = &model->seen[call.space][call.ids[i]];
                model->fresh += !*seen;
                *seen = 1;
            }
        }
        return;
    }
    if (one_in(8)) {
        int status = echoless_wait(entry->handle, below(2));
        CHECK(status == ECHOLESS_OK || status == ECHOLESS_STATUS_TIMED_OUT ||
              (status == ECHOLESS_STATUS_DISCONNECTED && (model->freed || model->shut_down)));
    }
    size_t keys = 99, expected = entry->in_flight ? entry->keys[0] : 0;
    size_t words = (expected + 63) / 64;
    uint64_t *mask = guarded(MASK, 8 * words), count = 0;
    if (expected && !model->freed && one_in(4))
        CHECK(echoless_drain(entry->handle, echoless_into(mask, 8 * below(words), NULL), &keys,
                             &count) ==
              ECHOLESS_STATUS_INVALID_ARGUMENT);
    int status = echoless_drain(entry->handle, echoless_into(mask, 8 * words, NULL), &keys,
                                &count);
    if (status == ECHOLESS_STATUS_DISCONNECTED) {
        CHECK(model->freed || (model->shut_down && !expected));
        return;
    }
    OK(status);
    CHECK(keys == expected);
    uint64_t found = 0;
    for (size_t i = 0; i < words; i++) found += (uint64_t)__builtin_popcountll(mask[i]);
    CHECK(found == count);
    if (expected) {
        memmove(entry->keys, entry->keys + 1, sizeof entry->keys - sizeof *entry->keys);
        entry->in_flight--;
    }
}

static void call_engine(struct entry *entry) {
    if (!one_in(10)) return;
    echoless_report report = {.size = sizeof report};
    int status = echoless_shutdown(entry->handle, one_in(3) ? NULL : &report);
    CHECK(status == (entry->model->shut_down ? ECHOLESS_STATUS_DISCONNECTED : ECHOLESS_OK));
    if (!entry->model->shut_down && entry->model->exact && report.memory_bytes)
        CHECK(report.observed == entry->model->observed && report.fresh == entry->model->fresh);
    entry->model->shut_down = true;
}

static void wrong_frees(void) {
    void *handle = no_handle();
    CHECK(echoless_free(handle) == (handle ? ECHOLESS_STATUS_INVALID_ARGUMENT : ECHOLESS_OK));
}

static void one_step(void) {
    if (count_entries < 3 || one_in(8)) {
        create();
        return;
    }
    if (one_in(30)) wrong_frees();
    if (one_in(25)) {
        drop_entry(below(count_entries));
        return;
    }
    struct entry *entry = &entries[below(count_entries)];
    switch (entry->kind) {
    case FILTER: call_filter(entry); break;
    case SHARED: call_shared(entry); break;
    case ORDERED: call_ordered(entry); break;
    case THREAD: call_thread(entry); break;
    case ENGINE: call_engine(entry); break;
    case PORT: call_port(entry); break;
    default: break;
    }
}

/* ---- handles that threads free while others use them ---- */

#define STORM_HANDLES 6

static void *storm_filters[STORM_HANDLES], *storm_shared[STORM_HANDLES];
static void *storm_ports[STORM_HANDLES];
static echoless_handle *storm_engine;

static void *swap_handle(void **place, void *with) {
    return __atomic_exchange_n(place, with, __ATOMIC_ACQ_REL);
}

static void *storm(void *context) {
    uint64_t random = (uint64_t)(uintptr_t)context, ids[100], mask[2], count;
    size_t keys;
    for (int i = 0; i < 2000; i++) {
        size_t place = next(&random) % STORM_HANDLES;
        for (int key = 0; key < 100; key++) ids[key] = next(&random) % 1000;
        void *filter = __atomic_load_n(&storm_filters[place], __ATOMIC_ACQUIRE);
        void *shared = __atomic_load_n(&storm_shared[place], __ATOMIC_ACQUIRE);
        void *port = __atomic_load_n(&storm_ports[place], __ATOMIC_ACQUIRE);
        echoless_handle *made = NULL;
        echoless_keys numbers = echoless_numbers(ids, 100);
        int status = ECHOLESS_OK;
        switch (next(&random) % 10) {
        case 0:
            OK(echoless_new(ECHOLESS_KIND_FILTER, "fingerprint:fpr=1e-6,memory=4KiB", NULL, 1,
                            &made));
            OK(echoless_free(swap_handle(&storm_filters[place], made)));
            break;
        case 1:
            OK(echoless_new(ECHOLESS_KIND_SHARED, "row4x16:memory=4KiB", NULL, 1, &made));
            OK(echoless_free(swap_handle(&storm_shared[place], made)));
            break;
        case 2:
            OK(echoless_open(storm_engine, &made));
            OK(echoless_free(swap_handle(&storm_ports[place], made)));
            break;
        case 3:
        case 4: status = echoless_observe(filter, numbers, mask, &count); break;
        case 5:
        case 6: status = echoless_observe(shared, numbers, mask, &count); break;
        case 7: status = echoless_submit(port, numbers); break;
        case 8:
            status = echoless_drain(port, echoless_into(mask, sizeof mask, NULL), &keys, &count);
            break;
        default: {
            echoless_report report = {.size = sizeof report};
            status = echoless_read_report(filter, &report);
        }
        }
        /* Freed by another thread meanwhile, or in use by it. */
        CHECK(status == ECHOLESS_OK || status == ECHOLESS_STATUS_INVALID_ARGUMENT ||
              status == ECHOLESS_STATUS_BUSY);
    }
    return NULL;
}

static void storms(void) {
    pthread_t threads[4];
    OK(echoless_new(ECHOLESS_KIND_ENGINE, "fingerprint:fpr=1e-6,memory=64KiB", NULL, 2,
                    &storm_engine));
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, storm, (void *)(seed * 4 + i)) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < STORM_HANDLES; i++) {
        OK(echoless_free(storm_filters[i]));
        OK(echoless_free(storm_shared[i]));
        OK(echoless_free(storm_ports[i]));
    }
    OK(echoless_free(storm_engine));
}

static void drop_all(void) {
    while (count_entries > 0) drop_entry(count_entries - 1);
}

void calls_from_bytes(const char *temporary, const uint8_t *bytes, size_t length);

void calls_from_bytes(const char *temporary, const uint8_t *bytes, size_t length) {
    folder = temporary, input = bytes, input_left = length;
    /* The calls of an input do not depend on those before it. */
    count_stale = 0;
    for (step = 0; input_left > 0; step++) one_step();
    drop_all();
}

int main(int count, char **arguments) {
    folder = count > 1 ? arguments[1] : ".";
    seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    uint64_t steps = count > 3 ? strtoull(arguments[3], NULL, 10) : 5000;
    state = seed;
    for (step = 0; step < steps; step++) one_step();
    drop_all();
    storms();
    puts("ok");
    return 0;
}
