/* echoless: duplicate detection on endless streams, in fixed memory.
 *
 * Every function returns 0 or an echoless_status, and echoless_last_error() has the text. Handles
 * are freed with the _free function of their kind; one that was freed, or is of another kind, is an
 * error in every call. Pointers to keys, masks and texts are trusted: each function says how much
 * it reads and writes there, and the one must be apart from the other. Before 1.0 the interface may change with every version; the name of
 * the shared library has the whole version. */


#ifndef ECHOLESS_H
#define ECHOLESS_H

/* Generated from the source of echoless-capi; do not edit. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ECHOLESS_VERSION "0.1.0"
#define ECHOLESS_VERSION_MAJOR 0
#define ECHOLESS_VERSION_MINOR 1
#define ECHOLESS_VERSION_PATCH 0

/* Success. */
#define ECHOLESS_OK 0

/* A count that the filter does not keep. An unknown rate or age is NaN. */
#define ECHOLESS_UNKNOWN UINT64_MAX


// How the keys of a call lie in memory.
typedef enum {
    // `const uint64_t *`: hashes that are uniform in all 64 bits. Ids and counters are not: they
    // are numbers.
    ECHOLESS_FORM_HASHES = 1,
    // `const uint64_t *`: numbers, such as ids.
    ECHOLESS_FORM_NUMBERS = 2,
    // `width` bytes each, `stride` bytes after the one before.
    ECHOLESS_FORM_FIXED = 3,
    // `const echoless_slice *`.
    ECHOLESS_FORM_SLICES = 4,
    // Bytes behind each other, and `const int32_t *` offsets in `extra`, one more than keys.
    ECHOLESS_FORM_PACKED32 = 5,
    // As packed32, with `const int64_t *` offsets.
    ECHOLESS_FORM_PACKED64 = 6,
    // `const echoless_packet *`, and the `echoless_packet_keys *` in `extra`.
    ECHOLESS_FORM_PACKETS = 7,
} echoless_form;

// What went wrong, as a number that is the same in every version. 0 is success in C.
typedef enum {
    // An argument is NULL, misaligned, too long, or of another length than the others.
    ECHOLESS_STATUS_INVALID_ARGUMENT = 1,
    // A specification or an option has a value that is not allowed.
    ECHOLESS_STATUS_INVALID_SPEC = 2,
    // The memory could not be allocated.
    ECHOLESS_STATUS_OUT_OF_MEMORY = 3,
    // A file or another stream failed.
    ECHOLESS_STATUS_IO = 4,
    // A saved state is damaged, truncated, or no state.
    ECHOLESS_STATUS_INVALID_STATE = 5,
    // A saved state is of another filter or of other key hashes.
    ECHOLESS_STATUS_STATE_MISMATCH = 6,
    // A thread could not be started or pinned.
    ECHOLESS_STATUS_THREAD = 7,
    // A partition is lost: its filter panicked.
    ECHOLESS_STATUS_PARTITION_LOST = 8,
    // The filter was shut down.
    ECHOLESS_STATUS_DISCONNECTED = 9,
    // The call needs a port without batches in flight.
    ECHOLESS_STATUS_IN_FLIGHT = 10,
    // The process is a fork of the one that built the filter.
    ECHOLESS_STATUS_FORKED = 11,
    // The time of the call is over. Nothing was judged.
    ECHOLESS_STATUS_TIMED_OUT = 12,
    // Another thread uses the handle, which one thread at a time may use.
    ECHOLESS_STATUS_BUSY = 13,
    // The filter cannot do this, such as save its lines if it has none.
    ECHOLESS_STATUS_UNSUPPORTED = 14,
    // The library panicked: a defect. The handle rejects all later calls.
    ECHOLESS_STATUS_PANICKED = 15,
} echoless_status;

// A handle: workers, each with a partition of a filter in lines. Any thread may use it.
typedef struct echoless_engine echoless_engine;

// A handle: a filter of any kind. One thread at a time may use it; a call while another one runs
// is an error. After an error of a call nothing has changed, unless the function says otherwise.
typedef struct echoless_filter echoless_filter;

// A handle: a filter in lines whose batches apply in the order of their tickets. All threads may
// use it at the same time; each observes through a thread of its own, `echoless_thread`.
typedef struct echoless_ordered echoless_ordered;

