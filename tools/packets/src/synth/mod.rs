//! Synthetic packets and captures, for tests and benchmarks.
//!
//! A [`Stack`] is a packet as a list of headers, outermost first; a [`Generator`] draws stacks from
//! a seed; a [writer](crate::writer) puts packets into files in memory. All headers are
//! consistent: lengths, protocol numbers and IPv4 header checksums are computed. Checksums of
//! transport headers are given, not computed.

mod generator;
mod header;
mod stack;

pub use generator::Generator;
pub use header::{Header, Ipv4, Ipv6, Tcp};
pub use stack::Stack;
