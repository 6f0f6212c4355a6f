//! Recognises a file by its first four bytes.

use super::error::FrameError;
use crate::bytes::ByteOrder;

/// The length of what decides the kind of a file.
pub(super) const MAGIC_LEN: usize = 4;

/// A kind of file that can be framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Pcap { order: ByteOrder, nanoseconds: bool },
    Pcapng,
}

/// Magic numbers in pcap headers with the same file header but other packet headers, the writers
/// they are known for (libpcap `sf-pcap.c`, Wireshark `libpcap.h`), and whether Wireshark reads
/// them.
const PCAP_VARIANTS: [(u32, &str, bool); 6] = [
    (0xa1b2_cd34, "Kuznetzov's modified pcap", true),
    (0xa1b2_34cd, "Mesquita's modified pcap", false),
    (0xa12b_3c4d, "Navtel pcap", false),
    (0xa1b2_c3cb, "BPF program savefile", false),
    (0x1c00_01ac, "Ixia lcap (hardware)", true),
    (0x1c00_01ab, "Ixia lcap (software)", true),
];

/// First bytes of other files that are often given by mistake, and whether Wireshark reads packets
/// in them.
const OTHER_FILES: [(&[u8], &str, bool); 9] = [
    (b"\x1f\x8b", "gzip", false),
    (b"\x28\xb5\x2f\xfd", "zstd", false),
    (b"\x04\x22\x4d\x18", "lz4", false),
    (b"\xfd7zX", "xz", false),
    (b"BZh", "bzip2", false),
    (b"snoo", "snoop", true),
    (b"GMBU", "Microsoft Network Monitor 2", true),
    (b"RTSS", "Microsoft Network Monitor 1", true),
    (b"XCP\0", "NetXRay", true),
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
pub(super) fn recognise(magic: [u8; MAGIC_LEN]) -> Result<FileKind, FrameError> {
    if let Some((_, kind)) = FRAMED_FILES.iter().find(|(first, _)| *first == magic) {
        return Ok(*kind);
    }
    let (big, little) = (u32::from_be_bytes(magic), u32::from_le_bytes(magic));
    let variants = PCAP_VARIANTS.iter();
    let mut variants = variants.filter(|(number, ..)| [big, little].contains(number));
    let others = OTHER_FILES.iter();
    let mut others = others.filter(|(first, ..)| magic.starts_with(first));
    let variant = variants.next().map(|(_, name, read)| (name, read));
    match variant.or_else(|| others.next().map(|(_, name, read)| (name, read))) {
        Some((name, is_capture)) => Err(FrameError::Unsupported {
            name,
            is_capture: *is_capture,
        }),
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
