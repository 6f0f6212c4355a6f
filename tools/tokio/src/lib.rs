//! Duplicate detection in asynchronous programs, on [tokio].
//!
//! Ports of an [`Engine`](echoless::Engine) can be polled by any executor
//! ([`Port::poll_drain`](echoless::Port::poll_drain)). This crate adds what needs timers and input:
//!
//! - [`Dedup::dedup`] drops the duplicates of a stream. It collects records to batches, by size and
//!   by time: a lone record waits for the delay of a batch at most.
//! - [`serve_lines`] answers each line of a connection with `fresh` or `duplicate`.
//!
//! With a window, records of a stream get [ticks](Fresh::with_ticks); without them, and in a line
//! service, keys are observed at tick 0, so a filter with a window forgets nothing.
//!
//! No call blocks the thread of an executor, but [`Engine::shutdown`](echoless::Engine::shutdown)
//! joins the workers: call it when the ports are done, or in `spawn_blocking`. A
//! [`SharedFilter`](echoless::SharedFilter) observes keys at once, in the task itself; the workers
//! of an engine observe them on threads of their own, and remember more keys in the same memory. A
//! stream needs no `dedup` for a shared filter; this is all:
//! `stream.filter(|record| filter.observe_one(key(record)) == Verdict::Fresh)`.
//!
//! # Examples
//! ```
//! use echoless::{Engine, FingerprintSpec, KeyHasher};
//! use echoless_tokio::{Batching, Dedup};
//! use tokio_stream::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let filter = FingerprintSpec::new(1 << 20).build_partitions(2)?;
//! let (engine, mut ports) = Engine::builder(filter).build()?;
//! let hasher = KeyHasher::seeded(0);
//! let records = tokio_stream::iter(["call 17", "call 18", "call 17"]);
//! let key = move |record: &&str| hasher.hash(record);
//! let mut fresh = records.dedup(ports.remove(0), key, Batching::default());
//! let mut calls = Vec::new();
//! while let Some(call) = fresh.next().await {
//!     calls.push(call?);
//! }
//! assert_eq!(calls, ["call 17", "call 18"]);
//! engine.shutdown()?;
//! # Ok(())
//! # }
//! ```

mod async_filter;
mod batching;
mod lines;
mod stream;

pub use async_filter::AsyncFilter;
pub use batching::Batching;
pub use lines::{LineError, MAX_LINE, serve_lines};
pub use stream::{Dedup, Fresh, Unknown, WithVerdicts};