// A handle: what the keys of packets are made of. All threads may use it at the same time.
typedef struct echoless_packet_keys echoless_packet_keys;

// A handle: the way of one thread to the workers. One thread at a time may use it.
typedef struct echoless_port echoless_port;

// A handle: a filter that all threads use at the same time. No call waits for another one, except
// for a save.
typedef struct echoless_shared echoless_shared;

// A handle: the access of one thread to an ordered filter. One thread at a time may use it.
typedef struct echoless_thread echoless_thread;

// What the keys of packets are made of. NULL and 0 stand for the defaults, which are those of
// `echoless packets`.
typedef struct {
    // The link type of the packets, as pcap files number them; 1 is Ethernet.
    uint16_t link_type;
    // "link", "network" (the default), "transport" or "payload": the layer a key begins at.
    const char *from;
    // Fields that copies may differ in, such as "lan-id,ttl,checksum" (the default); with
    // "tunnel" among them the packets inside of tunnels are compared.
    const char *ignore;
    // "none" (the default) or "vlan": what copies must have in common besides.
    const char *group;
    // The bytes of the payload that are compared; 0 are all.
    uint32_t payload_bytes;
    // The bytes of a packet that every capture has, at least 40; 0 if captures do not cut.
    uint32_t snap_safe;
    // The bytes in front of the link header that are left out.
    uint32_t skip_bytes;
} echoless_packet_options;

// How keys are hashed. A NULL pointer to this is seed 0 without a secret.
typedef struct {
    // The seed of the fast hash. Filters find the keys of each other only with equal seeds.
    uint64_t seed;
    // NULL, or 16 secret bytes: a slower hash for which nobody without them can choose keys that
    // collide. The seed has no effect then.
    const uint8_t *secret;
} echoless_hashing;

// The keys of a call, by value. Make it with `echoless_hashes()`, `echoless_numbers()`,
// `echoless_fixed()`, `echoless_slices()`, `echoless_packed()`, `echoless_packed32()` or
// `echoless_packets()`, and add ticks with `echoless_at()`. What it points to is read during the call only.
typedef struct {
    // An `echoless_form`.
    uint32_t form;
    // The bytes of a key, if its form is fixed.
    size_t width;
    // The distance of two keys in bytes, if their form is fixed.
    size_t stride;
    // The number of keys.
    size_t count;
    // The keys; NULL is allowed if there are none.
    const void *data;
    // What else the form needs.
    const void *extra;
    // NULL, or the tick of each key, for a filter with a window.
    const uint64_t *ticks;
} echoless_keys;

// The report of a filter, in a layout that C can read. New fields are added at the end.
typedef struct {
    // The bytes of this struct that the caller knows; set by the caller.
    size_t size;
    // The memory of the filter's state, in bytes.
    uint64_t memory_bytes;
    // The keys observed, fresh and duplicate.
    uint64_t observed;
    // The keys reported as fresh.
    uint64_t fresh;
    // The keys evicted, in a filter with a window before they expired. While this is 0, no
    // duplicate of a recorded key was missed.
    uint64_t evictions;
    // The keys that were forgotten because their window was over.
    uint64_t expired;
    // The fraction of the cells (bits, counters or slots) that is occupied, 0 to 1.
    double fill;
    // The probability that a key that was never seen would be reported as a duplicate now.
    double expected_fpr;
    // The highest `expected_fpr`, that with every cell occupied, of a filter with a window.
    double most_fpr;
    // An upper bound of the expected number of keys so far that were reported as duplicates but
    // never seen before.
    double expected_false_duplicates;
    // The age, in distinct keys, at which 1 duplicate in 1000 is missed.
    double miss_age;
    // The window in ticks, 0 without one.
    uint64_t window_ticks;
} echoless_report;

// Takes bytes of a state; returns 0, or anything else to end the save with an error. It must
// return: a `longjmp` or an exception of C++ must not leave it.
typedef int (*echoless_write)(void *context, const uint8_t *bytes, size_t length);

// Gives bytes of a state: writes up to `capacity` of them and their number, 0 at the end; returns
// 0, or anything else to end the load with an error. As `echoless_write`, it must return.
typedef int (*echoless_read)(void *context, uint8_t *bytes, size_t capacity, size_t *length);

// A function that is called at the point of the stream where a state ends.
typedef void (*echoless_cut)(void *context);

