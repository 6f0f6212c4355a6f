//! Duplicate detection on endless streams: a filter reports, in fixed memory and at memory speed,
//! whether each record was seen before.
//!
//! A [`KeyHasher`] hashes a record, or the fields that identify it, to a 64-bit [`KeyHash`]. The
//! hash selects one 64-byte cache line of the filter. The filter probes that line, inserts the key
//! and returns a [`Verdict`]: fresh or duplicate. A key costs one cache miss, and memory never
//! grows. In return a filter makes two kinds of errors:
//!
//! - A **false positive** is a fresh key reported as a duplicate. The *false positive rate* (FPR)
//!   is the fraction of the fresh keys for which that happens.
//! - A **false negative** is a duplicate reported as fresh, because newer keys have evicted its
//!   key. The *false negative rate* (FNR) is the fraction of the duplicates for which that
//!   happens.
//!
//! # Examples
//! ```
//! use echoless::{Filter, FingerprintSpec, KeyHasher, Verdict, Verdicts};
//!
//! let hasher = KeyHasher::seeded(0);
//! let mut filter = FingerprintSpec::new(1 << 20).max_fpr(1e-8).build()?; // 1 MiB
//! assert_eq!(filter.observe_one(hasher.hash(b"call 17")), Verdict::Fresh);
//! assert_eq!(filter.observe_one(hasher.hash(b"call 17")), Verdict::Duplicate);
//!
//! // In a batch the cache misses of different keys overlap.
//! let keys = [b"call 17", b"call 18", b"call 18"].map(|key| hasher.hash(key));
//! let mut verdicts = Verdicts::new();
//! filter.observe(&keys, &mut verdicts);
//! assert_eq!(verdicts.iter().map(Verdict::is_duplicate).collect::<Vec<_>>(), [true, false, true]);
//!
//! // No key was evicted so far, so no duplicate was missed.
//! assert_eq!(filter.report().tally.evictions, Some(0));
//! # Ok::<(), echoless::BuildError>(())
//! ```
//!
//! # Which type to use
//! One thread, and the first of equal keys is fresh:
//! - [`FingerprintSpec`]: the default filter, from a memory size and a false positive rate.
//! - [`FilterSpec`]: any filter by name and options, such as `clocked:window=600,memory=64MiB`. The
//!   filters of five papers, scattered and in trees, are in the crate `echoless-papers`.
//!
//! Several threads, and one of equal keys is fresh:
//! - [`SharedFilter`]: any number of threads through `&self`, without worker threads and locks,
//!   also with a window. A key is in one word, and is forgotten sooner than in a line.
//! - [`Engine`]: workers own a partition each; ingest threads come and go. The batches of a
//!   port come back in order. Of the keys of one port, the first is fresh.
//!   Tasks of an executor poll their ports ([`Port::poll_drain`]); the crate `echoless-tokio` has
//!   streams and a line service.
//! - [`OrderedFilter`]: any number of threads, without worker threads and messages. Batches apply
//!   in the order of their tickets, so verdicts are those of a single thread.
//!
//! [`assembly`] has a table of what each of them guarantees and costs.
//!
//! A key touches one cache line in the default filter and in the line forms of [`FilterSpec`] (two
//! in `dense`), and one word of it in a [`SharedFilter`]; published forms touch several.
//! Engines add a message of up to 64 keys there and back, and a wait for it: they need batches of
//! hundreds of keys, and are far slower than a filter with one key at a time. Batches are several
//! times as fast as single keys once a filter is larger than the caches, because their
//! cache misses overlap: 6 ns a key and not 13 in 512 MiB (`bench/record/LINE_FORMS.md`).
//!
//! # How much memory
//! - [`FingerprintGeometry::for_keys`] takes the number of distinct keys between a record and its
//!   duplicate, the fraction of duplicates that may be missed at that age, and the width of slots,
//!   which decides the false positive rate.
//! - For a time window that number is the rate of new keys times the window; filters with a window
//!   ([`FilterSpec`]: `stamped`, `clocked`) forget by time and evict only if memory is short.
//! - The default (a false positive rate of 1e-8) takes 80 bits for each key that it has to remember
//!   with 1 miss in 1000, a rate of 1e-3 takes 30 bits.
//! - While [`Tally::evictions`] is 0, no duplicate was missed, but for those outside a window.
//! - `echoless plan` compares all filters for a given stream.
//!
//! # Sinks that fail
//! [`Filter::observe`] records a key before the caller has written its record. If the write fails,
//! the record that is sent again is reported as a duplicate, and lost. Where that matters, pass
//! each batch in two phases:
//! 1. [`Filter::contains_each`] looks the keys up and records none. Equal keys of a batch are all
//!    fresh then, so accept the first of them only.
//! 2. Write the accepted records, and [`observe`](Filter::observe) the keys of those that were
//!    written.
//!
//! A crash between the two phases passes the written records again. The example `two_phase` has
//! the code. Threads that share an [`OrderedFilter`] do both with one [`Ticket`], so no other batch
//! comes in between.
//!
//! # Windows and late events
//! A filter with a window has one clock: the largest tick that it was given. A key that comes with
//! an earlier tick is **late**. It is judged and recorded at the clock, not at its own tick: it can
//! match a key that was recorded up to a window before the clock, and is remembered for a window
//! from the clock on. For records that may be late by `L` ticks and duplicates that are up to `W`
//! ticks apart:
//! - A window of `W + L` finds all of these duplicates. It also reports records up to `W + L` apart
//!   as duplicates.
//! - To exclude those, keep records that are late out of the filter, or pass them to a filter of
//!   their own.
//! - `stamped:window=W,skew=L,refresh=false` judges and records late keys at their own ticks, so it
//!   finds all of these duplicates and no others. With `refresh=true` a key has the tick of its last
//!   arrival alone, and one that is more than `W` before that passes. It holds fewer keys than
//!   `clocked`. Ordered filters, engines and journals judge all keys at the clock.
//!
//! With `refresh=true`, a duplicate renews its key: the window counts from when the key was last
//! seen. That suits records that must pass once in a burst of any length, such as alarms, and
//! misses no copy of a long series; but a key that comes back within the window endlessly passes
//! once and never again. With `refresh=false`, the window counts from when the key was recorded, so
//! it passes once in each window: that suits packets and other events that are repeated on purpose.
//! Filters in lines (`clocked`, `stamped`) and shared ones renew unless they are told otherwise;
//! those of the papers (`tbf`, `gbf`, `apbf`) do not.
//!
//! # Panics and forks
//! A filter that panics in an engine or an ordered filter loses its partition, and [`LossPolicy`]
//! says what happens to its keys. That needs unwinding: with `panic = "abort"` in
//! the profile of a program, such a panic ends the process under any policy.
//!
//! Engines and ordered filters belong to the process that built them. A fork has none of its
//! threads, so in a child each call of a port or a ticket returns [`ExchangeError::Forked`], and
//! none blocks; build them after the fork. Other filters, shared
//! ones included, go on in the child as copies: what one process records, the other does not see.
//!
//! # Platforms
//! Any target with 64-bit atomics and the standard library. On x86-64 filters choose AVX-512, AVX2,
//! portable vectors or scalar code when they are built; elsewhere portable vectors or scalar code.
//! Verdicts are the same everywhere. Filters request huge pages on Linux.
//!
//! **Unoptimised builds are slow:** without optimisation a key takes some 200 ns. A program under
//! test gets the library's speed with
//!
//! ```toml
//! [profile.dev.package.echoless]
//! opt-level = 3
//! ```
//!
//! # Features
//! All are on by default. Filters, and the one that threads share, need none of them.
//!
//! | feature | adds | crates |
//! |---|---|---|
//! | `serde` | specifications in files | `serde` and its own |
//! | `threads` | [`assembly`], [`transport`]: filters split over threads | `crossbeam-queue` |
//! | `pinning` | `threads`, and workers on cores of their own | `core_affinity` and its own |
//!
//! A filter in lines can be [saved](FilterSpec::save) and
//! [restored](state::StateReader::restore) after a restart, in another number of partitions too,
//! and a shared filter [while threads use it](SharedFilter::save).
//!
//! [`Filter::report`] returns the counters of a filter, its fill and estimates of its errors. The
//! crate `echoless-audit` estimates both errors from samples, with bounds. A rejected value is a
//! [`SpecError`], in one form: `invalid k=0: expected 1 to 64`.

