//! Capture files as framed blocks, and packets as keys.
//!
//! Bytes flow one way: a [`Framer`](framing::Framer) finds the blocks of a pcap or pcapng file in
//! the caller's buffer, [`layers`] finds the headers of a packet, and a
//! [`KeyReader`](key::KeyReader) turns it into the bytes that copies of the packet have in common.
//! The crate does not depend on the engine, reads no files and keeps no packets.
//!
//! # Examples
//! ```
//! use echoless_packets::framing::{BlockKind, Framer, Next};
//! use echoless_packets::key::{KeyOptions, KeyReader};
//! use echoless_packets::LinkType;
//! use echoless_packets::synth::{Header, Stack};
//! use echoless_packets::writer::PcapWriter;
//!
//! // One packet, captured in front of a router and behind it.
//! let mut behind = Header::ipv4();
//! if let Header::Ipv4(ip) = &mut behind {
//!     ip.ttl -= 1;
//! }
//! let mut capture = PcapWriter::new(false, false, LinkType::ETHERNET);
//! for ip in [Header::ipv4(), behind] {
//!     let stack = Stack::new(vec![Header::ethernet(), ip, Header::udp()]);
//!     let frame = stack.bytes(b"hello");
//!     capture.packet(0, &frame, frame.len() as u32);
//! }
//! let file = capture.into_bytes();
//!
//! let reader = KeyReader::new(KeyOptions::default())?;
//! let (mut framer, mut at, mut keys) = (Framer::new(), 0, Vec::new());
//! let mut scratch = Vec::new();
//! while let Next::Block { range, kind } = framer.next_block(&file, at, true)? {
//!     if let BlockKind::Packet(block) = kind {
//!         let key = reader.key(&block.packet(&file), &mut scratch);
//!         let mut bytes = Vec::new();
//!         key.write_to(&mut bytes);
//!         keys.push(bytes);
//!     }
//!     at = range.end;
//! }
//! assert_eq!(keys.len(), 2);
//! assert_eq!(keys[0], keys[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod packet;

pub mod framing;
pub mod key;
pub mod layers;
pub mod synth;
pub mod writer;

pub use packet::{InterfaceId, LinkType, Packet};
