//! `--diagnose`: whether a feed has copies, where they come from, and which options remove them.
//!
//! The run has a wide key and a wide window: all that the network changes between two copies of a
//! packet is left out of the key, and what differs follows from the [ignored
//! fields](echoless_packets::key::IgnoredFields).
//!
//! 1. [`sighting`] is what is noted of a packet until its copies have come.
//! 2. [`pairs`] finds the last equal packet of each one, as it is, inside of its tunnels, or as far
//!    as a snap length goes, and decides whether that can be a copy or was sent again.
//! 3. [`cause`] says of a pair what made the copy.
//! 4. [`findings`] puts all pairs together, once the stream has ended: the causes beyond doubt, the
//!    window that separates copies from packets that were sent again, and the options.
//! 5. [`host`] knows which copies this machine makes itself.
//! 6. [`page`] shows them: for people, for programs, and as a drawing.

mod cause;
mod findings;
mod host;
mod page;
mod pairs;
mod sighting;

pub(crate) use pairs::{Diagnosis, DiagnosisConfig, wide_key};
