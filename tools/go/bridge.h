/* What Go calls: each function returns the status and the text of the error together, since the
 * text belongs to the thread of the call, and a goroutine may be on another one afterwards. Handles
 * are numbers here: in a Go pointer, the garbage collector would follow them. There is a function
 * for each shape of calls in echoless.h, which takes the call itself. */
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
    /* A new handle, or a number. */
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

#define GO_HANDLE(number) ((echoless_handle *)(number))

/* seed and secret as two arguments: a struct with a Go pointer may not be passed by pointer. */
static inline go_result go_new(uint32_t kind, const char *spec, uint64_t seed,
                               const uint8_t *secret, size_t partitions) {
    echoless_hashing hashing = {seed, secret};
    echoless_handle *handle = NULL;
    int status = echoless_new(kind, spec, &hashing, partitions, &handle);
    return go_finish(status, (uintptr_t)handle);
}

static inline go_result go_packet_keys(echoless_packet_options options) {
    echoless_handle *handle = NULL;
    int status = echoless_packet_keys(&options, &handle);
    return go_finish(status, (uintptr_t)handle);
}

static inline go_result go_open(uintptr_t handle) {
    echoless_handle *opened = NULL;
    int status = echoless_open(GO_HANDLE(handle), &opened);
    return go_finish(status, (uintptr_t)opened);
}

static inline void go_free(uintptr_t handle) { echoless_free(GO_HANDLE(handle)); }

/* Calls with no number, with one to set, and with one to get. */
typedef int (*go_command)(echoless_handle *);
typedef int (*go_setter)(echoless_handle *, uint64_t);
typedef int (*go_getter)(echoless_handle *, uint64_t *);

static inline go_result go_run(go_command call, uintptr_t handle) {
    return go_finish(call(GO_HANDLE(handle)), 0);
}

static inline go_result go_set(go_setter call, uintptr_t handle, uint64_t value) {
    return go_finish(call(GO_HANDLE(handle), value), 0);
}

static inline go_result go_get(go_getter call, uintptr_t handle) {
    uint64_t value = 0;
    int status = call(GO_HANDLE(handle), &value);
    return go_finish(status, value);
}

/* Calls that take keys: one that judges them, or NULL to hash them. The keys are flat arguments,
 * since a struct of Go pointers may not be passed by pointer. The offsets have 64 bits unless the
 * form says 32. out has one bit for each key, or one hash. */
typedef int (*go_judgement)(echoless_handle *, echoless_keys, uint64_t *, uint64_t *);

static inline go_result go_judge(go_judgement call, uintptr_t handle, uint32_t form, size_t width,
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
        keys.extra = GO_HANDLE(packet_keys);
    }
    uint64_t found = 0;
    int status = call ? call(GO_HANDLE(handle), keys, out, &found)
                      : echoless_hash(GO_HANDLE(handle), keys, out);
    return go_finish(status, found);
}

static inline go_result go_report(uintptr_t handle, echoless_report *report) {
    return go_finish(echoless_read_report(GO_HANDLE(handle), report), 0);
}

/* The specification, as bytes. */
static inline go_result go_spec(uintptr_t handle) {
    size_t length = 0;
    /* Fails for want of room, but has the length, unless the handle is wrong. */
    int status = echoless_spec(GO_HANDLE(handle), echoless_into(NULL, 0, &length));
    if (length == 0) return go_finish(status, 0);
    char *text = malloc(length + 1);
    status = echoless_spec(GO_HANDLE(handle), echoless_into(text, length + 1, NULL));
    go_result result = go_finish(status, 0);
    result.bytes = (uint8_t *)text;
    result.length = length;
    return result;
}

/* Defined in callbacks.go. The context is the number of a cgo.Handle. */
extern int echolessGoWrite(uintptr_t context, uint8_t *bytes, size_t length);
extern int echolessGoRead(uintptr_t context, uint8_t *bytes, size_t capacity, size_t *length);
extern void echolessGoBefore(uintptr_t context);

static inline int go_write(void *context, const uint8_t *bytes, size_t length) {
    return echolessGoWrite((uintptr_t)context, (uint8_t *)bytes, length);
}

static inline int go_read(void *context, uint8_t *bytes, size_t capacity, size_t *length) {
    return echolessGoRead((uintptr_t)context, bytes, capacity, length);
}

static inline void go_before(void *context) { echolessGoBefore((uintptr_t)context); }

static inline go_result go_save_file(uintptr_t handle, const char *path, const uint8_t *bytes,
                                     size_t length) {
    return go_finish(echoless_save(GO_HANDLE(handle), echoless_to_file(path),
                                   echoless_bytes(bytes, length)),
                     0);
}

static inline go_result go_save_lines(uintptr_t handle, uint64_t first, uint64_t end,
                                      const uint8_t *bytes, size_t length, uintptr_t context) {
    echoless_target to = echoless_to_lines(first, end, go_write, (void *)context);
    return go_finish(echoless_save(GO_HANDLE(handle), to, echoless_bytes(bytes, length)), 0);
}

static inline go_result go_save_at(uintptr_t handle, const char *path, uintptr_t context) {
    echoless_cut cut = {go_before, go_read, (void *)context};
    return go_finish(echoless_save_at(GO_HANDLE(handle), echoless_to_file(path), cut), 0);
}

/* The bytes that a state can hold. Their length is known once the state was read, so this much is
 * allocated; the system gives no memory for what is not written. */
#define GO_MOST_POSITION ((size_t)64 << 20)

/* From streams, or from what has this path unless it is NULL. */
static inline go_result go_load(uint32_t kind, const char *path, const uintptr_t *contexts,
                                size_t count, uint64_t seed, const uint8_t *secret, size_t partitions,
                                uint64_t memory_limit) {
    echoless_hashing hashing = {seed, secret};
    echoless_handle *handle = NULL;
    uint8_t *bytes = malloc(GO_MOST_POSITION);
    size_t length = 0;
    /* A number as wide as a pointer. */
    echoless_source from = path ? echoless_from_file(path)
                                : echoless_from_streams(go_read, (void *const *)contexts, count);
    echoless_room room = echoless_into(bytes, bytes ? GO_MOST_POSITION : 0, &length);
    int status = echoless_load(kind, from, &hashing, partitions, memory_limit, room, &handle);
    go_result result = go_finish(status, (uintptr_t)handle);
    result.bytes = bytes;
    result.length = length;
    return result;
}

#endif
