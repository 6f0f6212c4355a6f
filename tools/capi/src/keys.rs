//! The keys of a call, in any of the forms of [`echoless_form`].

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::slice;

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Failure, Fixed, Hashes, Keys, Numbers, Packed, Table};
use echoless_packets::key::{KeyError, KeyOptions, KeyReader};
use echoless_packets::{InterfaceId, LinkType, Packet};

use crate::call::{
    Memory, Place, call, check_apart, check_not_written, check_pointer, memory, slice, slice_mut,
    text,
};

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
    /// `const echoless_packet *`, and the `echoless_packet_keys *` in `extra`.
    Packets = 7,
}

/// The keys of a call, by value. Make it with `echoless_hashes()`, `echoless_numbers()`,
/// `echoless_fixed()`, `echoless_slices()`, `echoless_packed()`, `echoless_packed32()` or
/// `echoless_packets()`, and add ticks with `echoless_at()`. What it points to is read during the call only.
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
    /// The bytes of the payload that are compared; 0 are all.
    pub payload_bytes: u32,
    /// The bytes of a packet that every capture has, at least 40; 0 if captures do not cut.
    pub snap_safe: u32,
    /// The bytes in front of the link header that are left out.
    pub skip_bytes: u32,
}

/// A handle: what the keys of packets are made of. All threads may use it at the same time.
#[derive(Debug)]
pub struct echoless_packet_keys {
    _opaque: (),
}

/// What a handle of packet keys stands for.
#[derive(Debug)]
struct PacketKeys {
    reader: KeyReader,
    link: LinkType,
}

static PACKET_KEYS: Table<PacketKeys> = Table::new(1, "packet_keys");

/// Makes packet keys. `options` may be NULL: Ethernet and all defaults. Free them with
/// `echoless_packet_keys_free`. Any thread may call this.
///
/// # Safety
/// `options` is NULL or points to options whose texts are NULL or end with a NUL; `out` points to
/// memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_packet_keys_new(
    options: *const echoless_packet_options,
    out: *mut *mut echoless_packet_keys,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the memory.
        let out = unsafe { Place::new("out", out)? };
        let mut keys = KeyOptions::default();
        let mut link = LinkType::ETHERNET;
        if !options.is_null() {
            // SAFETY: not NULL; the caller answers for what it points to.
            let typed = unsafe { slice("options", options, 1)?[0] };
            link = LinkType(typed.link_type);
            let of_text = |name, value| {
                // SAFETY: the texts of the options are NULL or end with a NUL.
                unsafe { text(name, value, Some("")) }
            };
            let [from, ignore, group] = [
                of_text("from", typed.from)?,
                of_text("ignore", typed.ignore)?,
                of_text("group", typed.group)?,
            ];
            if !from.is_empty() {
                keys.from = from.parse().map_err(of_packets)?;
            }
            if !ignore.is_empty() {
                keys.ignore = ignore.parse().map_err(of_packets)?;
            }
            if !group.is_empty() {
                keys.group = group.parse().map_err(of_packets)?;
            }
            let given = |value: u32| (value > 0).then_some(value);
            keys.payload_bytes = given(typed.payload_bytes);
            keys.snap_safe = given(typed.snap_safe);
            keys.skip_bytes = typed.skip_bytes;
        }
        let reader = KeyReader::new(keys).map_err(of_packets)?;
        out.write(PACKET_KEYS.insert(PacketKeys { reader, link })?.pointer());
        Ok(())
    })
}

/// Frees packet keys; NULL has no effect. Calls that use them meanwhile end as usual.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_packet_keys_free(packet_keys: *mut echoless_packet_keys) -> c_int {
    call(|| PACKET_KEYS.remove(packet_keys))
}

fn of_packets(error: KeyError) -> Failure {
    Failure::new(echoless_foreign::Code::InvalidSpec, error.to_string())
}

/// Memory that a call reads: a slice of it, once it is known to be apart from what is written.
///
/// # Errors
/// As [`slice`] and [`check_not_written`].
///
/// # Safety
/// As [`slice`].
unsafe fn read<'a, T>(
    written: &[Memory],
    name: &'static str,
    data: *const T,
    count: usize,
) -> Result<&'a [T], Failure> {
    if count > 0 {
        check_pointer(name, data, count)?;
        check_not_written(written, &memory(name, data, count))?;
    }
    // SAFETY: as of the caller.
    unsafe { slice(name, data, count) }
}