// Bytes of the caller.
typedef struct {
    // The bytes; NULL is allowed if there are none.
    const uint8_t *data;
    // The number of bytes.
    size_t length;
} echoless_slice;

// A captured packet.
typedef struct {
    // The captured bytes, from the link header on.
    const uint8_t *data;
    // The number of captured bytes.
    uint32_t captured;
    // The length of the packet on the wire; more than `captured` if the capture cut it.
    uint32_t length;
} echoless_packet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The text of the last error of this thread: one line, in UTF-8. An empty text if there was none.
//
// The pointer is valid until the next call of this thread that fails. Any thread may call this.
const char *echoless_last_error(void);

// The version of the library that runs, such as "0.1.0". `ECHOLESS_VERSION` is that of the header.
//
// The text is static. Any thread may call this.
const char *echoless_version(void);

// Makes packet keys. `options` may be NULL: Ethernet and all defaults. Free them with
// `echoless_packet_keys_free`. Any thread may call this.
//
// # Safety
// `options` is NULL or points to options whose texts are NULL or end with a NUL; `out` points to
// memory for a handle.
int echoless_packet_keys_new(const echoless_packet_options *options, echoless_packet_keys **out);

// Frees packet keys; NULL has no effect. Calls that use them meanwhile end as usual.
int echoless_packet_keys_free(echoless_packet_keys *packet_keys);

// Builds a filter from a specification such as "fingerprint:fpr=1e-8,memory=64MiB". Free it with
// `echoless_filter_free`. Any thread may call this.
//
// # Safety
// `spec` ends with a NUL; `hashing` is NULL or as its type says; `out` points to memory for a
// handle.
int echoless_filter_new(const char *spec, const echoless_hashing *hashing, echoless_filter **out);

// Frees a filter; NULL has no effect. A call that uses it meanwhile ends as usual.
int echoless_filter_free(echoless_filter *filter);

// Probes and inserts each key in order. Bit `i % 64` of `duplicates[i / 64]` is set if key `i` is
// a duplicate, and `duplicates` has one bit for each key, rounded up to whole words: bits past the
// last key are zero. `count`, if it is not NULL, gets the number of duplicates.
//
// # Safety
// `keys` are as their form says; `duplicates` points to memory for the bits; `count` is NULL or
// points to memory for a number.
int echoless_filter_observe(echoless_filter *filter,
                            echoless_keys keys,
                            uint64_t *duplicates,
                            uint64_t *count);

// Whether each key would be a duplicate now, as `echoless_filter_observe` writes it. Changes
// nothing in the filter; ticks of the keys have no effect.
//
// # Safety
// As `echoless_filter_observe`.
int echoless_filter_contains(echoless_filter *filter,
                             echoless_keys keys,
                             uint64_t *duplicates,
                             uint64_t *count);

// The hash of each key, as the filter hashes it, for a program that passes keys to several filters
// with the same hashing.
//
// # Safety
// `keys` are as their form says; `hashes` points to memory for a number for each key.
int echoless_filter_hash(echoless_filter *filter, echoless_keys keys, uint64_t *hashes);

// Moves the clock of a window to `tick`. An earlier tick has no effect, and neither has any
// without a window.
int echoless_filter_advance(echoless_filter *filter, uint64_t tick);

// Removes all keys, and resets the counters and the clock.
int echoless_filter_clear(echoless_filter *filter);

// Counters and error estimates. Set `report->size` to `sizeof(echoless_report)` first; the fields
// that the library knows are written, up to that size. This may read the whole filter.
//
// # Safety
// `report` points to a struct of the size that it says.
int echoless_filter_report(echoless_filter *filter, echoless_report *report);

// Writes the specification of the filter as a text with a NUL into `text`, which has `capacity`
// bytes. `length`, if it is not NULL, gets its length without the NUL, also if it does not fit,
// which is an error.
//
// # Safety
// `text` points to `capacity` bytes; `length` is NULL or points to memory for a number.
int echoless_filter_spec(echoless_filter *filter, char *text, size_t capacity, size_t *length);

// Saves the filter with `bytes` of the caller, such as a position in a stream, into a file that is
// replaced as a whole: it has the old content or the new one, also after a power cut. The secret
// of the hashing is not in it. Only filters in lines can be saved.
//
// # Safety
// `path` ends with a NUL; `bytes` points to `length` bytes.
int echoless_filter_save_file(echoless_filter *filter,
                              const char *path,
                              const uint8_t *bytes,
                              size_t length);

