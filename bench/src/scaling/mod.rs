//! What more threads gain, and what they cost: one inline thread against separate filters, an
//! engine, an ordered filter and the shared filter; routing to many partitions; many ports;
//! many threads on a slow stream; and, simulated, the command on more cores.

mod candidates;
mod cores;
mod measure;
mod partitions;
mod ports;
mod rows;
mod slow;
mod threads;

pub use measure::{Arguments, run};
