//! A bounded ring from one producer thread to one consumer thread, without locks.
//!
//! ```text
//!           head (the consumer moves it)       tail (the producer moves it)
//!              v                                  v
//!   +------+------+------+------+------+------+------+------+
//!   | free | full | full | full | full | full | free | free |   capacity: a power of two
//!   +------+------+------+------+------+------+------+------+
//! ```
//!
//! Both indices count up and wrap with `usize`; the slot of an index is its low bits. **The
//! contract** of every `unsafe` block of the ring: the slots of `head..tail` belong to the
//! consumer, all others belong to the producer, and an end hands slots over only by moving its own
//! index with Release, which the other end reads with Acquire:
//!
//! ```text
//!   producer                                   consumer
//!   write slots
//!   tail.store(Release) ---------------------> tail.load(Acquire)
//!                                              read slots
//!   head.load(Acquire)  <--------------------- head.store(Release)
//!   overwrite slots
//! ```
//!
//! Each end caches the other's index and reads the shared one only if the ring seems full or empty.
//! The cached index is never ahead of the shared one, so an end can only underestimate the slots
//! that belong to it.
//!
//! A wake costs the producer as much as hundreds of keys, so a consumer that parks until several
//! items are there leaves the tail from which it is awaited ([`Consumer::wake_when`]), and earlier
//! pushes do not wake it.
//!
//! Slots are created once, from [`Default`], and always hold a value. So a message of several cache
//! lines is written and read in place ([`Producer::vacant`], [`Consumer::peek`]), its allocations
//! are reused, and no slot can leak or drop twice.
//!
//! Closing or dropping either end closes the ring. Pushes then fail at once, except for one that is
//! in progress while the consumer closes; pops fail once the ring is empty. Items that are left
//! when the second end is dropped are dropped with the ring.

mod consumer;
mod producer;
mod state;

pub use consumer::{Consumer, Drain, Peeked};
pub use producer::{Producer, Vacant};
pub(crate) use state::bytes;
pub use state::{PopError, PushError, bounded};
