//! Captures of UDP packets, with copies as mirror ports make them.

use echoless::{KeyHasher, SpecError};
use echoless_packets::LinkType;
use echoless_packets::synth::{Header, Stack};
use echoless_packets::writer::{PcapWriter, PcapngWriter};
use rand_xoshiro::rand_core::Rng;

use super::{Record, below, random, stream};

/// Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 14 + 20 + 8;

/// The shortest frame: that of Ethernet, without its check sequence.
const SHORTEST: u64 = 60;

const LONGEST: u64 = 9216;

/// The simple Internet mix: 7 short frames, 4 middle ones, 1 long one, without check sequences.
const IMIX: [(u64, u64); 3] = [(7, 60), (4, 590), (1, 1514)];

/// The first time, in seconds since 1970.
const FIRST_SECOND: u64 = 1_700_000_000;

/// The time to live of a packet; a copy behind a router has one less.
const TTL: u8 = 64;

/// The lengths of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameBytes {
    Imix,
    All(u64),
}

impl FrameBytes {
    /// Parses `imix` or a number of bytes.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let length = text.parse().ok();
        match length.filter(|length| (SHORTEST..=LONGEST).contains(length)) {
            Some(length) => Ok(Self::All(length)),
            None if text == "imix" => Ok(Self::Imix),
            None => {
                let allowed = format!("imix or {SHORTEST} to {LONGEST}");
                Err(SpecError::new("--frame-bytes", text, allowed))
            }
        }
    }

    /// The length that some random bits select.
    fn draw(self, bits: u64) -> u64 {
        match self {
            Self::All(length) => length,
            Self::Imix => {
                let mut ticket = below(bits, IMIX.iter().map(|(weight, _)| weight).sum());
                for (weight, length) in IMIX {
                    if ticket < weight {
                        return length;
                    }
                    ticket -= weight;
                }
                SHORTEST
            }
        }
    }
}

/// What differs between a copy and its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    pub(crate) ttl: bool,
    pub(crate) mac: bool,
    pub(crate) vlan: bool,
}

impl Changes {
    /// Parses names with commas between them, or `none`.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let mut changes = Self::default();
        if text == "none" {
            return Ok(changes);
        }
        for name in text.split(',') {
            match name {
                "ttl" => changes.ttl = true,
                "mac" => changes.mac = true,
                "vlan" => changes.vlan = true,
                other => {
                    let allowed = "ttl, mac, vlan or none alone";
                    return Err(SpecError::new("--copies", other, allowed));
                }
            }
        }
        Ok(changes)
    }
}

/// A capture file and its packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaptureConfig {
    pub(crate) frame_bytes: FrameBytes,
    pub(crate) copies: Changes,
    /// The most captured bytes of a packet.
    pub(crate) snap: Option<u32>,
    /// Packets in a second, 1 to 10^9.
    pub(crate) rate: u64,
    pub(crate) nanoseconds: bool,
    pub(crate) pcapng: bool,
}

/// A file without packets.
#[derive(Debug, Clone)]
enum EmptyFile {
    Pcap(PcapWriter),
    Pcapng(PcapngWriter),
}

impl EmptyFile {
    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Pcap(file) => file.into_bytes(),
            Self::Pcapng(file) => file.into_bytes(),
        }
    }
}

/// Generates packets.
pub(super) struct Packets {
    hasher: KeyHasher,
    config: CaptureConfig,
    file: EmptyFile,
    header: Vec<u8>,
}

impl Packets {
    pub(super) fn new(seed: u64, config: CaptureConfig) -> Self {
        let file = if config.pcapng {
            let digits = if config.nanoseconds { 9 } else { 6 };
            let mut file = PcapngWriter::new(false);
            file.interface(
                LinkType::ETHERNET,
                config.snap.unwrap_or(0),
                &[(9, &[digits])],
            );
            EmptyFile::Pcapng(file)
        } else {
            let file = PcapWriter::new(false, config.nanoseconds, LinkType::ETHERNET);
            EmptyFile::Pcap(file)
        };
        Self {
            hasher: KeyHasher::seeded(seed),
            config,
            header: file.clone().into_bytes(),
            file,
        }
    }

    /// The frame that first appears at `first`, as an original or as a copy.
    fn frame(&self, first: u64, is_copy: bool) -> Vec<u8> {
        let copies = self.config.copies;
        let mut random = random(&self.hasher, first, stream::CONTENT);
        let length = self.config.frame_bytes.draw(random.next_u64());
        let mut payload = vec![0; (length - HEADERS) as usize];
        random.fill_bytes(&mut payload);
        // The position makes the packet unique.
        payload[..8].copy_from_slice(&first.to_be_bytes());
        let mut ip = Header::ipv4();
        if let Header::Ipv4(ip) = &mut ip {
            ip.ttl = TTL - u8::from(is_copy && copies.ttl);
            ip.id = first as u16;
            ip.source = (random.next_u64() as u32).to_be_bytes();
            ip.destination = (random.next_u64() as u32).to_be_bytes();
        }
        let router = u8::from(is_copy && copies.mac);
        let mut headers = vec![Header::Ethernet {
            destination: [2, 0, 0, 0, 1, router],
            source: [2, 0, 0, 0, 0, router],
        }];
        if is_copy && copies.vlan {
            headers.push(Header::Vlan {
                tpid: 0x8100,
                tci: 7,
            });
        }
        headers.extend([ip, Header::udp()]);
        Stack::new(headers).bytes(&payload)
    }
}

impl Record for Packets {
    fn append(&self, position: u64, out: &mut Vec<u8>) {
        self.append_repeat(position, position, out);
    }

    fn append_repeat(&self, position: u64, first: u64, out: &mut Vec<u8>) {
        let frame = self.frame(first, position != first);
        let snap = self.config.snap.map_or(usize::MAX, |snap| snap as usize);
        let captured = &frame[..frame.len().min(snap)];
        let original_len = frame.len() as u32;
        let second = 1_000_000_000 / if self.config.nanoseconds { 1 } else { 1000 };
        let since = u128::from(position) * u128::from(second) / u128::from(self.config.rate);
        let units = FIRST_SECOND * second + since as u64;
        let mut file = self.file.clone();
        match &mut file {
            EmptyFile::Pcap(file) => file.packet(units, captured, original_len),
            EmptyFile::Pcapng(file) => file.packet(0, units, captured, original_len),
        }
        out.extend_from_slice(&file.into_bytes()[self.header.len()..]);
    }

    fn header(&self) -> &[u8] {
        &self.header
    }
}
