//! Recognises a file by its first four bytes.

use super::byte_order::ByteOrder;
use super::error::FrameError;

/// The length of what decides the kind of a file.
pub(super) const MAGIC_LEN: usize = 4;

/// A kind of file that can be framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Pcap { order: ByteOrder, nanoseconds: bool },
    Pcapng,
}

/// Magic numbers in pcap headers with the same file header but other packet headers, and the
/// writers they are known for (libpcap `sf-pcap.c`, Wireshark `libpcap.h`).
const PCAP_VARIANTS: [(u32, &str); 6] = [
    (0xa1b2_cd34, "Kuznetzov's modified pcap"),
    (0xa1b2_34cd, "Mesquita's modified pcap"),
    (0xa12b_3c4d, "Navtel pcap"),
    (0xa1b2_c3cb, "BPF program savefile"),
    (0x1c00_01ac, "Ixia lcap (hardware)"),
    (0x1c00_01ab, "Ixia lcap (software)"),
];

/// First bytes of other files that are often given by mistake.
const OTHER_FILES: [(&[u8], &str); 9] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zX", "xz"),
    (b"BZh", "bzip2"),
    (b"snoo", "snoop"),
    (b"GMBU", "Microsoft Network Monitor 2"),
    (b"RTSS", "Microsoft Network Monitor 1"),
    (b"XCP\0", "NetXRay"),
];

/// How the files begin that can be framed, and what they are.
const FRAMED_FILES: [([u8; MAGIC_LEN], FileKind); 5] = [
    ([0x0a, 0x0d, 0x0d, 0x0a], FileKind::Pcapng),
    ([0xa1, 0xb2, 0xc3, 0xd4], pcap(ByteOrder::Big, false)),
    ([0xa1, 0xb2, 0x3c, 0x4d], pcap(ByteOrder::Big, true)),
    ([0xd4, 0xc3, 0xb2, 0xa1], pcap(ByteOrder::Little, false)),
    ([0x4d, 0x3c, 0xb2, 0xa1], pcap(ByteOrder::Little, true)),
];

const fn pcap(order: ByteOrder, nanoseconds: bool) -> FileKind {
    FileKind::Pcap { order, nanoseconds }
}

/// The kind of the file that begins with `magic`.
///
/// # Errors
/// [`FrameError::Unsupported`] or [`FrameError::Unrecognised`].
pub(super) fn recognise(magic: [u8; MAGIC_LEN]) -> Result<FileKind, FrameError> {
    if let Some((_, kind)) = FRAMED_FILES.iter().find(|(first, _)| *first == magic) {
        return Ok(*kind);
    }
    let (big, little) = (u32::from_be_bytes(magic), u32::from_le_bytes(magic));
    let variant = PCAP_VARIANTS
        .iter()
        .find(|(n, _)| [big, little].contains(n));
    let other = OTHER_FILES
        .iter()
        .find(|(first, _)| magic.starts_with(first));
    match variant
        .map(|(_, name)| name)
        .or(other.map(|(_, name)| name))
    {
        Some(name) => Err(FrameError::Unsupported { name }),
        None => Err(unrecognised(&magic)),
    }
}

/// The error for a file that is shorter than a magic number: it may be cut there.
pub(super) fn too_short(file: &[u8]) -> FrameError {
    if file.is_empty() {
        FrameError::Empty
    } else if FRAMED_FILES
        .iter()
        .any(|(magic, _)| magic.starts_with(file))
    {
        FrameError::Truncated {
            offset: 0,
            found: file.len(),
            expected: MAGIC_LEN,
            packets: 0,
        }
    } else {
        unrecognised(file)
    }
}

fn unrecognised(first: &[u8]) -> FrameError {
    let found = first.iter().map(|byte| format!("{byte:02x}")).collect();
    FrameError::Unrecognised { found }
}