/// The keys of a call, which `with` gets in their form, and their ticks.
///
/// # Errors
/// [`Failure`] if the form is unknown or does not fit its pointers, these are in memory that is
/// `written`, or that of `with`.
///
/// # Safety
/// What the keys point to is as their form says, and stays and does not change during the call.
#[inline]
pub(crate) unsafe fn with_keys<T>(
    keys: &echoless_keys,
    written: &[Memory],
    with: impl FnOnce(&dyn Keys, Option<&[u64]>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let echoless_keys {
        form,
        width,
        stride,
        count,
        data,
        extra,
        ticks,
    } = *keys;
    let ticks = match ticks.is_null() {
        true => None,
        // SAFETY: not NULL; the caller answers for as many ticks as keys.
        false => Some(unsafe { read(written, "ticks", ticks, count)? }),
    };
    const HASHES: u32 = echoless_form::Hashes as u32;
    const NUMBERS: u32 = echoless_form::Numbers as u32;
    const FIXED: u32 = echoless_form::Fixed as u32;
    const SLICES: u32 = echoless_form::Slices as u32;
    const PACKED32: u32 = echoless_form::Packed32 as u32;
    const PACKED64: u32 = echoless_form::Packed64 as u32;
    const PACKETS: u32 = echoless_form::Packets as u32;
    match form {
        HASHES => {
            // SAFETY: the caller answers for `count` hashes. A `KeyHash` is a `u64` in memory
            // (`repr(transparent)`), and any number is one.
            let hashes = unsafe { read(written, "keys", data.cast::<KeyHash>(), count)? };
            with(&Hashes(hashes), ticks)
        }
        NUMBERS => {
            // SAFETY: the caller answers for `count` numbers.
            let numbers = unsafe { read(written, "keys", data.cast::<u64>(), count)? };
            with(&Numbers(numbers), ticks)
        }
        FIXED => {
            let length = match count.checked_sub(1) {
                Some(last) => last
                    .checked_mul(stride)
                    .and_then(|at| at.checked_add(width)),
                None => Some(0),
            };
            let Some(length) = length else {
                return Err(Failure::argument("count", count, "what memory can hold"));
            };
            // SAFETY: the caller answers for the keys up to the end of the last one.
            let bytes = unsafe { read(written, "keys", data.cast::<u8>(), length)? };
            with(&Fixed::new(bytes, width, stride, count)?, ticks)
        }
        SLICES => {
            // SAFETY: the caller answers for `count` slices, and for the bytes of each.
            let slices = unsafe { read(written, "keys", data.cast::<echoless_slice>(), count)? };
            check_each(slices, |slice| (slice.data, slice.length))?;
            with(&Slices(slices), ticks)
        }
        // SAFETY: the caller answers for the offsets, and for the bytes up to the last one.
        PACKED32 => with(
            &unsafe { packed::<i32>(written, data, extra, count)? },
            ticks,
        ),
        // SAFETY: as above.
        PACKED64 => with(
            &unsafe { packed::<i64>(written, data, extra, count)? },
            ticks,
        ),
        PACKETS => {
            let reader = PACKET_KEYS.get(extra.cast::<echoless_packet_keys>())?;
            // SAFETY: the caller answers for `count` packets, and for the bytes of each.
            let packets = unsafe { read(written, "keys", data.cast::<echoless_packet>(), count)? };
            check_each(packets, |packet| (packet.data, packet.captured as usize))?;
            let reader = &*reader;
            with(&Packets { packets, reader }, ticks)
        }
        _ => Err(Failure::argument("form", form, "1 to 7, an echoless_form")),
    }
}

/// Judges the keys of a call: `judge` gets them, their ticks and the words of the caller for the
/// verdicts, and returns the number of duplicates, which the caller gets if it wants it.
///
/// # Errors
/// As [`with_keys`]; nothing was judged then. All pointers are checked before.
///
/// # Safety
/// As [`with_keys`]; `duplicates` points to a bit for each key, rounded up to words, and `count` is
/// NULL or points to memory for a number. Nothing else uses either during the call.
#[inline]
pub(crate) unsafe fn judge_keys(
    keys: &echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
    judge: impl FnOnce(&dyn Keys, Option<&[u64]>, &mut [u64]) -> Result<u64, Failure>,
) -> Result<(), Failure> {
    let words = keys.count.div_ceil(64);
    // SAFETY: the caller answers for the pointers.
    unsafe {
        let count = Place::optional("count", count)?;
        let written = [memory("duplicates", duplicates, words), count.memory()];
        check_apart(&written)?;
        let found = with_keys(keys, &written, |keys, ticks| {
            judge(keys, ticks, slice_mut("duplicates", duplicates, words)?)
        })?;
        count.write(found);
    }
    Ok(())
}

/// # Safety
/// `offsets` points to one offset more than keys, and `data` to as many bytes as the last one says.
unsafe fn packed<'a, O: Copy + TryInto<usize>>(
    written: &[Memory],
    data: *const c_void,
    offsets: *const c_void,
    count: usize,
) -> Result<Packed<'a, O>, Failure> {
    let entries = count.checked_add(1);
    let entries = entries.ok_or_else(|| Failure::argument("count", count, "less"))?;
    // SAFETY: as of the caller.
    let offsets: &[O] = unsafe { read(written, "offsets", offsets.cast(), entries)? };
    let end = offsets[count]
        .try_into()
        .map_err(|_| Failure::argument("offset", format!("number {count}"), "0 or more"))?;
    // SAFETY: as of the caller.
    let bytes = unsafe { read(written, "keys", data.cast::<u8>(), end)? };
    Packed::new(bytes, offsets)
}

