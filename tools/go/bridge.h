/* What Go calls: each function returns the status and the text of the error together, since the
 * text belongs to the thread of the call, and a goroutine may be on another one afterwards. Handles
 * are numbers here: in a Go pointer, the garbage collector would follow them. */
#ifndef ECHOLESS_GO_BRIDGE_H
#define ECHOLESS_GO_BRIDGE_H

#include "echoless.h"
#include <stdlib.h>
#include <string.h>

/* The most keys of one call with packed keys; a multiple of 64. */
#define GO_BLOCK_KEYS 2048

typedef struct {
    int status;
    /* Of malloc, for Go to free; NULL after a success. */
    char *error;
    /* A new handle, or a count. */
    uint64_t value;
    /* Of malloc, for Go to free. */
    uint8_t *bytes;
    size_t length;
} go_result;

static inline go_result go_finish(int status, uint64_t value) {
    go_result result = {status, NULL, value, NULL, 0};
    if (status != ECHOLESS_OK) result.error = strdup(echoless_last_error());
    return result;
}

/* seed and secret as two arguments: a struct with a Go pointer may not be passed by pointer. */
static inline echoless_hashing go_hashing(uint64_t seed, const uint8_t *secret) {
    echoless_hashing hashing = {seed, secret};
    return hashing;
}

static inline go_result go_filter_new(const char *spec, uint64_t seed, const uint8_t *secret) {
    echoless_hashing hashing = go_hashing(seed, secret);
    echoless_filter *filter = NULL;
    int status = echoless_filter_new(spec, &hashing, &filter);
    return go_finish(status, (uintptr_t)filter);
}

static inline go_result go_shared_new(const char *spec, uint64_t seed, const uint8_t *secret) {
    echoless_hashing hashing = go_hashing(seed, secret);
    echoless_shared *shared = NULL;
    int status = echoless_shared_new(spec, &hashing, &shared);
    return go_finish(status, (uintptr_t)shared);
}

static inline go_result go_packet_keys_new(echoless_packet_options options) {
    echoless_packet_keys *keys = NULL;
    int status = echoless_packet_keys_new(&options, &keys);
    return go_finish(status, (uintptr_t)keys);
}

static inline void go_filter_free(uintptr_t handle) {
    echoless_filter_free((echoless_filter *)handle);
}

static inline void go_shared_free(uintptr_t handle) {
    echoless_shared_free((echoless_shared *)handle);
}

static inline void go_packet_keys_free(uintptr_t handle) {
    echoless_packet_keys_free((echoless_packet_keys *)handle);
}

enum {
    GO_FILTER_OBSERVE,
    GO_FILTER_CONTAINS,
    GO_FILTER_HASH,
    GO_SHARED_OBSERVE,
    GO_SHARED_CONTAINS,
};

/* Calls that take keys. The keys are flat arguments, since a struct of Go pointers may not be passed
 * by pointer. The offsets have 64 bits unless the form says 32. out has one bit for each key, or one
 * number for GO_FILTER_HASH. */
static inline go_result go_judge(int operation, uintptr_t handle, uint32_t form, size_t width,
                                 size_t count, const uint8_t *data, const int32_t *offsets,
                                 const uint32_t *lengths, uintptr_t packet_keys,
                                 const uint64_t *ticks, uint64_t *out) {
    echoless_keys keys = {form, width, width, count, data, offsets, ticks};
    echoless_packet packets[GO_BLOCK_KEYS];
    if (form == ECHOLESS_FORM_PACKETS) {
        const int64_t *ends = (const void *)offsets;
        for (size_t i = 0; i < count; i++) {
            packets[i].data = data + ends[i];
            packets[i].captured = (uint32_t)(ends[i + 1] - ends[i]);
            packets[i].length = lengths[i];
        }
        keys.data = packets;
        keys.extra = (const void *)packet_keys;
    }
    echoless_filter *filter = (echoless_filter *)handle;
    echoless_shared *shared = (echoless_shared *)handle;
    uint64_t found = 0;
    int status = ECHOLESS_OK;
    switch (operation) {
    case GO_FILTER_OBSERVE: status = echoless_filter_observe(filter, keys, out, &found); break;
    case GO_FILTER_CONTAINS: status = echoless_filter_contains(filter, keys, out, &found); break;
    case GO_FILTER_HASH: status = echoless_filter_hash(filter, keys, out); break;
    case GO_SHARED_OBSERVE: status = echoless_shared_observe(shared, keys, out, &found); break;
    case GO_SHARED_CONTAINS: status = echoless_shared_contains(shared, keys, out, &found); break;
    }
    return go_finish(status, found);
}

