//! The keys of a call, in any of the forms of [`echoless_form`].

use std::cell::RefCell;
use std::slice;

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Code, Failure, Fixed, Hashes, Numbers, Packed, TableEntry};
use echoless_packets::key::{KeyError, KeyOptions, KeyReader};
use echoless_packets::{InterfaceId, LinkType, Packet};

use crate::argument::{Memory, argument, text, values};
use crate::exports::PACKET_KEYS;
use crate::types::*;

/// What a handle of packet keys stands for.
#[derive(Debug)]
pub struct PacketKeys {
    reader: KeyReader,
    link: LinkType,
}

argument! {
    /// The options of packet keys; NULL stands for all defaults.
    PacketOptions(*const echoless_packet_options) "const echoless_packet_options *",
    check |options, name, memory| memory.read(name, options, usize::from(!options.is_null())),
    value PacketKeys: |options, _name, _memory| {
        let mut keys = KeyOptions::default();
        let mut link = LinkType::ETHERNET;
        if let Some(typed) = options.as_ref() {
            link = LinkType(typed.link_type);
            // The texts of the options are NULL or end with a NUL.
            let [from, ignore, group] = [
                text("from", typed.from, Some(""))?,
                text("ignore", typed.ignore, Some(""))?,
                text("group", typed.group, Some(""))?,
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
        Ok(PacketKeys { reader, link })
    }
}

argument! {
    /// A place for the handle of new packet keys.
    PacketHandle(*mut *mut echoless_handle) "echoless_handle **",
    check |out, name, memory| memory.write(name, out),
    write PacketKeys: |out, keys| {
        out.write(PACKET_KEYS.insert(keys)?.pointer());
        Ok(())
    }
}

fn of_packets(error: KeyError) -> Failure {
    Failure::new(Code::InvalidSpec, error.to_string())
}

argument! {
    /// The keys of a call.
    Keys(echoless_keys) "echoless_keys ",
    check |keys, _name, memory| keys.check(memory),
    value Batch<'a>: |keys, _name, _memory| keys.batch()
}

const HASHES: u32 = echoless_form::Hashes as u32;
const NUMBERS: u32 = echoless_form::Numbers as u32;
const FIXED: u32 = echoless_form::Fixed as u32;
const SLICES: u32 = echoless_form::Slices as u32;
const PACKED32: u32 = echoless_form::Packed32 as u32;
const PACKED64: u32 = echoless_form::Packed64 as u32;
const PACKETS: u32 = echoless_form::Packets as u32;

impl echoless_keys {
    /// Checks the pointers of the form, and notes the memory behind them.
    #[inline]
    unsafe fn check(self, memory: &mut Memory) -> Result<(), Failure> {
        memory.set_keys(self.count);
        if !self.ticks.is_null() {
            memory.read("ticks", self.ticks, self.count)?;
        }
        match self.form {
            HASHES | NUMBERS => memory.read("keys", self.data.cast::<u64>(), self.count),
            FIXED => memory.read("keys", self.data.cast::<u8>(), self.fixed_bytes()?),
            SLICES => memory.read("keys", self.data.cast::<echoless_slice>(), self.count),
            // SAFETY: the caller answers for the offsets.
            PACKED32 => unsafe { self.check_packed::<i32>(memory) },
            // SAFETY: as above.
            PACKED64 => unsafe { self.check_packed::<i64>(memory) },
            PACKETS => memory.read("keys", self.data.cast::<echoless_packet>(), self.count),
            form => Err(Failure::argument("form", form, "1 to 7, an echoless_form")),
        }
    }

    /// The bytes of keys of one width.
    fn fixed_bytes(self) -> Result<usize, Failure> {
        let Some(last) = self.count.checked_sub(1) else {
            return Ok(0);
        };
        let bytes = last
            .checked_mul(self.stride)
            .and_then(|at| at.checked_add(self.width));
        bytes.ok_or_else(|| Failure::argument("count", self.count, "what memory can hold"))
    }

    unsafe fn check_packed<O: Copy + TryInto<usize>>(
        self,
        memory: &mut Memory,
    ) -> Result<(), Failure> {
        let entries = self.count.checked_add(1);
        let entries = entries.ok_or_else(|| Failure::argument("count", self.count, "less"))?;
        memory.read("offsets", self.extra.cast::<O>(), entries)?;
        // SAFETY: checked; the caller answers for the offsets.
        let bytes = unsafe { self.packed_bytes::<O>()? };
        memory.read("keys", self.data.cast::<u8>(), bytes)
    }

    /// The bytes of keys behind each other.
    unsafe fn packed_bytes<O: Copy + TryInto<usize>>(self) -> Result<usize, Failure> {
        // SAFETY: as of the caller.
        let last = unsafe { *self.extra.cast::<O>().add(self.count) };
        last.try_into()
            .map_err(|_| Failure::argument("offset", format!("number {}", self.count), "0 or more"))
    }

    unsafe fn packed<'a, O: Copy + TryInto<usize>>(self) -> Result<Packed<'a, O>, Failure> {
        // SAFETY: checked; the caller answers for the memory.
        unsafe {
            let bytes = values(self.data.cast(), self.packed_bytes::<O>()?);
            Packed::new(bytes, values(self.extra.cast(), self.count + 1))
        }
    }

    /// The keys in their form.
    ///
    /// # Safety
    /// They were checked, and what they point to is as their form says, and stays and does not
    /// change during the call.
    #[inline]
    unsafe fn batch<'a>(self) -> Result<Batch<'a>, Failure> {
        let Self { data, count, .. } = self;
        // SAFETY: the caller answers for the memory. A `KeyHash` is a `u64` in memory
        // (`repr(transparent)`), and any number is one.
        let form = unsafe {
            match self.form {
                HASHES => Form::Hashes(Hashes(values(data.cast::<KeyHash>(), count))),
                NUMBERS => Form::Numbers(Numbers(values(data.cast::<u64>(), count))),
                FIXED => {
                    let bytes = values(data.cast::<u8>(), self.fixed_bytes()?);
                    Form::Fixed(Fixed::new(bytes, self.width, self.stride, count)?)
                }
                SLICES => {
                    let slices = values(data.cast::<echoless_slice>(), count);
                    check_each(slices, |slice| (slice.data, slice.length))?;
                    Form::Slices(slices)
                }
                PACKED32 => Form::Packed32(self.packed()?),
                PACKED64 => Form::Packed64(self.packed()?),
                _ => {
                    let reader = PACKET_KEYS.get(self.extra.cast::<echoless_handle>())?;
                    let packets = values(data.cast::<echoless_packet>(), count);
                    check_each(packets, |packet| (packet.data, packet.captured as usize))?;
                    Form::Packets(packets, reader)
                }
            }
        };
        let ticks = match self.ticks.is_null() {
            true => None,
            // SAFETY: not NULL; the caller answers for as many ticks as keys.
            false => Some(unsafe { values(self.ticks, count) }),
        };
        Ok(Batch { form, ticks })
    }
}

/// Keys of the caller, checked.
pub struct Batch<'a> {
    form: Form<'a>,
    ticks: Option<&'a [u64]>,
}

enum Form<'a> {
    Hashes(Hashes<'a>),
    Numbers(Numbers<'a>),
    Fixed(Fixed<'a>),
    Slices(&'a [echoless_slice]),
    Packed32(Packed<'a, i32>),
    Packed64(Packed<'a, i64>),
    Packets(&'a [echoless_packet], TableEntry<'static, PacketKeys>),
}

impl echoless_foreign::Keys for Batch<'_> {
    fn len(&self) -> usize {
        match &self.form {
            Form::Hashes(keys) => keys.len(),
            Form::Numbers(keys) => keys.len(),
            Form::Fixed(keys) => keys.len(),
            Form::Slices(slices) => slices.len(),
            Form::Packed32(keys) => keys.len(),
            Form::Packed64(keys) => keys.len(),
            Form::Packets(packets, _) => packets.len(),
        }
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        match &self.form {
            Form::Hashes(keys) => keys.hash(hasher, from, hashes),
            Form::Numbers(keys) => keys.hash(hasher, from, hashes),
            Form::Fixed(keys) => keys.hash(hasher, from, hashes),
            Form::Packed32(keys) => keys.hash(hasher, from, hashes),
            Form::Packed64(keys) => keys.hash(hasher, from, hashes),
            Form::Slices(slices) => {
                for (slice, hash) in slices[from..from + hashes.len()].iter().zip(hashes) {
                    *hash = hasher.hash(bytes(slice.data, slice.length));
                }
            }
            Form::Packets(packets, reader) => {
                reader.hash(hasher, &packets[from..from + hashes.len()], hashes);
            }
        }
    }

    fn hashes(&self) -> Option<&[KeyHash]> {
        match &self.form {
            Form::Hashes(Hashes(hashes)) => Some(hashes),
            _ => None,
        }
    }

    fn ticks(&self) -> Option<&[u64]> {
        self.ticks
    }
}

/// Checks pointer and length of each key. All are looked at without a branch: almost always none is
/// wrong.
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

thread_local! {
    /// The encoded headers of a packet.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl PacketKeys {
    /// Hashes packets that were checked.
    fn hash(&self, hasher: &KeyHasher, packets: &[echoless_packet], hashes: &mut [KeyHash]) {
        SCRATCH.with_borrow_mut(|scratch| {
            for (packet, hash) in packets.iter().zip(hashes) {
                let packet = Packet {
                    interface: InterfaceId::default(),
                    link: self.link,
                    bytes: bytes(packet.data, packet.captured as usize),
                    original_len: packet.length,
                    timestamp: None,
                };
                let key = self.reader.key(&packet, scratch);
                // The head holds the lengths of the other parts, so an empty one adds nothing.
                let parts = key.parts();
                let parts = parts.iter().filter(|part| !part.is_empty());
                *hash = hasher.hash_fields(parts.map(|part| Some(*part)));
            }
        });
    }
}
