//! The header of a stream of captures: what all files must have in common, because the outputs have
//! one header, and what may differ.
//!
//! A pcapng file consists of sections that describe themselves, so files with different interfaces
//! and byte orders may follow each other. The header of a pcap file holds for all its packets:
//!
//! ```text
//! | magic | version | time zone | accuracy | snap length | link type |
//!   equal   2.4       ignored     ignored    the largest   equal
//! ```
//!
//! Regular files are compared before anything is written. Of others, the first bytes are not known
//! before they are read.

use echoless_packets::framing::{FrameError, Framer, Next};
use echoless_records::compression::length::first_plain_bytes;
use echoless_records::failure::Failure;
use echoless_records::files::Source;
use echoless_records::partial::Loss;

/// The first bytes of a pcapng file, in either byte order.
pub(crate) const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The length of the header of a pcap file, and the parts of it that are compared.
const PCAP_HEADER: usize = 24;
const SNAP_LENGTH: usize = 16;
const LINK_TYPE: usize = 20;

/// A larger snap length, or 0, is no limit, as in libpcap.
const MOST_SNAP_LENGTH: u32 = i32::MAX as u32;

/// The header of the outputs, as far as the files are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamHeader {
    /// The name of the first file, and how it begins.
    first: Option<(String, Begin)>,
    /// The largest snap length of all files.
    snap_length: SnapLength,
    /// Whether the outputs have a header, and so the stream a first file.
    pub(crate) is_written: bool,
}

/// How a capture file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    Pcap(PcapHeader),
    Pcapng,
}

/// The header of a pcap file of version 2.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PcapHeader([u8; PCAP_HEADER]);

/// The most bytes of a packet that readers return, as it stands in a header.
#[derive(Debug, Clone, Copy, Default)]
struct SnapLength(Option<u32>);

impl SnapLength {
    fn is_less_than(self, other: Self) -> bool {
        let limit = |it: Self| match it.0 {
            Some(bytes @ 1..=MOST_SNAP_LENGTH) => Some(bytes),
            Some(_) => Some(u32::MAX),
            None => None,
        };
        limit(self) < limit(other)
    }
}

impl PcapHeader {
    fn is_big_endian(&self) -> bool {
        // The magic numbers of big-endian files begin with the same byte.
        self.0[0] == 0xa1
    }

    /// The number in these 4 bytes.
    fn number(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        if self.is_big_endian() {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn snap_length(&self) -> SnapLength {
        SnapLength(Some(self.number(SNAP_LENGTH)))
    }

    fn set_snap_length(&mut self, bytes: u32) {
        let bytes = if self.is_big_endian() {
            bytes.to_be_bytes()
        } else {
            bytes.to_le_bytes()
        };
        self.0[SNAP_LENGTH..SNAP_LENGTH + 4].copy_from_slice(&bytes);
    }
}

impl Begin {
    /// How a file with this header begins; its version is upgraded.
    fn of(header: &[u8]) -> Self {
        match header.first_chunk() {
            Some(pcap) if !header.starts_with(&PCAPNG) => Self::Pcap(PcapHeader(*pcap)),
            Some(_) | None => Self::Pcapng,
        }
    }

    /// What keeps the packets of `other` from standing behind this header, if anything does.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let (first, other) = match (self, other) {
            (Self::Pcapng, Self::Pcapng) => return None,
            (Self::Pcap(first), Self::Pcap(other)) => (first, other),
            (Self::Pcap(_), Self::Pcapng) | (Self::Pcapng, Self::Pcap(_)) => {
                return Some("format");
            }
        };
        let differing = first.number(LINK_TYPE) ^ other.number(LINK_TYPE);
        if first.is_big_endian() != other.is_big_endian() {
            Some("byte order")
        } else if first.0[..4] != other.0[..4] {
            Some("resolution of times")
        } else if differing & 0xffff != 0 {
            Some("link type")
        } else if differing != 0 {
            Some("length of the frame check sequence")
        } else {
            None
        }
    }
}

impl StreamHeader {
    /// What the regular files among these show. Fails if one of them is no capture file, or cannot
    /// follow the others.
    pub(crate) fn of_files(sources: &[Source]) -> Result<Self, Failure> {
        let mut header = Self::default();
        for source in sources.iter().filter(|source| source.length().is_some()) {
            let mut first = first_plain_bytes(source, PCAP_HEADER)?;
            let mut framer = Framer::new();
            match framer.next_block(&first, 0, first.len() < PCAP_HEADER) {
                Ok(Next::Block { range, kind }) => {
                    framer.upgrade(&mut first[range.clone()], &kind);
                    header.join(source, &first[range])?;
                }
                // The header of a pcapng section is longer.
                Ok(Next::NeedMore(_)) => header.join(source, &first)?,
                Ok(Next::End) => {}
                Err(error) if loss_of(&error).is_some() => {}
                Err(error) => return Err(framing_failure(source, &error)),
            }
        }
        Ok(header)
    }

    /// Adds the next file, which begins with this header. Fails if its packets cannot stand behind
    /// the header of the outputs.
    pub(crate) fn join(&mut self, source: &Source, header: &[u8]) -> Result<(), Failure> {
        let begin = Begin::of(header);
        let rejected = |problem| Failure::Capture {
            name: source.name(),
            problem,
        };
        match &self.first {
            None => self.first = Some((source.name(), begin)),
            Some((first, other)) => {
                if let Some(difference) = other.difference(&begin) {
                    return Err(rejected(format!(
                        "begins unlike {first}, with another {difference}: expected pcap files of \
                         one link type, byte order and resolution of times, or only pcapng files \
                         (mergecap joins others)"
                    )));
                }
            }
        }
        if let Begin::Pcap(pcap) = begin
            && self.snap_length.is_less_than(pcap.snap_length())
        {
            if self.is_written {
                return Err(rejected(format!(
                    "its snap length of {} is larger than the one in the header that is already \
                     written: expected it first, or a regular file, which is looked at before",
                    pcap.number(SNAP_LENGTH)
                )));
            }
            self.snap_length = pcap.snap_length();
        }
        Ok(())
    }

    /// The header of the outputs, made of that of the first pcap file that is read.
    pub(crate) fn write(&mut self, own: &[u8]) -> Vec<u8> {
        self.is_written = true;
        match (Begin::of(own), self.snap_length.0) {
            (Begin::Pcap(mut pcap), Some(bytes)) => {
                pcap.set_snap_length(bytes);
                pcap.0.to_vec()
            }
            (_, _) => own.to_vec(),
        }
    }
}

/// What is lost of a file that ends with this error: `None` if nothing of it is a capture.
pub(crate) fn loss_of(error: &FrameError) -> Option<Loss> {
    if error.is_cut() {
        Some(Loss::UnfinishedEnd)
    } else {
        (error.offset() > 0).then_some(Loss::Records)
    }
}

/// The failure of a file that cannot be framed.
pub(crate) fn framing_failure(source: &Source, error: &FrameError) -> Failure {
    Failure::Capture {
        name: source.name(),
        problem: error.to_string(),
    }
}
