/* Generated: tools/capi/include/echoless.h without its documentation; do not edit. */
#ifndef ECHOLESS_H
#define ECHOLESS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define ECHOLESS_VERSION "0.2.0"
#define ECHOLESS_VERSION_MAJOR 0
#define ECHOLESS_VERSION_MINOR 2
#define ECHOLESS_VERSION_PATCH 0
#define ECHOLESS_OK 0
#define ECHOLESS_UNKNOWN UINT64_MAX
typedef enum {
    ECHOLESS_KIND_FILTER = 1,
    ECHOLESS_KIND_SHARED = 2,
    ECHOLESS_KIND_ORDERED = 3,
    ECHOLESS_KIND_ENGINE = 4,
    ECHOLESS_KIND_EXACT = 5,
} echoless_kind;
typedef enum {
    ECHOLESS_STATUS_INVALID_ARGUMENT = 1,
    ECHOLESS_STATUS_INVALID_SPEC = 2,
    ECHOLESS_STATUS_OUT_OF_MEMORY = 3,
    ECHOLESS_STATUS_IO = 4,
    ECHOLESS_STATUS_INVALID_STATE = 5,
    ECHOLESS_STATUS_STATE_MISMATCH = 6,
    ECHOLESS_STATUS_THREAD = 7,
    ECHOLESS_STATUS_PARTITION_LOST = 8,
    ECHOLESS_STATUS_DISCONNECTED = 9,
    ECHOLESS_STATUS_IN_FLIGHT = 10,
    ECHOLESS_STATUS_FORKED = 11,
    ECHOLESS_STATUS_TIMED_OUT = 12,
    ECHOLESS_STATUS_BUSY = 13,
    ECHOLESS_STATUS_UNSUPPORTED = 14,
    ECHOLESS_STATUS_PANICKED = 15,
} echoless_status;
typedef enum {
    ECHOLESS_FORM_HASHES = 1,
    ECHOLESS_FORM_NUMBERS = 2,
    ECHOLESS_FORM_FIXED = 3,
    ECHOLESS_FORM_SLICES = 4,
    ECHOLESS_FORM_PACKED32 = 5,
    ECHOLESS_FORM_PACKED64 = 6,
    ECHOLESS_FORM_PACKETS = 7,
} echoless_form;
typedef struct echoless_handle echoless_handle;
typedef struct {
    size_t size;
    uint64_t memory_bytes;
    uint64_t observed;
    uint64_t fresh;
    uint64_t evictions;
    uint64_t expired;
    double fill;
    double expected_fpr;
    double most_fpr;
    double expected_false_duplicates;
    double miss_age;
    uint64_t window_ticks;
} echoless_report;
typedef struct {
    uint64_t seed;
    const uint8_t *secret;
} echoless_hashing;
typedef struct {
    uint32_t form;
    size_t width;
    size_t stride;
    size_t count;
    const void *data;
    const void *extra;
    const uint64_t *ticks;
} echoless_keys;
typedef struct {
    const uint8_t *data;
    size_t length;
} echoless_slice;
typedef struct {
    void *data;
    size_t capacity;
    size_t *length;
} echoless_room;
typedef struct {
    const uint8_t *data;
    uint32_t captured;
    uint32_t length;
} echoless_packet;
typedef struct {
    uint16_t link_type;
    const char *from;
    const char *ignore;
    const char *group;
    uint32_t payload_bytes;
    uint32_t snap_safe;
    uint32_t skip_bytes;
} echoless_packet_options;
typedef int (*echoless_write)(void *context, const uint8_t *bytes, size_t length);
typedef struct {
    const char *path;
    echoless_write write;
    void *context;
    uint64_t first;
    uint64_t end;
} echoless_target;
typedef int (*echoless_read)(void *context, uint8_t *bytes, size_t capacity, size_t *length);
typedef struct {
    const char *path;
    echoless_read read;
    void *const *contexts;
    size_t count;
} echoless_source;
typedef void (*echoless_before)(void *context);
typedef struct {
    echoless_before before;
    echoless_read position;
    void *context;
} echoless_cut;
#ifdef __cplusplus
extern "C" {
#endif
const char *echoless_last_error(void);
const char *echoless_version(void);
int echoless_new(uint32_t kind, const char *spec, const echoless_hashing *hashing,
                 size_t partitions, echoless_handle **out);
int echoless_load(uint32_t kind, echoless_source from, const echoless_hashing *hashing,
                  size_t partitions, uint64_t memory_limit, echoless_room bytes,
                  echoless_handle **out);
int echoless_packet_keys(const echoless_packet_options *options, echoless_handle **out);
int echoless_free(echoless_handle *handle);
int echoless_advance(echoless_handle *handle, uint64_t tick);
int echoless_clear(echoless_handle *handle);
int echoless_memory_bytes(echoless_handle *handle, uint64_t *bytes);
int echoless_lines(echoless_handle *handle, uint64_t *lines);
int echoless_take(echoless_handle *handle);
int echoless_leave(echoless_handle *handle);
int echoless_wait(echoless_handle *handle, uint64_t milliseconds);
int echoless_open(echoless_handle *handle, echoless_handle **out);
int echoless_observe(echoless_handle *handle, echoless_keys keys, uint64_t *duplicates,
                     uint64_t *count);
int echoless_contains(echoless_handle *handle, echoless_keys keys, uint64_t *duplicates,
                      uint64_t *count);
int echoless_hash(echoless_handle *handle, echoless_keys keys, uint64_t *hashes);
int echoless_submit(echoless_handle *handle, echoless_keys keys);
int echoless_drain(echoless_handle *handle, echoless_room duplicates, size_t *keys,
                   uint64_t *count);
int echoless_read_report(echoless_handle *handle, echoless_report *report);
int echoless_spec(echoless_handle *handle, echoless_room text);
int echoless_save(echoless_handle *handle, echoless_target to, echoless_slice bytes);
int echoless_save_at(echoless_handle *handle, echoless_target to, echoless_cut cut);
int echoless_shutdown(echoless_handle *handle, echoless_report *report);
#ifdef __cplusplus
}
#endif
static inline echoless_keys echoless_hashes(const uint64_t *hashes, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_HASHES, 0, 0, count, hashes, NULL, NULL};
    return keys;
}
static inline echoless_keys echoless_numbers(const uint64_t *numbers, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_NUMBERS, 0, 0, count, numbers, NULL, NULL};
    return keys;
}
static inline echoless_keys echoless_fixed(const void *bytes, size_t width, size_t stride,
                                           size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_FIXED, width, stride, count, bytes, NULL, NULL};
    return keys;
}
static inline echoless_keys echoless_slices(const echoless_slice *slices, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_SLICES, 0, 0, count, slices, NULL, NULL};
    return keys;
}
static inline echoless_slice echoless_text(const char *text) {
    echoless_slice slice = {(const uint8_t *)text, strlen(text)};
    return slice;
}
static inline echoless_keys echoless_packed(const void *bytes, const int64_t *offsets,
                                            size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED64, 0, 0, count, bytes, offsets, NULL};
    return keys;
}
static inline echoless_keys echoless_packed32(const void *bytes, const int32_t *offsets,
                                              size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED32, 0, 0, count, bytes, offsets, NULL};
    return keys;
}
static inline echoless_keys echoless_packets(const echoless_packet *packets, size_t count,
                                             const echoless_handle *reader) {
    echoless_keys keys = {ECHOLESS_FORM_PACKETS, 0, 0, count, packets, reader, NULL};
    return keys;
}
static inline echoless_keys echoless_at(echoless_keys keys, const uint64_t *ticks) {
    keys.ticks = ticks;
    return keys;
}
static inline echoless_slice echoless_bytes(const void *data, size_t length) {
    echoless_slice slice = {(const uint8_t *)data, length};
    return slice;
}
static inline echoless_room echoless_into(void *data, size_t capacity, size_t *length) {
    echoless_room room = {data, capacity, length};
    return room;
}
static inline echoless_target echoless_to_file(const char *path) {
    echoless_target target = {path, NULL, NULL, 0, UINT64_MAX};
    return target;
}
static inline echoless_target echoless_to_lines(uint64_t first, uint64_t end, echoless_write write,
                                                void *context) {
    echoless_target target = {NULL, write, context, first, end};
    return target;
}
static inline echoless_target echoless_to_stream(echoless_write write, void *context) {
    return echoless_to_lines(0, UINT64_MAX, write, context);
}
static inline echoless_source echoless_from_file(const char *path) {
    echoless_source source = {path, NULL, NULL, 0};
    return source;
}
static inline echoless_source echoless_from_streams(echoless_read read, void *const *contexts,
                                                    size_t count) {
    echoless_source source = {NULL, read, contexts, count};
    return source;
}
static inline int echoless_is_duplicate(const uint64_t *duplicates, size_t index) {
    return (int)(duplicates[index / 64] >> (index % 64) & 1);
}
#endif /* ECHOLESS_H */
