//! From a capture file to key hashes: the counterpart of [`echoless_records`] for packets.
//!
//! The path of a packet is that of a record, with three parts of its own:
//!
//! 1. [`feed`] frames the blocks of a file, because framing needs state from block to block; it
//!    stores the position of each packet in the chunk. Blocks that are no packets are records
//!    without a key, and every output gets them. [`header`] is what the files must have in common.
//! 2. [`keys`] turns the packets of a chunk into key hashes and ticks, in parallel.
//! 3. [`filter`] is the filter: an exact window of time, of packets, or both.
//!
//! Chunks, threads, verdicts, outputs, summary and exit codes are those of
//! [`dedup`](crate::dedup). [`report`] follows the duplicates in the order of the stream, and
//! [`tag`] marks them instead of dropping them. [`diagnosis`] takes the place of the packets: it
//! says where copies come from, and which options remove them. Both count with [`tally`]. [`skew`]
//! measures how much later copies come to one interface than to another.

pub(crate) mod counts;
pub(crate) mod diagnosis;
mod distances;
pub(crate) mod feed;
pub(crate) mod filter;
pub(crate) mod header;
pub(crate) mod keys;
mod last_seen;
pub(crate) mod live;
pub(crate) mod report;
pub(crate) mod skew;
pub(crate) mod tag;
mod tally;
pub(crate) mod user;