/// Checks pointer and length of each key.
///
/// # Errors
/// [`Failure`] if a key is wrong. All are looked at without a branch: almost always none is.
fn check_each<T>(keys: &[T], parts: impl Fn(&T) -> (*const u8, usize)) -> Result<(), Failure> {
    let is_wrong = |key: &T| {
        let (data, length) = parts(key);
        let most = if data.is_null() {
            0
        } else {
            isize::MAX as usize
        };
        length > most
    };
    if !keys.iter().fold(false, |wrong, key| wrong | is_wrong(key)) {
        return Ok(());
    }
    let index = keys.iter().position(is_wrong).unwrap_or_default();
    let value = format!("NULL or too long at {index}");
    Err(Failure::argument("keys", value, "bytes"))
}

/// Slices of the caller, checked by [`check_each`].
struct Slices<'a>(&'a [echoless_slice]);

impl Keys for Slices<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        for (slice, hash) in self.0[from..from + hashes.len()].iter().zip(hashes) {
            *hash = hasher.hash(bytes(slice.data, slice.length));
        }
    }
}

/// Bytes that a caller has passed.
#[inline(always)]
fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    debug_assert!(!data.is_null());
    // SAFETY: not NULL with a length, as `check_each` has found; the caller of the function
    // answers for the bytes, and the slice is not kept beyond the call.
    unsafe { slice::from_raw_parts(data, length) }
}

/// Packets of the caller, checked by [`check_each`].
struct Packets<'a> {
    packets: &'a [echoless_packet],
    reader: &'a PacketKeys,
}

thread_local! {
    /// The encoded headers of a packet.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Keys for Packets<'_> {
    fn len(&self) -> usize {
        self.packets.len()
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        let PacketKeys { reader, link } = self.reader;
        SCRATCH.with_borrow_mut(|scratch| {
            for (packet, hash) in self.packets[from..from + hashes.len()].iter().zip(hashes) {
                let packet = Packet {
                    interface: InterfaceId::default(),
                    link: *link,
                    bytes: bytes(packet.data, packet.captured as usize),
                    original_len: packet.length,
                    timestamp: None,
                };
                let key = reader.key(&packet, scratch);
                // The head holds the lengths of the other parts, so an empty one adds nothing.
                let parts = key.parts();
                let parts = parts.iter().filter(|part| !part.is_empty());
                *hash = hasher.hash_fields(parts.map(|part| Some(*part)));
            }
        });
    }
}
