//! Framing: the blocks of capture files, in place.
//!
//! A [`Framer`] finds the blocks of a file in a buffer that the caller fills. It copies nothing and
//! re-encodes nothing: a kept block is a range of the input, which the caller writes out unchanged,
//! except for the length in the header of a pcapng section ([`set_section_length_unspecified`]),
//! and pcap files before version 2.4, which not all programs read ([`Framer::upgrade`]).
//!
//! | file | recognised by | variants |
//! |---|---|---|
//! | pcap 2.0 to 2.4 | `a1b2c3d4` (microseconds) or `a1b23c4d` (nanoseconds) | both byte orders |
//! | pcapng 1.0, 1.2 | `0a0d0d0a` and the byte order magic | both byte orders, many sections |
//!
//! Formats with other packet headers (Kuznetzov's modified pcap and others) and compressed files
//! are rejected by name; ERF has no magic number. The errors name the command that converts them.
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod block;
mod error;
mod framer;
mod interface;
mod magic;
mod pcap;
mod pcapng;

pub use block::{BlockKind, Next, PacketBlock};
pub use error::FrameError;
pub use framer::{DEFAULT_MAX_BLOCK, Framer};
pub use pcapng::{BYTE_ORDER_MAGIC, MAX_INTERFACES, block_type, set_section_length_unspecified};