// The number of lines of the filter. The parts of a state are ranges of them.
//
// # Safety
// `lines` points to memory for a number.
int echoless_filter_lines(echoless_filter *filter, uint64_t *lines);

// Saves the lines from `first` to before `end` to a function of the caller: a part of a state, or
// all of it from 0 to `echoless_filter_lines`. The function must not use the filter.
//
// # Safety
// `bytes` points to `length` bytes; `write` takes `context`.
int echoless_filter_save_part(echoless_filter *filter,
                              uint64_t first,
                              uint64_t end,
                              const uint8_t *bytes,
                              size_t length,
                              echoless_write write,
                              void *context);

// Restores a filter from a file. `memory_limit` rejects a filter of more memory before it is
// built; with `UINT64_MAX` there is no limit. The bytes that were saved with it are written to
// `bytes`, which has `capacity`, and their number to `length`; it is an error if they do not fit.
// NULL and 0 leave them out.
//
// # Safety
// `path` ends with a NUL; `hashing` is NULL or as its type says; `bytes` points to `capacity`
// bytes; `length` is NULL or points to memory for a number; `out` points to memory for a handle.
int echoless_filter_load_file(const char *path,
                              const echoless_hashing *hashing,
                              uint64_t memory_limit,
                              uint8_t *bytes,
                              size_t capacity,
                              size_t *length,
                              echoless_filter **out);

// Restores a filter from the states of all its parts, in any order: `count` contexts, each of
// which `read` reads one part from. Otherwise as `echoless_filter_load_file`; the bytes are those
// of the parts behind each other, in the order of their lines.
//
// # Safety
// `contexts` points to `count` of them, which `read` takes; otherwise as
// `echoless_filter_load_file`.
int echoless_filter_load_parts(echoless_read read,
                               void *const *contexts,
                               size_t count,
                               const echoless_hashing *hashing,
                               uint64_t memory_limit,
                               uint8_t *bytes,
                               size_t capacity,
                               size_t *length,
                               echoless_filter **out);

// Builds a shared filter from a specification such as "row4x16:memory=64MiB". Free it with
// `echoless_shared_free`. Any thread may call this.
//
// # Safety
// As `echoless_filter_new`.
int echoless_shared_new(const char *spec, const echoless_hashing *hashing, echoless_shared **out);

// Frees a shared filter; NULL has no effect. Calls that use it meanwhile end as usual.
int echoless_shared_free(echoless_shared *shared);

// As `echoless_filter_observe`, from any thread: of equal keys of several threads, exactly one is
// fresh. A shared filter has no window, so ticks of the keys have no effect.
//
// # Safety
// As `echoless_filter_observe`.
int echoless_shared_observe(echoless_shared *shared,
                            echoless_keys keys,
                            uint64_t *duplicates,
                            uint64_t *count);

// As `echoless_filter_contains`, from any thread.
//
// # Safety
// As `echoless_filter_contains`.
int echoless_shared_contains(echoless_shared *shared,
                             echoless_keys keys,
                             uint64_t *duplicates,
                             uint64_t *count);

// Removes all keys, while no thread observes any.
int echoless_shared_clear(echoless_shared *shared);

// As `echoless_filter_report`, from any thread.
//
// # Safety
// As `echoless_filter_report`.
int echoless_shared_report(echoless_shared *shared, echoless_report *report);

// As `echoless_filter_save_file`, while other threads use the filter, of which none waits. The
// state has the keys of the calls that had ended before, and each later key or not.
//
// # Safety
// As `echoless_filter_save_file`.
int echoless_shared_save_file(echoless_shared *shared,
                              const char *path,
                              const uint8_t *bytes,
                              size_t length);

// As `echoless_filter_load_file`, from the file of a shared filter.
//
// # Safety
// As `echoless_filter_load_file`.
int echoless_shared_load_file(const char *path,
                              const echoless_hashing *hashing,
                              uint64_t memory_limit,
                              uint8_t *bytes,
                              size_t capacity,
                              size_t *length,
                              echoless_shared **out);

