//! Many cores: a filter cut in partitions, one owner thread each, and the ways that keys reach them.
//!
//! Two pieces do the work. A [`Port`] is the client half: it routes a batch of keys into messages, one stream of them for each
//! partition, and puts the verdicts that come back into the order of the batch. A `PartitionServer` is the worker half:
//! it owns one partition, takes messages in order and answers each. [`Engine`] and [`Mesh`] only place them on threads:
//!
//! ```text
//!   Engine: ingest threads + workers           Mesh: every thread is both
//!
//!   Port --ring--> server 0 (thread)           node 0: Port + server 0 <--rings--> node 1: Port + server 1
//!        \-ring--> server 1 (thread)           a node that waits for verdicts serves its peers meanwhile
//! ```
//!
//! **What is promised of the order.** Keys of one port reach every partition in the order of the port, so with one port the verdicts
//! are those of the undivided filter, for any number of workers. Between independent ports of an [`Engine`] nothing is promised but
//! that each key is tested and recorded in one step: of two ports that bring the same new key, exactly one hears Fresh. (Both do if the
//! filter forgets the key in between, and none does if it is a false positive.) The batches of a [`Mesh`] are numbered, and partitions
//! apply them by number, so its verdicts are those of the undivided filter too.

mod engine;
mod link;
mod mesh;
mod message;
mod pinning;
mod port;
mod rings;
mod routing;
mod server;
mod shutdown;

pub use engine::{Engine, EngineBuilder};
pub use mesh::{Mesh, Node};
pub use pinning::{Pinning, pin_thread};
pub use port::Port;
pub use shutdown::ShutdownError;
