//! Layers: where the headers of a packet begin and end.
//!
//! [`Layers::outermost`] finds the layers of a packet in front of any tunnel, [`Layers::inner`]
//! those of the packet that a tunnel carries. Everything is an offset into the captured bytes;
//! nothing is copied, reassembled or checked by its checksum.
//!
//! ```text
//! | link header | shims: VLAN, MPLS, PPPoE, .. | network | transport | payload | trailer |
//! ```
//!
//! The readers are written here, not taken from etherparse (which the tests compare them with):
//! MPLS, PPPoE, cooked captures, SCTP and tunnels are missing there, and a key needs the offsets of
//! single fields and the lengths on the wire of packets that the capture cut.
//!
//! # Packets that do not parse
//! A header that is cut or contradicts itself ends the parse at that layer: the layer is absent,
//! its bytes are payload, and [`Layers::truncated`] or [`Layers::malformed`] is set. Of an IP
//! header of which only options or extension headers are cut, what was captured whole is there.
//!
//! An announced IP packet that is longer than its frame was shortened before it was captured, as
//! packet brokers do; it is read like one that the capture cut. One whose length field is 0, as
//! segmentation offload leaves it, ends with the frame, or where a jumbo payload option says. Only
//! an IPv6 packet that announces no next header ends with its header.

mod capture_header;
mod link;
mod network;
mod plain;
mod serial;
mod shim;
mod stack;
mod trailer;
mod transport;
mod tunnel;
mod wireless;

pub use link::LinkHeader;
pub use network::{IpVersion, Network};
pub use shim::{Shim, ShimKind, Shims};
pub use stack::{Layers, Span};
pub use transport::{Transport, TransportKind};

pub(crate) use link::{ETHERNET_LEN, SLL_LEN, SLL2_LEN};
pub(crate) use plain::{PLAIN_HEADERS, Plain};
pub(crate) use shim::ETHERTYPE_LLC;
pub(crate) use trailer::PRP_LEN;
pub(crate) use wireless::addresses as wireless_addresses;
