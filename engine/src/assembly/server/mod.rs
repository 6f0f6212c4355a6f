//! The worker half: the owner of one partition, its links to all ports, and the order in which it
//! applies messages.
//!
//! A [pass](pass::Pass) gathers all messages that are due into one array of keys; probes the filter
//! once for the whole array; and cuts the verdict bits into one answer for each message:
//!
//! ```text
//!   link 0: [a b c] [d]   link 1: [e f]
//!   keys:     a b c   d   e f            one pass, with lines prefetched across messages
//!   verdicts: 0 1 0   0   1 0            one bit for each key
//!   answers:  link 0 <- 0b010, link 0 <- 0b0, link 1 <- 0b01
//! ```
//!
//! A message with a later tick than the clock ends the pass: the keys before it are judged at the
//! clock as it is, and the next pass begins with the new tick.
//!
//! A pass in which the filter panics has changed the state of the server already, and its keys have
//! no verdicts. The server therefore goes on without the filter, and answers every message of this
//! and later passes with *unknown*, until the partition is replaced. No panic of a filter unwinds
//! through the server.

mod arrival;
mod link;
mod pass;

pub(super) use arrival::ArrivalServer;
pub(super) use link::{Attached, ServerLink};
