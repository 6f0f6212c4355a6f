//! The threads of a run: their loop and the order of their chunks, what they do with a chunk, and
//! how the work is divided.

mod chunk_order;
#[cfg(test)]
mod chunk_order_tests;
pub(super) mod division;
pub(super) mod parallel;
pub(super) mod pinning;
mod worker_loop;
