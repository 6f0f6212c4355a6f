//! Many cores: a filter cut into partitions that several threads use.
//!
//! **In turns.** In an [`OrderedFilter`], no key moves to another thread. Each thread passes its
//! own batch through all partitions, and each partition applies the batches in the order of their
//! tickets. So the verdicts equal those of the undivided filter, for any number of threads and
//! partitions.
//!
//! **By owners.** In an [`Engine`], a worker thread owns each partition, and rings carry keys to
//! it. Two pieces do the work. A [`Port`] is the client half: it routes a batch of keys into
//! messages, one stream of messages for each partition, and puts the returning verdicts into the
//! order of the batch. A partition server is the worker half: it takes messages in order and
//! answers each.
//!
//! ```text
//!   Port --rings--> server 0 (thread)
//!        \-rings--> server 1 (thread)       the port's thread parks while it waits
//! ```
//!
//! Keys of one port reach every partition in the order of the port, so with one port the verdicts
//! equal those of the undivided filter, for any number of workers. Independent ports have no common
//! order. The only guarantee between them is that each key is tested and recorded in one step: if
//! two ports submit the same new key, exactly one gets Fresh. (Both get it if the filter forgets
//! the key in between, and neither does if the key is a false positive.)
//!
//! # Which way
//! Of one thread with the whole filter, in the same run; two threads on two cores, 512 MiB,
//! distinct keys:
//!
//! | way | the first of equal keys is fresh | CPU time of a key | rate | choose it if |
//! |---|---|---|---|---|
//! | one thread, [`Filter::observe`](crate::Filter::observe) | yes | 1 | 1 | one core is enough |
//! | [`OrderedFilter`], 2 partitions | yes, in the order of tickets | 1.3 | 1.5 | results must not depend on threads |
//! | [`SharedFilter`](crate::SharedFilter) | one of them is, not always the first | 1.3 | 1.5 | streams have no common order; keys may be forgotten sooner |
//! | the same with a [window](crate::SharedLayout::Stamped) | one of them in a window | 1.8-2.2 | | the same, and the clocks of threads are at most a window apart |
//! | [`Engine`], 1 worker, batches of 16,384 keys | yes, for each port | 1.3 | 0.9 | callers come and go, are tasks, or have other work meanwhile |
//! | the same, batches of 1,024 keys | yes, for each port | 1.5 | 0.9 | |
//! | a filter of half the size for each of two receive queues | for each queue | 0.8-0.9 | 2.0-2.3 | equal keys come in the same queue, as a network card or a broker can divide them |
//!
//! (As `cargo run --profile dist -p echoless-bench -- scaling --only threads --sizes 512` measures,
//! with `--thread-batch-keys 16384` for larger batches; Intel Xeon, 2 cores of a busy cloud machine,
//! 2026-11-27. With AMD EPYC (Zen 4) a shared filter takes 1.05 and has 1.84 of the rate. The row of
//! windows is one thread, in turns with the whole filter within one process, on the same machine.)
//!
//! The caller of an engine with one worker cannot be faster than the worker, which judges every key:
//! such an engine frees the caller, and does not speed up the filter.
//!
//! # Losses and forks
//! If the filter of a partition panics, the verdicts of all other partitions still come out; a
//! [`LossPolicy`] says what happens to the keys of the lost one, which is
//! [replaced](Engine::replace). All of this belongs to the process that built it: in a fork, ports
//! and tickets return [`ExchangeError::Forked`].

mod attacher;
mod engine;
mod engine_builder;
mod link;
mod live_report;
mod loss;
mod mailbox;
mod ordered;
mod owned;
mod partition_state;
mod port;
mod recorder;
mod rings;
mod server;
mod shutdown;
mod status;
mod worker;

pub use attacher::Attacher;
pub use engine::Engine;
pub use engine_builder::EngineBuilder;
pub use loss::{ExchangeError, LossPolicy};
pub use ordered::{OrderedBuilder, OrderedFilter, OrderedHandle, SaveError, Ticket};
pub use partition_state::{NotReplaceable, ReplaceError};
pub use port::Port;
pub use shutdown::ShutdownError;
pub use status::EngineCounts;
pub use worker::{Pinning, pin_thread};

#[doc(hidden)] // public only for the benchmark of routing
pub use crate::routing::{Router, RoutingWay, Selections};
