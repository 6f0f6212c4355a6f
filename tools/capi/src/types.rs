//! The structs of the interface, as the header has them.

use std::ffi::{c_char, c_int, c_void};

/// A handle: what `echoless_new`, `echoless_load`, `echoless_open` and `echoless_packet_keys` make.
/// It is a number, from which nothing is ever read.
#[derive(Debug)]
pub struct echoless_handle {
    _opaque: (),
}

/// How keys are hashed. A NULL pointer to this is seed 0 without a secret.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_hashing {
    /// The seed of the fast hash. Filters find the keys of each other only with equal seeds.
    pub seed: u64,
    /// NULL, or 16 secret bytes: a slower hash for which nobody without them can choose keys that
    /// collide. The seed has no effect then.
    pub secret: *const u8,
}

/// How the keys of a call lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum echoless_form {
    /// `const uint64_t *`: hashes that are uniform in all 64 bits. Ids and counters are not: they
    /// are numbers.
    Hashes = 1,
    /// `const uint64_t *`: numbers, such as ids.
    Numbers = 2,
    /// `width` bytes each, `stride` bytes after the one before.
    Fixed = 3,
    /// `const echoless_slice *`.
    Slices = 4,
    /// Bytes behind each other, and `const int32_t *` offsets in `extra`, one more than keys.
    Packed32 = 5,
    /// As packed32, with `const int64_t *` offsets.
    Packed64 = 6,
    /// `const echoless_packet *`, and the handle of the packet keys in `extra`.
    Packets = 7,
}

/// The keys of a call, by value. Make it with `echoless_hashes()`, `echoless_numbers()`,
/// `echoless_fixed()`, `echoless_slices()`, `echoless_packed()`, `echoless_packed32()` or
/// `echoless_packets()`, and add ticks with `echoless_at()`. What it points to is read during the
/// call only.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_keys {
    /// An `echoless_form`.
    pub form: u32,
    /// The bytes of a key, if its form is fixed.
    pub width: usize,
    /// The distance of two keys in bytes, if their form is fixed.
    pub stride: usize,
    /// The number of keys.
    pub count: usize,
    /// The keys; NULL is allowed if there are none.
    pub data: *const c_void,
    /// What else the form needs.
    pub extra: *const c_void,
    /// NULL, or the tick of each key, for a filter with a window.
    pub ticks: *const u64,
}

/// Bytes of the caller.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_slice {
    /// The bytes; NULL is allowed if there are none.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

/// Memory of the caller for bytes of any number; make it with `echoless_into()`. It is an error if
/// they do not fit.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_room {
    /// Where the bytes are written. NULL leaves out those of `echoless_load`.
    pub data: *mut c_void,
    /// The bytes that fit.
    pub capacity: usize,
    /// NULL, or a place for the number of bytes, which is also written if they do not fit.
    /// `echoless_drain` does not use it.
    pub length: *mut usize,
}

/// A captured packet.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_packet {
    /// The captured bytes, from the link header on.
    pub data: *const u8,
    /// The number of captured bytes.
    pub captured: u32,
    /// The length of the packet on the wire; more than `captured` if the capture cut it.
    pub length: u32,
}

/// What the keys of packets are made of. NULL and 0 stand for the defaults, which are those of
/// `echoless packets`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_packet_options {
    /// The link type of the packets, as pcap files number them; 1 is Ethernet.
    pub link_type: u16,
    /// "link", "network" (the default), "transport" or "payload": the layer a key begins at.
    pub from: *const c_char,
    /// Fields that copies may differ in, such as "lan-id,ttl,checksum" (the default); with
    /// "tunnel" among them the packets inside of tunnels are compared.
    pub ignore: *const c_char,
    /// "none" (the default) or "vlan": what copies must have in common besides.
    pub group: *const c_char,
    /// The bytes that are compared behind the header of TCP, UDP, SCTP or ICMP; 0 are all.
    pub payload_bytes: u32,
    /// The bytes of a packet that every capture has, at least 40; 0 if captures do not cut.
    pub snap_safe: u32,
    /// The bytes in front of the link header that are left out.
    pub skip_bytes: u32,
}

/// Takes bytes of a state; returns 0, or anything else to end the save with an error. It must
/// return: a `longjmp` or an exception of C++ must not leave it.
pub type echoless_write =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, length: usize) -> c_int>;

/// Gives bytes of a state: writes up to `capacity` of them and their number, 0 at the end; returns
/// 0, or anything else to end the call with an error. As `echoless_write`, it must return.
pub type echoless_read = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        bytes: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> c_int,
>;

/// A function that is called at the point of the stream where a state ends.
pub type echoless_before = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Where a state is saved; make it with `echoless_to_file()`, `echoless_to_stream()` or
/// `echoless_to_lines()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_target {
    /// A path, or NULL: then `write` takes the bytes.
    pub path: *const c_char,
    /// Takes the bytes.
    pub write: echoless_write,
    /// What `write` gets.
    pub context: *mut c_void,
    /// The first line of the part that is saved; 0 for all.
    pub first: u64,
    /// The line behind the part; `UINT64_MAX` for all.
    pub end: u64,
}

/// Where a state was saved; make it with `echoless_from_file()` or `echoless_from_streams()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_source {
    /// A path, or NULL: then `read` gives the bytes of each part.
    pub path: *const c_char,
    /// Gives the bytes.
    pub read: echoless_read,
    /// What `read` gets for each part.
    pub contexts: *const *mut c_void,
    /// The number of parts.
    pub count: usize,
}

/// What is done at the point of the stream where the state of an ordered filter ends. There
/// `before` is called, then the ticket of the point is taken, then `position` writes the bytes of
/// the caller, at most 65,536: so `before` can lock the input, and `position` read its position and
/// unlock it. Both may be NULL. From a thread that holds no ticket; `position` must not observe or
/// report with the filter, which would wait for it: that is an error.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_cut {
    /// Called first.
    pub before: echoless_before,
    /// Writes the bytes of the caller.
    pub position: echoless_read,
    /// What both get.
    pub context: *mut c_void,
}
