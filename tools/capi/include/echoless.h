/* echoless: duplicate detection on endless streams, in fixed memory.
 *
 * Every function returns 0 or an echoless_status, and echoless_last_error() has the text. All
 * handles are freed with echoless_free(); one that was freed, or is of another kind than the
 * function takes, is an error. Pointers to keys, masks and texts are trusted: each function and
 * type says how much it reads and writes there, and the one must be apart from the other. Any
 * thread may call any function, unless the kind of the handle says otherwise. After an error
 * nothing has changed, unless the function says otherwise. Before 1.0 the interface may change with
 * every version; the name of the shared library has its first two numbers. */


#ifndef ECHOLESS_H
#define ECHOLESS_H

/* Generated from the source of echoless-capi; do not edit. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ECHOLESS_VERSION "0.2.0"
#define ECHOLESS_VERSION_MAJOR 0
#define ECHOLESS_VERSION_MINOR 2
#define ECHOLESS_VERSION_PATCH 0

/* Success. */
#define ECHOLESS_OK 0

/* A count that the filter does not keep. An unknown rate or age is NaN. */
#define ECHOLESS_UNKNOWN UINT64_MAX


// What [`Object::new`] and [`Object::load`] make, as C numbers it.
typedef enum {
    // A filter of any specification, which one thread at a time may use; a call while another one
    // runs is an error.
    ECHOLESS_KIND_FILTER = 1,
    // A filter that all threads use at the same time, without locks.
    ECHOLESS_KIND_SHARED = 2,
    // A filter in lines whose batches apply in the order of their tickets. All threads may use it
    // at the same time; each observes through an access of its own, `echoless_open`.
    ECHOLESS_KIND_ORDERED = 3,
    // Workers, each with a partition of a filter in lines. Any thread may use it; each observes
    // through a port of its own, `echoless_open`.
    ECHOLESS_KIND_ENGINE = 4,
    // A filter in lines without errors: keys that it may have seen are compared with the digests,
    // of 128 bits, of all keys. It has no window, and never forgets: a key takes 17 to 40 bytes of
    // memory until the filter is saved, and then 16.1 on the disk. It is saved in a folder and
    // loaded from that by its path. One thread at a time may use it, as a filter.
    ECHOLESS_KIND_EXACT = 5,
} echoless_kind;

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
    // `const echoless_packet *`, and the handle of the packet keys in `extra`.
    ECHOLESS_FORM_PACKETS = 7,
} echoless_form;

// A handle: what `echoless_new`, `echoless_load`, `echoless_open` and `echoless_packet_keys` make.
// It is a number, from which nothing is ever read.
typedef struct echoless_handle echoless_handle;

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
    // The age, in distinct keys, up to which at most 1 duplicate in 1000 is missed.
    double miss_age;
    // The window in ticks, 0 without one.
    uint64_t window_ticks;
} echoless_report;

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
// `echoless_packets()`, and add ticks with `echoless_at()`. What it points to is read during the
// call only.
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

// Bytes of the caller.
typedef struct {
    // The bytes; NULL is allowed if there are none.
    const uint8_t *data;
    // The number of bytes.
    size_t length;
} echoless_slice;

// Memory of the caller for bytes of any number; make it with `echoless_into()`. It is an error if
// they do not fit.
typedef struct {
    // Where the bytes are written. NULL leaves out those of `echoless_load`.
    void *data;
    // The bytes that fit.
    size_t capacity;
    // NULL, or a place for the number of bytes, which is also written if they do not fit.
    // `echoless_drain` does not use it.
    size_t *length;
} echoless_room;

// A captured packet.
typedef struct {
    // The captured bytes, from the link header on.
    const uint8_t *data;
    // The number of captured bytes.
    uint32_t captured;
    // The length of the packet on the wire; more than `captured` if the capture cut it.
    uint32_t length;
} echoless_packet;

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
    // The bytes that are compared behind the header of TCP, UDP, SCTP or ICMP; 0 are all.
    uint32_t payload_bytes;
    // The bytes of a packet that every capture has, at least 40; 0 if captures do not cut.
    uint32_t snap_safe;
    // The bytes in front of the link header that are left out.
    uint32_t skip_bytes;
} echoless_packet_options;

