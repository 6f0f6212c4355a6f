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

/// The kind of the file that begins with `magic`.
///
/// # Errors
/// [`FrameError::Unsupported`] or [`FrameError::Unrecognised`].
pub(super) fn recognise(magic: [u8; MAGIC_LEN]) -> Result<FileKind, FrameError> {
    let pcap = |order, nanoseconds| Ok(FileKind::Pcap { order, nanoseconds });
    let (big, little) = (u32::from_be_bytes(magic), u32::from_le_bytes(magic));
    match (big, little) {
        (0x0a0d_0d0a, _) => return Ok(FileKind::Pcapng),
        (0xa1b2_c3d4, _) => return pcap(ByteOrder::Big, false),
        (0xa1b2_3c4d, _) => return pcap(ByteOrder::Big, true),
        (_, 0xa1b2_c3d4) => return pcap(ByteOrder::Little, false),
        (_, 0xa1b2_3c4d) => return pcap(ByteOrder::Little, true),
        (_, _) => {}
    }
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

/// The error for an input of no known kind, or shorter than a magic number.
pub(super) fn unrecognised(first: &[u8]) -> FrameError {
    let found = if first.is_empty() {
        "nothing".into()
    } else {
        first.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    FrameError::Unrecognised { found }
}