// Builds an ordered filter of `partitions` partitions from the specification of a filter in lines,
// such as "fingerprint:fpr=1e-8,memory=64MiB". Threads that do nothing but judge need a partition
// each; verdicts do not depend on the number. Free it with `echoless_ordered_free`. Any thread may
// call this.
//
// # Safety
// As `echoless_filter_new`.
int echoless_ordered_new(const char *spec,
                         const echoless_hashing *hashing,
                         size_t partitions,
                         echoless_ordered **out);

// Frees an ordered filter; NULL has no effect. Its threads go on; the filter itself is freed with
// the last of them.
int echoless_ordered_free(echoless_ordered *ordered);

// The access of one more thread. Free it with `echoless_thread_free`. Any thread may call this.
//
// # Safety
// `out` points to memory for a handle.
int echoless_thread_new(echoless_ordered *ordered, echoless_thread **out);

// Frees a thread; NULL has no effect. A ticket that it holds is left out.
int echoless_thread_free(echoless_thread *thread);

// Takes the next ticket: the batch of the next `echoless_thread_observe` of this thread applies
// after those of all tickets that were taken before. Usually under the lock of the input, so that
// both have one order. Does not block. Without effect if the thread holds a ticket.
//
// All later tickets wait until the batch has passed, so a thread that holds a ticket must observe,
// or leave it out with `echoless_thread_leave`.
int echoless_thread_take(echoless_thread *thread);

// Waits at most so many milliseconds for the turn of the ticket that the thread holds, which it
// takes if it holds none. If the time is over, that is `ECHOLESS_STATUS_TIMED_OUT`, and the thread
// still holds its ticket, in its place among the others.
int echoless_thread_wait(echoless_thread *thread, uint64_t milliseconds);

// Leaves out the ticket that the thread holds, if it holds one.
int echoless_thread_leave(echoless_thread *thread);

// As `echoless_filter_observe`, with the ticket that the thread holds, or else the next one. Waits
// at each partition for the batches of lower tickets. After an error about the arguments, the
// thread still holds its ticket; after any other error the batch has passed the partitions that
// are not lost.
//
// # Safety
// As `echoless_filter_observe`.
int echoless_thread_observe(echoless_thread *thread,
                            echoless_keys keys,
                            uint64_t *duplicates,
                            uint64_t *count);

// As `echoless_filter_report`, at one point of the stream, while threads observe. From any thread
// that holds no ticket.
//
// # Safety
// As `echoless_filter_report`.
int echoless_ordered_report(echoless_ordered *ordered, echoless_report *report);

// Saves an ordered filter into a file, as `echoless_filter_save_file`, while threads observe: the
// state is that of one point of the stream. There `before` is called, then the ticket of the point
// is taken, then `position` writes the bytes of the caller, at most 65,536: so `before` can lock
// the input, and `position` read its position and unlock it. Both may be NULL. From a thread that
// holds no ticket; `position` must not observe or report with the filter, which would wait for it.
//
// # Safety
// `path` ends with a NUL; the functions take `context`.
int echoless_ordered_save_file(echoless_ordered *ordered,
                               const char *path,
                               echoless_cut before,
                               echoless_read position,
                               void *context);

// Restores an ordered filter of `partitions` partitions from a file, that of an ordered filter with
// any number of them or that of `echoless_filter_save_file`. Otherwise as
// `echoless_filter_load_file`.
//
// # Safety
// As `echoless_filter_load_file`.
int echoless_ordered_load_file(const char *path,
                               const echoless_hashing *hashing,
                               size_t partitions,
                               uint64_t memory_limit,
                               uint8_t *bytes,
                               size_t capacity,
                               size_t *length,
                               echoless_ordered **out);

// Builds an engine of `partitions` workers from the specification of a filter in lines. Ports come
// from `echoless_port_new`. Free it with `echoless_engine_free`. Any thread may call this.
//
// # Safety
// As `echoless_filter_new`.
int echoless_engine_new(const char *spec,
                        const echoless_hashing *hashing,
                        size_t partitions,
                        echoless_engine **out);

// Frees an engine; NULL has no effect. Workers that were not shut down stop once they have
// answered what was submitted; until then, ports may still submit.
int echoless_engine_free(echoless_engine *engine);

// Opens a port for a thread. Free it with `echoless_port_free`. Any thread may call this.
//
// # Safety
// `out` points to memory for a handle.
int echoless_port_new(echoless_engine *engine, echoless_port **out);

// Frees a port; NULL has no effect. Batches in flight are judged, and their verdicts are lost.
int echoless_port_free(echoless_port *port);