static inline go_result go_filter_report(uintptr_t handle, echoless_report *report) {
    return go_finish(echoless_filter_report((echoless_filter *)handle, report), 0);
}

static inline go_result go_shared_report(uintptr_t handle, echoless_report *report) {
    return go_finish(echoless_shared_report((echoless_shared *)handle, report), 0);
}

static inline go_result go_filter_clear(uintptr_t handle) {
    return go_finish(echoless_filter_clear((echoless_filter *)handle), 0);
}

static inline go_result go_shared_clear(uintptr_t handle) {
    return go_finish(echoless_shared_clear((echoless_shared *)handle), 0);
}

static inline go_result go_filter_advance(uintptr_t handle, uint64_t tick) {
    return go_finish(echoless_filter_advance((echoless_filter *)handle, tick), 0);
}

static inline go_result go_filter_lines(uintptr_t handle) {
    uint64_t lines = 0;
    int status = echoless_filter_lines((echoless_filter *)handle, &lines);
    return go_finish(status, lines);
}

/* The specification, as bytes. */
static inline go_result go_filter_spec(uintptr_t handle) {
    echoless_filter *filter = (echoless_filter *)handle;
    char none;
    size_t length = 0;
    /* Fails for want of room, but has the length, unless the handle is wrong. */
    int status = echoless_filter_spec(filter, &none, 0, &length);
    if (length == 0) return go_finish(status, 0);
    char *text = malloc(length + 1);
    status = echoless_filter_spec(filter, text, length + 1, NULL);
    go_result result = go_finish(status, 0);
    result.bytes = (uint8_t *)text;
    result.length = length;
    return result;
}

static inline go_result go_filter_save_file(uintptr_t handle, const char *path,
                                            const uint8_t *bytes, size_t length) {
    return go_finish(
        echoless_filter_save_file((echoless_filter *)handle, path, bytes, length), 0);
}

/* Defined in callbacks.go. The context is the number of a cgo.Handle. */
extern int echolessGoWrite(uintptr_t context, uint8_t *bytes, size_t length);
extern int echolessGoRead(uintptr_t context, uint8_t *bytes, size_t capacity, size_t *length);

static inline int go_write(void *context, const uint8_t *bytes, size_t length) {
    return echolessGoWrite((uintptr_t)context, (uint8_t *)bytes, length);
}

static inline int go_read(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    return echolessGoRead((uintptr_t)context, bytes, capacity, length);
}

static inline go_result go_filter_save_part(uintptr_t handle, uint64_t first, uint64_t end,
                                            const uint8_t *bytes, size_t length,
                                            uintptr_t context) {
    return go_finish(echoless_filter_save_part((echoless_filter *)handle, first, end, bytes, length,
                                               go_write, (void *)context),
                     0);
}

/* The bytes that a state can hold. Their length is known once the state was read, so this much is
 * allocated; the system gives no memory for what is not written. */
#define GO_MOST_POSITION ((size_t)64 << 20)

static inline go_result go_filter_load(const uintptr_t *contexts, size_t count, uint64_t seed,
                                       const uint8_t *secret, uint64_t memory_limit) {
    echoless_hashing hashing = go_hashing(seed, secret);
    echoless_filter *filter = NULL;
    uint8_t *bytes = malloc(GO_MOST_POSITION);
    size_t length = 0;
    /* A number as wide as a pointer. */
    int status = echoless_filter_load_parts(go_read, (void *const *)contexts, count, &hashing,
                                            memory_limit, bytes, bytes ? GO_MOST_POSITION : 0,
                                            &length, &filter);
    go_result result = go_finish(status, (uintptr_t)filter);
    result.bytes = bytes;
    result.length = length;
    return result;
}

static inline go_result go_shared_save_file(uintptr_t handle, const char *path,
                                            const uint8_t *bytes, size_t length) {
    return go_finish(
        echoless_shared_save_file((echoless_shared *)handle, path, bytes, length), 0);
}

static inline go_result go_shared_load_file(const char *path, uint64_t seed, const uint8_t *secret,
                                            uint64_t memory_limit) {
    echoless_hashing hashing = go_hashing(seed, secret);
    echoless_shared *shared = NULL;
    uint8_t *bytes = malloc(GO_MOST_POSITION);
    size_t length = 0;
    int status = echoless_shared_load_file(path, &hashing, memory_limit, bytes,
                                           bytes ? GO_MOST_POSITION : 0, &length, &shared);
    go_result result = go_finish(status, (uintptr_t)shared);
    result.bytes = bytes;
    result.length = length;
    return result;
}

#endif