// Takes bytes of a state; returns 0, or anything else to end the save with an error. It must
// return: a `longjmp` or an exception of C++ must not leave it.
typedef int (*echoless_write)(void *context, const uint8_t *bytes, size_t length);

// Where a state is saved; make it with `echoless_to_file()`, `echoless_to_stream()` or
// `echoless_to_lines()`.
typedef struct {
    // A path, or NULL: then `write` takes the bytes.
    const char *path;
    // Takes the bytes.
    echoless_write write;
    // What `write` gets.
    void *context;
    // The first line of the part that is saved; 0 for all.
    uint64_t first;
    // The line behind the part; `UINT64_MAX` for all.
    uint64_t end;
} echoless_target;

// Gives bytes of a state: writes up to `capacity` of them and their number, 0 at the end; returns
// 0, or anything else to end the call with an error. As `echoless_write`, it must return.
typedef int (*echoless_read)(void *context, uint8_t *bytes, size_t capacity, size_t *length);

// Where a state was saved; make it with `echoless_from_file()` or `echoless_from_streams()`.
typedef struct {
    // A path, or NULL: then `read` gives the bytes of each part.
    const char *path;
    // Gives the bytes.
    echoless_read read;
    // What `read` gets for each part.
    void *const *contexts;
    // The number of parts.
    size_t count;
} echoless_source;

// A function that is called at the point of the stream where a state ends.
typedef void (*echoless_before)(void *context);

// What is done at the point of the stream where the state of an ordered filter ends. There
// `before` is called, then the ticket of the point is taken, then `position` writes the bytes of
// the caller, at most 65,536: so `before` can lock the input, and `position` read its position and
// unlock it. Both may be NULL. From a thread that holds no ticket; `position` must not observe or
// report with the filter, which would wait for it: that is an error.
typedef struct {
    // Called first.
    echoless_before before;
    // Writes the bytes of the caller.
    echoless_read position;
    // What both get.
    void *context;
} echoless_cut;

