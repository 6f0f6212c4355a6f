//! Many cores: a filter cut into partitions, one owner thread for each, and the rings that carry
//! keys to the owners.
//!
//! Two pieces do the work. A [`Port`] is the client half: it routes a batch of keys into messages,
//! one stream of messages for each partition, and puts the returning verdicts into the order of the
//! batch. A partition server is the worker half: it owns one partition, takes messages in order
//! and answers each. [`Engine`] and [`Mesh`] only place these pieces on threads:
//!
//! ```text
//!   Engine: ingest threads + workers           Mesh: every thread is both
//!
//!   Port --rings--> server 0 (thread)          node 0: Port + server 0 <-+
//!        \-rings--> server 1 (thread)                                    | rings
//!                                              node 1: Port + server 1 <-+
//!
//!   the port's thread parks while it waits     a node that waits serves its peers
//! ```
//!
//! **Guarantees about order.** Keys of one port reach every partition in the order of the port, so
//! with one port the verdicts equal those of the undivided filter, for any number of workers.
//! Independent ports of an [`Engine`] have no common order. The only guarantee between them is that
//! each key is tested and recorded in one step: if two ports submit the same new key, exactly one
//! gets Fresh. (Both get it if the filter forgets the key in between, and neither does if the key
//! is a false positive.) The batches of a [`Mesh`] are numbered, and partitions apply them by
//! number, so the verdicts of a mesh also equal those of the undivided filter.
//!
//! **Numbered batches.** A node sends every batch to every partition, even if the partition owns
//! none of its keys, and flags the last message. A partition applies batch `n` only once all of
//! batch `n - 1` is applied:
//!
//! ```text
//!   ring from node 0:  [batch 0, part] [batch 0, last] [batch 3, last] [finish]
//!   ring from node 1:  [batch 1, last] [batch 2, last] [finish]
//!   order of the server: 0 0 1 2 3, then every ring is at its finish message
//! ```
//!
//! A message of a later batch stays in its ring, so a node that runs ahead is held back by its full
//! rings.
//!
//! **Without messages.** In an [`OrderedFilter`], no key moves to an owner. Each thread passes its
//! own batch through all partitions, and each partition applies the batches in the order of their
//! tickets.
//!
//! **Losses.** If the filter of a partition panics, the verdicts of all other partitions still come
//! out. The keys of the lost one are *unknown*
//! ([`Verdicts::is_unknown`](crate::Verdicts::is_unknown)), so a caller can submit them again once
//! the partition is replaced ([`Engine::replace`], [`Node::replace`], [`OrderedFilter::replace`]).
//! A [`LossPolicy`] determines whether such a batch is an error or is judged without the partition.
//! With `panic = "abort"` there are no losses: a panic ends the process.
//!
//! **Forks.** All of this belongs to the process that built it. In a fork, ports, nodes and tickets
//! return [`ExchangeError::Forked`].

mod attacher;
mod engine;
mod engine_builder;
mod exchange_error;
mod link;
mod loss_policy;
mod mailbox;
mod mesh;
mod message;
mod node;
mod ordered;
mod owned;
mod partition_state;
mod pending_batch;
mod pinning;
mod port;
mod port_index;
mod replace;
mod rings;
mod routing;
mod server;
mod shutdown;
mod status;
mod worker;

pub use attacher::Attacher;
pub use engine::Engine;
pub use engine_builder::EngineBuilder;
pub use exchange_error::ExchangeError;
pub use loss_policy::LossPolicy;
pub use mesh::{Mesh, MeshBuilder};
pub use node::Node;
pub use ordered::{OrderedBuilder, OrderedFilter, OrderedHandle, Ticket};
pub use pinning::{Pinning, pin_thread};
pub use port::{PayloadPort, Port, Rejected};
pub use replace::{NotReplaceable, ReplaceError};
#[doc(hidden)]
pub use routing::{RoundTrip, RoutingWay};
pub use shutdown::ShutdownError;
pub use status::EngineCounts;