#[cfg(feature = "threads")]
pub mod assembly;
mod error;
pub mod extend;
pub mod filters;
pub mod hash;
mod isa;
mod kernels;
mod limits;
pub mod memory;
pub mod message;
mod options;
mod partition;
mod report;
mod routing;
pub mod shared;
mod size;
pub mod spec;
pub mod state;
mod sync;
pub mod theory;
#[cfg(feature = "threads")]
pub mod transport;
pub mod verdicts;

#[cfg(feature = "threads")]
pub use assembly::{
    Attacher, Engine, ExchangeError, LossPolicy, NotReplaceable, OrderedFilter, OrderedHandle,
    Pinning, Port, Ticket,
};
pub use error::{BuildError, MemoryError, SpecError};
pub use filters::lines::LineFilter;
pub use filters::{Batch, Filter, Replacement, Ticks, report_of};
pub use hash::{KeyHash, KeyHasher};
pub use isa::Kernel;
pub use kernels::LookAhead;
pub use partition::{Partitioned, Partitioning};
pub use report::{AgeOrigin, Cells, MissAge, RateSum, Report, SampleError, Tally, Window};
pub use routing::RoutedBatch;
pub use shared::{SharedFilter, SharedLayout, SharedSpec};
pub use spec::{FilterSpec, FingerprintSpec};
pub use theory::fingerprints::{FingerprintGeometry, SlotWidth};
pub use verdicts::{Verdict, Verdicts};