// Submits a batch; waits if the workers are behind. The keys are hashed before the call returns,
// so their memory can be used again. All keys have one tick, that of the last of them, if they
// have ticks.
//
// # Safety
// `keys` are as their form says.
int echoless_port_submit(echoless_port *port, echoless_keys keys);

// Waits for the verdicts of the oldest batch in flight. `keys` gets the number of its keys, 0 if
// no batch is in flight or the batch was empty, and `duplicates`, which has `capacity` words,
// their bits as `echoless_filter_observe` writes them. If they do not fit, that is an error, and
// the same batch comes with the next call. `count`, if it is not NULL, gets the number of
// duplicates.
//
// # Safety
// `duplicates` points to `capacity` words; `keys` and `count` are NULL or point to memory for a
// number.
int echoless_port_drain(echoless_port *port,
                        uint64_t *duplicates,
                        size_t capacity,
                        size_t *keys,
                        uint64_t *count);

// Waits at most so many milliseconds until `echoless_port_drain` would not wait: the oldest batch
// in flight is answered, or there is none. If the time is over, that is
// `ECHOLESS_STATUS_TIMED_OUT`, and nothing has changed.
int echoless_port_wait(echoless_port *port, uint64_t milliseconds);

// As `echoless_filter_report`, while the workers run: each answers between two messages. From any
// thread.
//
// # Safety
// As `echoless_filter_report`.
int echoless_engine_report(echoless_engine *engine, echoless_report *report);

// Stops the workers once they have answered what was submitted before, and writes the report of
// the filter, if it is not NULL. Answered batches can still be drained; new ones are rejected, and
// so is a drain without a batch in flight.
//
// # Safety
// As `echoless_filter_report`.
int echoless_engine_shutdown(echoless_engine *engine, echoless_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
/* Hashes that are uniform in all 64 bits, such as those of XXH3. Ids are numbers. */
static inline echoless_keys echoless_hashes(const uint64_t *hashes, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_HASHES, 0, 0, count, hashes, NULL, NULL};
    return keys;
}

/* Numbers, such as ids. The same eight bytes as a key of any other form are another key. */
static inline echoless_keys echoless_numbers(const uint64_t *numbers, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_NUMBERS, 0, 0, count, numbers, NULL, NULL};
    return keys;
}

/* `width` bytes each, `stride` bytes after the one before: a field of an array of structs. */
static inline echoless_keys echoless_fixed(const void *bytes, size_t width, size_t stride,
                                           size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_FIXED, width, stride, count, bytes, NULL, NULL};
    return keys;
}

/* Bytes of any length, each with its pointer. */
static inline echoless_keys echoless_slices(const echoless_slice *slices, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_SLICES, 0, 0, count, slices, NULL, NULL};
    return keys;
}

/* The bytes of a text, without its NUL. */
static inline echoless_slice echoless_text(const char *text) {
    echoless_slice slice = {(const uint8_t *)text, strlen(text)};
    return slice;
}

/* Bytes behind each other: key i is from offsets[i] to offsets[i + 1], so there are count + 1. */
static inline echoless_keys echoless_packed(const void *bytes, const int64_t *offsets,
                                            size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED64, 0, 0, count, bytes, offsets, NULL};
    return keys;
}

/* The same with offsets of 32 bits, as those of Arrow's utf8 and binary. */
static inline echoless_keys echoless_packed32(const void *bytes, const int32_t *offsets,
                                              size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED32, 0, 0, count, bytes, offsets, NULL};
    return keys;
}

/* Captured packets, compared as `reader` says. */
static inline echoless_keys echoless_packets(const echoless_packet *packets, size_t count,
                                             const echoless_packet_keys *reader) {
    echoless_keys keys = {ECHOLESS_FORM_PACKETS, 0, 0, count, packets, reader, NULL};
    return keys;
}

/* The same keys, each at its own tick, for a filter with a window. */
static inline echoless_keys echoless_at(echoless_keys keys, const uint64_t *ticks) {
    keys.ticks = ticks;
    return keys;
}

/* Whether key `index` is a duplicate. */
static inline int echoless_is_duplicate(const uint64_t *duplicates, size_t index) {
    return (int)(duplicates[index / 64] >> (index % 64) & 1);
}

#endif /* ECHOLESS_H */