#ifdef __cplusplus
extern "C" {
#endif

// The text of the last error of this thread: one line, in UTF-8. An empty text if there was none.
//
// The pointer is valid until the next call of this thread that fails. Any thread may call this.
const char *echoless_last_error(void);

// The version of the library that runs, such as "0.2.0". `ECHOLESS_VERSION` is that of the header.
//
// The text is static. Any thread may call this.
const char *echoless_version(void);

// Makes an object from a specification: `kind` is an `echoless_kind`. A filter is made from one
// such as "fingerprint:fpr=1e-8,memory=64MiB", a shared filter from one such as
// "row4x16:memory=64MiB", and an ordered filter or an engine of so many `partitions` from that of a
// filter in lines. Threads that do nothing but judge need a partition each; verdicts do not depend
// on the number. A filter, one without errors, which is made from that of a filter in lines, and a
// shared one have 1. Free it with `echoless_free`.
int echoless_new(uint32_t kind, const char *spec, const echoless_hashing *hashing,
                 size_t partitions, echoless_handle **out);

// Restores an object that was saved: a filter from the states of all its parts in any order, an
// ordered filter of `partitions` partitions from those of an ordered filter with any number of
// them, or of a filter, and a shared filter from that of a shared one. A filter without errors is
// opened as it was last saved, by the path of its folder, which no other handle or process may use
// meanwhile. `hashing` is that of the saved one. `memory_limit` rejects a filter of more memory
// before it is built; with `UINT64_MAX` there is no limit. `bytes` gets the bytes that were saved
// with it, those of parts behind each other in the order of their lines.
int echoless_load(uint32_t kind, echoless_source from, const echoless_hashing *hashing,
                  size_t partitions, uint64_t memory_limit, echoless_room bytes,
                  echoless_handle **out);

// Makes packet keys, which say what the keys of packets are made of. All threads may use them at
// the same time. `options` may be NULL: Ethernet and all defaults. Free them with `echoless_free`.
int echoless_packet_keys(const echoless_packet_options *options, echoless_handle **out);

// Frees a handle of any kind; NULL has no effect. A call that uses it meanwhile ends as usual.
//
// The threads of an ordered filter go on, and the filter itself is freed with the last of them; a
// ticket that a freed thread holds is left out. The workers of an engine that was not shut down
// stop once they have answered what was submitted; until then, ports may still submit. Batches of a
// freed port are judged, and their verdicts are lost.
int echoless_free(echoless_handle *handle);

// Moves the clock of the window of a filter or a shared one to `tick`. An earlier tick has no
// effect, and neither has any without a window.
int echoless_advance(echoless_handle *handle, uint64_t tick);

// Removes all keys of a filter, and resets the counters and the clock; those of a shared filter
// while no thread observes any, and those of one without errors unless it was saved.
int echoless_clear(echoless_handle *handle);

// The memory of the state of a filter of any kind, in bytes.
int echoless_memory_bytes(echoless_handle *handle, uint64_t *bytes);

// The number of lines of a filter. The parts of a state are ranges of them.
int echoless_lines(echoless_handle *handle, uint64_t *lines);

// Takes the next ticket of an ordered filter: the batch of the next `echoless_observe` of this
// thread applies after those of all tickets that were taken before. Usually under the lock of the
// input, so that both have one order. Does not block. Without effect if the thread holds a ticket.
//
// All later tickets wait until the batch has passed, so a thread that holds a ticket must observe,
// or leave it out with `echoless_leave`.
int echoless_take(echoless_handle *handle);

// Leaves out the ticket that a thread holds, if it holds one.
int echoless_leave(echoless_handle *handle);

// Waits at most so many milliseconds: a thread for the turn of the ticket that it holds, which it
// takes if it holds none; a port until `echoless_drain` would not wait, since the oldest batch in
// flight is answered or there is none. If the time is over, that is `ECHOLESS_STATUS_TIMED_OUT`,
// and nothing has changed: the thread still holds its ticket, in its place among the others.
int echoless_wait(echoless_handle *handle, uint64_t milliseconds);

// Opens the access of one more thread: an `echoless_observe` of its own to an ordered filter, or a
// port to an engine. One thread at a time may use it. Free it with `echoless_free`.
int echoless_open(echoless_handle *handle, echoless_handle **out);

// Probes and inserts each key in order, with a filter, one without errors, a shared one, or a
// thread of an ordered one. Bit `i % 64` of `duplicates[i / 64]` is set if key `i` is a duplicate,
// and `duplicates` has one bit for each key, rounded up to whole words: bits past the last key are
// zero. `count`, if it is not NULL, gets the number of duplicates.
//
// Of equal keys of several threads, exactly one is fresh in a shared filter, with a window in each
// of them. A thread observes with the ticket that it holds, or else the next one, and waits at each
// partition for the batches of lower tickets. After an error about the arguments, it still holds
// its ticket; after any other error the batch has passed the partitions that are not lost.
//
// A filter without errors takes keys in all forms but hashes, and ticks have no effect. If its
// folder fails, so do all later calls: load it as it was last saved.
int echoless_observe(echoless_handle *handle, echoless_keys keys, uint64_t *duplicates,
                     uint64_t *count);

// Whether each key would be a duplicate now, as `echoless_observe` writes it, in a filter, one
// without errors or a shared one. Changes nothing; ticks of the keys have no effect.
int echoless_contains(echoless_handle *handle, echoless_keys keys, uint64_t *duplicates,
                      uint64_t *count);

// The hash of each key, as a filter of any kind hashes it, for a program that passes keys to
// several filters with the same hashing.
int echoless_hash(echoless_handle *handle, echoless_keys keys, uint64_t *hashes);

// Submits a batch to a port; waits if the workers are behind. The keys are hashed before the call
// returns, so their memory can be used again. All keys have one tick, that of the last of them, if
// they have ticks.
int echoless_submit(echoless_handle *handle, echoless_keys keys);

// Waits for the verdicts of the oldest batch in flight of a port. `duplicates` gets their bits as
// `echoless_observe` writes them, `keys` the number of keys, 0 if no batch is in flight or the
// batch was empty, and `count` that of the duplicates; both may be NULL. If the verdicts do not
// fit, that is an error, and the same batch comes with the next call.
int echoless_drain(echoless_handle *handle, echoless_room duplicates, size_t *keys,
                   uint64_t *count);

// Counters and error estimates of a filter of any kind. Set `report->size` to
// `sizeof(echoless_report)` first; the fields that the library knows are written, up to that size.
// This may read the whole filter. An ordered filter and an engine report one point of the stream,
// while threads observe; from a thread that holds no ticket.
int echoless_read_report(echoless_handle *handle, echoless_report *report);

// Writes the specification of a filter of any kind as a text with a NUL into `text`, whose length
// is that without the NUL.
int echoless_spec(echoless_handle *handle, echoless_room text);

// Saves a filter of any kind but an engine with `bytes` of the caller, such as a position in a
// stream. A file is replaced as a whole: it has the old content or the new one, also after a power
// cut. The secret of the hashing is not in it. Of filters, only those in lines can be saved, and
// these also in parts, the lines from `first` to before `end` of `echoless_to_lines`. A function
// that bytes are written to must not use the filter, unless it is a shared one.
//
// A shared filter is used meanwhile, and no call waits: the state has the keys of the calls that
// had ended before, and each later key or not.
//
// A filter without errors is saved in a folder, which the first call makes and moves the digests of
// all keys to, and later ones add the new keys to. After a kill or a power cut the folder is as it
// was last saved. The secret of the digests is in it.
int echoless_save(echoless_handle *handle, echoless_target to, echoless_slice bytes);

// Saves an ordered filter as `echoless_save` does, with bytes of the point of the stream where the
// state ends, which `cut` writes.
int echoless_save_at(echoless_handle *handle, echoless_target to, echoless_cut cut);

// Stops the workers of an engine once they have answered what was submitted before, and writes the
// report of the filter, if `report` is not NULL. Answered batches can still be drained; new ones
// are rejected, and so is a drain without a batch in flight.
int echoless_shutdown(echoless_handle *handle, echoless_report *report);

#ifdef __cplusplus
}
#endif

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
                                             const echoless_handle *reader) {
    echoless_keys keys = {ECHOLESS_FORM_PACKETS, 0, 0, count, packets, reader, NULL};
    return keys;
}

