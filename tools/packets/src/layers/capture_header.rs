//! Headers that the capturing program puts in front of a frame: when, where and how it was
//! received.

use crate::bytes::array;
use crate::packet::LinkType;

/// More headers in front of each other than this are content.
const MAX_HEADERS: usize = 4;

/// The headers in front of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CaptureHeader {
    /// Their length: the frame begins there.
    pub(super) len: usize,
    /// The kind of the frame.
    pub(super) frame: LinkType,
    /// There is padding between the header of an IEEE 802.11 frame and its content.
    pub(super) padded: bool,
}

/// Reads the headers in front of a frame: none, unless `kind` has them. `None` if one is cut.
pub(super) fn read(bytes: &[u8], kind: LinkType) -> Option<CaptureHeader> {
    let mut all = CaptureHeader {
        len: 0,
        frame: kind,
        padded: false,
    };
    for _ in 0..MAX_HEADERS {
        let rest = bytes.get(all.len..)?;
        let Some(next) = read_one(rest, all.frame)? else {
            break;
        };
        all = CaptureHeader {
            len: all.len + next.len,
            ..next
        };
    }
    (all.len <= bytes.len()).then_some(all)
}

/// Reads one header: `Some(None)` if there is none or if it is malformed, `None` if it is cut.
fn read_one(bytes: &[u8], kind: LinkType) -> Option<Option<CaptureHeader>> {
    let le32 = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let be32 = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    // The length and the kind of the frame; a length below `least` is that of no header.
    let header = |len: u32, least: u32, frame| {
        (len >= least).then_some(CaptureHeader {
            len: len as usize,
            frame,
            padded: false,
        })
    };
    Some(match kind {
        LinkType::RADIOTAP => radiotap(bytes)?,
        LinkType::PPI => {
            let len = u16::from_le_bytes(array(bytes.get(..8)?, 2));
            let frame = u16::try_from(le32(4)?).ok().map(LinkType);
            frame.and_then(|frame| header(len.into(), 8, frame))
        }
        LinkType::PRISM if is_avs(be32(0)?) => header(be32(4)?, 8, LinkType::IEEE802_11),
        LinkType::PRISM => {
            // The byte order is that of the capturing machine.
            let len = le32(4)?.min(be32(4)?);
            header(len, 8, LinkType::IEEE802_11)
        }
        LinkType::AVS if is_avs(be32(0)?) => header(be32(4)?, 8, LinkType::IEEE802_11),
        LinkType::PKTAP => {
            let frame = u16::try_from(le32(8)?).ok().map(LinkType);
            frame.and_then(|frame| header(le32(0)?, 12, frame))
        }
        LinkType::PPP_WITH_DIR => header(1, 1, LinkType::PPP),
        LinkType::C_HDLC_WITH_DIR => header(1, 1, LinkType::C_HDLC),
        LinkType::FRAME_RELAY_WITH_DIR => header(1, 1, LinkType::FRAME_RELAY),
        LinkType::NETANALYZER => header(4, 4, LinkType::ETHERNET),
        LinkType::JUNIPER_ETHERNET => juniper(bytes)?,
        LinkType::ERF => erf(bytes)?,
        _ => None,
    })
}

/// The magic number of AVS headers, without the version in its last digit.
fn is_avs(magic: u32) -> bool {
    magic & 0xffff_fff0 == 0x8021_1000
}

/// Radiotap: version, padding, length, words that tell which fields follow.
fn radiotap(bytes: &[u8]) -> Option<Option<CaptureHeader>> {
    const MORE_WORDS: u32 = 1 << 31;
    const TIME: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const DATA_PADDED: u8 = 0x20;
    let fixed: [u8; 4] = array(bytes.get(..8)?, 0);
    let len = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
    if fixed[0] != 0 || len < 8 {
        return Some(None);
    }
    let header = bytes.get(..len)?;
    let word = |at| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
    let flags = || {
        let (first, mut at) = (word(4)?, 8);
        let mut last = first;
        while last & MORE_WORDS != 0 {
            last = word(at)?;
            at += 4;
        }
        if first & TIME != 0 {
            at = at.next_multiple_of(8) + 8;
        }
        (first & FLAGS != 0).then_some(*header.get(at)?)
    };
    let padded = flags().is_some_and(|flags| flags & DATA_PADDED != 0);
    Some(Some(CaptureHeader {
        len,
        frame: LinkType::IEEE802_11,
        padded,
    }))
}

/// A header of Juniper routers: magic number, flags, extensions.
fn juniper(bytes: &[u8]) -> Option<Option<CaptureHeader>> {
    const WITHOUT_LINK: u8 = 0x02;
    const EXTENDED: u8 = 0x80;
    let [magic @ .., flags] = *bytes.first_chunk::<4>()?;
    if magic != *b"MGC" || flags & WITHOUT_LINK != 0 {
        return Some(None);
    }
    let extensions = if flags & EXTENDED != 0 {
        2 + usize::from(u16::from_be_bytes(array(bytes.get(..6)?, 4)))
    } else {
        0
    };
    Some(Some(CaptureHeader {
        len: 4 + extensions,
        frame: LinkType::ETHERNET,
        padded: false,
    }))
}

/// ERF: a record header of 16 bytes, extensions of 8 bytes, and for Ethernet 2 bytes more.
fn erf(bytes: &[u8]) -> Option<Option<CaptureHeader>> {
    const EXTENDED: u8 = 0x80;
    /// Ethernet, and Ethernet with colours or a hash.
    const ETHERNET: [u8; 4] = [2, 11, 16, 20];
    let kind = *bytes.get(8)?;
    if !ETHERNET.contains(&(kind & !EXTENDED)) {
        return Some(None);
    }
    let (mut len, mut more) = (16, kind);
    while more & EXTENDED != 0 {
        more = *bytes.get(len)?;
        len += 8;
    }
    Some(Some(CaptureHeader {
        len: len + 2,
        frame: LinkType::ETHERNET,
        padded: false,
    }))
}
