//! Duplicate detection in asynchronous programs, on [tokio].
//!
//! Ports of an [`Engine`](echoless::Engine) can be polled by any executor
//! ([`Port::poll_drain`](echoless::Port::poll_drain)). This crate adds what needs timers and input:
//!
//! - [`Dedup::dedup`] drops the duplicates of a stream. It collects records to batches, by size and
//!   by time, so that a lone record does not wait for others.
//! - [`serve_lines`] answers each line of a connection with `fresh` or `duplicate`.
//!
//! No call blocks the thread of an executor. A [`SharedFilter`](echoless::SharedFilter) judges at
//! once, in the task itself; the workers of an engine judge on threads of their own, and remember
//! more keys in the same memory.
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
//! let fresh = records
//!     .dedup(ports.remove(0), move |record| hasher.hash(record), Batching::default())
//!     .collect::<Result<Vec<_>, _>>()
//!     .await?;
//! assert_eq!(fresh, ["call 17", "call 18"]);
//! engine.shutdown()?;
//! # Ok(())
//! # }
//! ```

mod batching;
mod judge;
mod lines;
mod stream;

pub use batching::Batching;
pub use judge::Judge;
pub use lines::{LineError, MAX_LINE, serve_lines};
pub use stream::{Dedup, Fresh, Judged, Unjudged};