/* The same keys, each at its own tick, for a filter with a window. */
static inline echoless_keys echoless_at(echoless_keys keys, const uint64_t *ticks) {
    keys.ticks = ticks;
    return keys;
}

/* Bytes to be saved with a state. */
static inline echoless_slice echoless_bytes(const void *data, size_t length) {
    echoless_slice slice = {(const uint8_t *)data, length};
    return slice;
}

/* Memory for bytes. `length` may be NULL. */
static inline echoless_room echoless_into(void *data, size_t capacity, size_t *length) {
    echoless_room room = {data, capacity, length};
    return room;
}

/* A file that is replaced as a whole. */
static inline echoless_target echoless_to_file(const char *path) {
    echoless_target target = {path, NULL, NULL, 0, UINT64_MAX};
    return target;
}

/* A part of a state: the lines from `first` to before `end`. */
static inline echoless_target echoless_to_lines(uint64_t first, uint64_t end, echoless_write write,
                                                void *context) {
    echoless_target target = {NULL, write, context, first, end};
    return target;
}

/* A whole state, passed to a function. */
static inline echoless_target echoless_to_stream(echoless_write write, void *context) {
    return echoless_to_lines(0, UINT64_MAX, write, context);
}

/* The file of a whole state. */
static inline echoless_source echoless_from_file(const char *path) {
    echoless_source source = {path, NULL, NULL, 0};
    return source;
}

/* The parts of a state, each read by `read` with a context of its own. */
static inline echoless_source echoless_from_streams(echoless_read read, void *const *contexts,
                                                    size_t count) {
    echoless_source source = {NULL, read, contexts, count};
    return source;
}

/* Whether key `index` is a duplicate. */
static inline int echoless_is_duplicate(const uint64_t *duplicates, size_t index) {
    return (int)(duplicates[index / 64] >> (index % 64) & 1);
}

#endif /* ECHOLESS_H */
