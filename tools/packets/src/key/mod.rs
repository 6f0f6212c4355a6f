//! Keys: what copies of one packet have in common.
//!
//! [`KeyOptions`] define which layer the key begins at and which fields it leaves out; a
//! [`KeyReader`] turns packets into [`Key`]s and, for reports, into the values of the
//! [`IgnoredFields`].
//!
//! # Fields that can be left out
//! | name | left out |
//! |---|---|
//! | `capture-header` | what the capturing program put in front of the frame: radiotap, PPI, Prism, AVS, PKTAP, ERF and the like |
//! | `mac` | addresses of Ethernet and IEEE 802.11; in Linux cooked captures address, packet type, interface |
//! | `vlan` | all VLAN tags, and whether there are any |
//! | `other-tags` | all tags of HSR, R-TAG, VN-Tag, E-TAG, CMD, I-TAG, FabricPath and Arista's time stamp, and whether there are any |
//! | `lan-id` | the network that a redundant copy came over, in PRP trailers and HSR tags |
//! | `mpls` | all MPLS labels, and whether there are any |
//! | `pppoe` | PPPoE session headers, and whether there are any |
//! | `padding` | what follows the IP packet or ARP message in the frame: padding, frame check sequence; and the PRP trailer of any frame |
//! | `tos` | IPv4 type of service, IPv6 traffic class: DSCP and ECN |
//! | `ttl` | IPv4 time to live, IPv6 hop limit, time to live of MPLS labels |
//! | `ip-id` | IPv4 identification, but not of fragments |
//! | `ip-checksum` | IPv4 header checksum |
//! | `ip-options` | IPv4 options, and whether there are any |
//! | `flow-label` | IPv6 flow label |
//! | `transport-checksum` | checksums of TCP, UDP, SCTP, ICMP, ICMPv6 |
//! | `tcp-seq` | TCP sequence number |
//! | `tcp-ack` | TCP acknowledgment number |
//! | `tcp-window` | TCP window |
//! | `tcp-options` | TCP options, and whether there are any |
//! | `tunnel` | all headers in front of the innermost packet |
//! | `checksum` | `ip-checksum` and `transport-checksum` |
//! | `none` | nothing |
//!
//! The default is `lan-id,ttl,checksum`: what redundant networks and routers change.
//!
//! # What a key contains
//! The fields of the headers from the chosen layer on ([`From`]), except the ignored ones; the
//! payload; and the length of the payload on the wire. Length fields of headers are not compared
//! themselves where they would reveal ignored options: those of IP headers follow from the other
//! lengths (a length of 0 is marked), and of the lengths in PPPoE, LLC and HSR only the excess over
//! their content counts. With `link` and nothing ignored, any two frames that differ in a byte have
//! different keys.
//!
//! A fragment is compared with its identification and offset, `ip-id` ignored or not: without them
//! the fragments of different packets could not be told apart. Nothing is reassembled.
//!
//! # Injective
//! Two packets have equal keys only if all compared fields are equal. Each header is an item of
//! tag, length and bytes, so the items of a key can be told apart; inside an item the fields have
//! fixed lengths, or are one list to its end; and the last items hold the lengths of the payload
//! and of the trailer. [`Key::write_to`] puts the length of the headers in front of all.

mod encode;
mod field;
mod ignored;
mod options;
mod reader;
mod select;
mod visit;

pub use field::{Field, FieldSet, KeyError};
pub use ignored::IgnoredFields;
pub use options::{From, Group, KeyOptions, MIN_SNAP};
pub use reader::{Key, KeyReader};
pub use select::Conditions;
